"""References against the kernels' specifications, sources and compiled signatures."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import numpy as np
import pytest

from dataset_builders.kernels.specifications import KERNELS
from dataset_builders.sweeps.registry import sweep_named
from tests.sampling import in_turns, one_of_each_kernel, some_rows
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.references import REFERENCES, Buffer, Launch, Scalar, launch_for
from verilocc_bench.references.signatures import SIGNATURES

AMD = ("gfx90a", "gfx942")
ROWS = [
    row
    for track in ("assign", "split")
    for row in load_rows("mini", track=track).rows
    if row.arch in AMD
]
SIZES = [(1, False), (2, False), (2, True)]


def launch_of(row: Row, tiles: int = 1) -> Launch:
    return launch_for(row.kernel, json.loads(row.params), tiles=tiles)


def test_every_kernel_has_a_reference_with_its_arguments() -> None:
    assert set(REFERENCES) == set(KERNELS) == set(SIGNATURES)
    for name, specification in KERNELS.items():
        assert SIGNATURES[name] == tuple((a.name, a.needed_by) for a in specification.arguments)


def test_arguments_stand_in_the_order_of_the_source() -> None:
    for name, specification in KERNELS.items():
        path = files("dataset_builders.kernels").joinpath(f"{specification.module}.py")
        source = path.read_text(encoding="utf-8")
        found = re.search(rf"^def {name}\((.*?)\):", source, re.DOTALL | re.MULTILINE)
        assert found
        words = [w.strip() for w in found[1].split(",")]
        runtime = [w for w in words if w and ":" not in w]
        assert runtime == [argument for argument, _ in SIGNATURES[name]]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_mini_rows_take_what_their_machine_code_takes(row: Row) -> None:
    """Pointers, 32-bit integers and floats of the compiled function, then two scratch pointers."""
    content = load_raw_row("mini", row.id).content
    header = re.search(r"define amdgpu_kernel void @(\w+)\((.*?)\) local", content)
    assert header
    assert header[1] == row.kernel
    types = [parameter.split()[0] for parameter in header[2].split(", ")]
    names = {"i32": "i32", "fp32": "float"}
    wanted = [
        "ptr" if isinstance(a, Buffer) else names[a.element] for a in launch_of(row).arguments
    ]
    assert types == [*wanted, "ptr", "ptr"]


@pytest.mark.parametrize(
    ("row", "size"), in_turns(ROWS, SIZES), ids=lambda each: getattr(each, "id", None)
)
def test_launches_keep_what_the_compiler_was_promised(row: Row, size: tuple[int, bool]) -> None:
    check_promises(row.kernel, json.loads(row.params), *size)


@pytest.mark.parametrize("row", some_rows(ROWS), ids=lambda r: r.id)
def test_sizes_and_strides_of_a_launch_differ(row: Row) -> None:
    """An answer that takes one for the other is wrong."""
    launch = launch_for(row.kernel, json.loads(row.params), sampled=True)
    numbers = {a.name: a.value for a in launch.arguments if isinstance(a, Scalar) and a.value}
    if numbers.get("seq_q") == numbers.get("seq_k"):  # whole tiles of both, by chance as many
        numbers.pop("seq_k", None)
    assert len(set(numbers.values())) == len(numbers), numbers


def test_a_sample_of_tiles_comes_from_three_bands() -> None:
    grouped = [row for row in ROWS if row.family == "gemm" and "group_m" in row.params]
    for row in one_of_each_kernel(grouped):
        parameters = json.loads(row.params)
        whole, sample = (launch_for(row.kernel, parameters, sampled=s) for s in (False, True))
        height, block_m = parameters["group_m"], parameters["block_m"]
        assert whole.groups is None
        assert sample.groups is not None
        assert len(sample.groups) <= np.prod(whole.grid)
        assert set(sample.groups) < set(np.ndindex(sample.grid))
        (c,) = sample.expectations
        rows = np.flatnonzero(c.written.reshape(-1, *c.written.shape[-2:]).any((0, 2))) // block_m
        bands = {int(row) // height for row in rows}
        assert bands == {0, 1, 2} if height > 1 else len(bands) > 2


def check_promises(
    kernel: str, parameters: dict[str, object], tiles: int, sampled: bool = False
) -> Launch:
    launch = launch_for(kernel, parameters, tiles=tiles, sampled=sampled)
    specified = {
        a.name: a
        for a in KERNELS[kernel].arguments
        if not a.needed_by or parameters[a.needed_by] not in (False, 0, "none")
    }
    assert [a.name for a in launch.arguments] == list(specified)
    for argument in launch.arguments:
        kind = specified[argument.name].type
        if isinstance(argument, Scalar):
            assert kind in ("i32", "fp32", "stride")
            assert argument.element == ("fp32" if kind == "fp32" else "i32")
            assert isinstance(argument.value, float if kind == "fp32" else int)
            if kind == "stride" and parameters["aligned"]:
                assert argument.value % 16 == 0, argument
        else:
            element = re.sub(r"\{(\w+)\}", lambda m: str(parameters[m[1]]), kind[1:])
            assert argument.element == element
            assert argument.initial.flags.c_contiguous
    assert launch.expectations
    for expectation in launch.expectations:
        buffer = launch.buffers[expectation.name]
        assert expectation.wanted.shape == expectation.written.shape == buffer.initial.shape
        assert np.isfinite(expectation.wanted).all()
        assert expectation.written.any()
        assert np.abs(expectation.wanted[expectation.written]).max() > 0.01
    even = [n for n in ("even", "even_mn") if n in parameters]
    for name, block in (
        ("M", "block_m"),
        ("N", "block_n"),
        ("seq_q", "block_m"),
        ("seq_k", "block_n"),
    ):
        scalars = {a.name: a.value for a in launch.arguments if isinstance(a, Scalar)}
        if name in scalars and even and parameters[even[0]] and block in parameters:
            assert scalars[name] % int(str(parameters[block])) == 0
        if name == "M" and parameters.get("even_k") and "K" in scalars:
            assert scalars["K"] % int(str(parameters["block_k"])) == 0
    return launch


def test_one_tile_is_one_work_group_but_for_shares_along_k() -> None:
    for row in ROWS:
        grid = launch_of(row).grid
        wanted = (
            (1, json.loads(row.params)["split_k"], 1) if row.kernel == "gemm_split_k" else (1,) * 3
        )
        assert grid == wanted, row.kernel


@pytest.mark.slow
def test_the_sweep_default_has_launches() -> None:
    """One target's sample of the sweep, which has every kernel."""
    points = sweep_named("small").points(("gfx942",))
    assert {point.kernel for point in points} == set(REFERENCES)
    for point in points:
        check_promises(point.kernel, dict(point.parameters), tiles=1)


def test_same_arguments_give_the_same_bytes_and_others_do_not() -> None:
    row = next(r for r in ROWS if r.kernel == "gemm")
    parameters = json.loads(row.params)
    first, again = (launch_for(row.kernel, parameters) for _ in range(2))
    other = launch_for(row.kernel, parameters, seed=1)
    for name, buffer in first.buffers.items():
        assert buffer.initial.tobytes() == again.buffers[name].initial.tobytes()
    assert first.buffers["a"].initial.tobytes() != other.buffers["a"].initial.tobytes()


def test_a_deeper_launch_has_longer_loops_and_the_same_grid() -> None:
    parameters = {row.kernel: json.loads(row.params) for row in load_rows("mini").rows}
    for kernel, scalar, block in (("gemm", "K", "block_k"), ("mha_forward", "seq_k", "block_n")):
        usual, deep = (launch_for(kernel, parameters[kernel], depth=depth) for depth in (None, 20))
        lengths = {a.name: a.value for a in deep.arguments if isinstance(a, Scalar)}
        size = parameters[kernel][block]
        assert 19 * size < lengths[scalar] <= 20 * size
        assert usual.grid == deep.grid


def test_an_unknown_kernel_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no reference of the kernel 'nothing'"):
        launch_for("nothing", {})
