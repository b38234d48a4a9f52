"""What a comparison notices, and how element types are stored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from verilocc_bench.references import Buffer, Expectation, Launch, compare
from verilocc_bench.references.numbers import Array, decode, encode, filler


def launch() -> Launch:
    """Six elements of which four are written, and an input that must stay."""
    out = np.full((2, 3), np.nan, np.float32)
    wanted = np.array([[1.0, -4.0, 0.0], [2.0, 0.5, 0.0]])
    written = np.array([[True, True, False], [True, True, False]])
    return Launch(
        "k",
        (Buffer("x", "fp32", np.arange(4, dtype=np.float32)), Buffer("out", "fp32", out)),
        (1, 1, 1),
        (Expectation("out", wanted, written, 1e-3),),
    )


def right_memory() -> dict[str, Array]:
    out = np.array([[1.0, -4.0, np.nan], [2.0, 0.5, np.nan]], np.float32)
    return {"x": np.arange(4, dtype=np.float32), "out": out}


def flip(memory: dict[str, Array]) -> None:
    """One NaN becomes another."""
    memory["out"].view(np.uint32)[0, 2] ^= 1


@pytest.mark.parametrize(
    ("name", "change", "stray", "error"),
    [
        ("out", lambda memory: None, 0, 0.0),
        # Relative to the largest value.
        ("out", lambda memory: np.add.at(memory["out"], (1, 1), 0.04), 0, 0.01),
        ("out", lambda memory: memory["out"].put(0, np.nan), 0, np.inf),
        ("out", lambda memory: memory["out"].put(0, np.inf), 0, np.inf),
        ("out", lambda memory: memory["out"].put(0, -np.inf), 0, np.inf),
        ("out", flip, 1, 0.0),
        ("x", lambda memory: memory["x"].put(3, 7), 1, 0.0),
    ],
)
def test_what_differs_is_counted(
    name: str, change: Callable[[dict[str, Array]], None], stray: int, error: float
) -> None:
    memory = right_memory()
    change(memory)
    for found in compare(launch(), memory):
        changed = found.name == name
        assert found.stray_writes == (stray if changed else 0)
        assert found.error == pytest.approx(error if changed else 0.0, rel=1e-3)
        assert found.agrees == (not changed or (stray, error) == (0, 0.0))


def test_marks_do_not_hide_errors_in_ordinary_numbers() -> None:
    wanted = np.array([-1e30, 2.0])
    expectation = Expectation("out", wanted, np.ones(2, bool), 1e-5)
    buffer = Buffer("out", "fp32", np.zeros(2, np.float32))
    marked = Launch("k", (buffer,), (1, 1, 1), (expectation,))
    (good,) = compare(marked, {"out": np.array([-1e30, 2.0], np.float32)})
    (bad,) = compare(marked, {"out": np.array([-1e30, 2.1], np.float32)})
    (no_mark,) = compare(marked, {"out": np.array([0.0, 2.0], np.float32)})
    assert good.agrees
    assert not bad.agrees
    assert not no_mark.agrees


@pytest.mark.parametrize("element", ["fp32", "fp16", "bf16", "fp8e4b8", "fp8e5b16"])
def test_stored_numbers_come_back(element: str) -> None:
    random = np.random.default_rng(0)
    numbers = decode(encode(random.standard_normal(500), element), element)
    np.testing.assert_array_equal(decode(encode(numbers, element), element), numbers)
    assert np.isnan(decode(np.array([filler(element)], encode(numbers, element).dtype), element))


@pytest.mark.parametrize("element", ["bf16", "fp8e4b8", "fp8e5b16"])
def test_every_stored_number_is_its_own_nearest(element: str) -> None:
    count, kind = (65536, np.uint16) if element == "bf16" else (256, np.uint8)
    codes = np.arange(count).astype(kind)
    numbers = decode(codes, element)
    finite = np.isfinite(numbers) & ~(np.signbit(numbers) & (numbers == 0))
    np.testing.assert_array_equal(encode(numbers[finite], element), codes[finite])


@pytest.mark.parametrize(
    ("element", "low", "high"),
    [("fp8e4b8", 0x41, 0x42), ("fp8e4b8", 0x42, 0x43), ("fp8e5b16", 0x40, 0x41), ("bf16", 7, 8)],
)
def test_halfway_numbers_go_to_the_even_code(element: str, low: int, high: int) -> None:
    kind = np.uint16 if element == "bf16" else np.uint8
    two = decode(np.array([low, high], kind), element)
    even = low if low % 2 == 0 else high
    assert encode(np.array([two.mean()]), element)[0] == even
    assert encode(np.array([-two.mean()]), element)[0] == even | (
        0x8000 if kind is np.uint16 else 0x80
    )


def test_values_from_amds_table_of_eight_bit_floats() -> None:
    """The largest numbers and the smallest of the formats with one zero."""
    assert decode(np.array([0x7F, 0x01, 0x08, 0xC0], np.uint8), "fp8e4b8").tolist() == [
        240.0, 2.0**-10, 2.0**-7, -1.0,
    ]  # fmt: skip
    assert decode(np.array([0x7F, 0x01, 0x04, 0xC0], np.uint8), "fp8e5b16").tolist() == [
        57344.0, 2.0**-17, 2.0**-15, -1.0,
    ]  # fmt: skip
