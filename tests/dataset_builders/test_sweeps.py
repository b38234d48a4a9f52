"""Sweeps: countable without Triton, deterministic, varied, and within what can be compiled."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dataset_builders.building.build import sampled
from dataset_builders.kernels.specifications import AMD_OPTIONS, KERNELS, NVIDIA_OPTIONS
from dataset_builders.sweeps import SWEEPS, Sweep, make_point, point_from_json, sweep_named
from dataset_builders.sweeps.constraints import (
    attention_fits_registers,
    local_memory_fits,
    matrix_instruction_fits,
    modifiers_agree,
    native_types,
    products_fit_registers,
    tile_feeds_every_warp,
)
from dataset_builders.sweeps.point import Parameters
from dataset_builders.sweeps.sweep import AxisProduct, axis, fixed, joint
from verilocc_bench.errors import InputError
from verilocc_bench.targets import PUBLISHED

ROOT = Path(__file__).resolve().parents[2]

LIST_WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None
from dataset_builders.sweeps import SWEEPS
for sweep in SWEEPS.values():
    print(sweep.name, *(point.key for point in sweep.points()))
"""


@pytest.fixture(scope="module", params=list(SWEEPS))
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return SWEEPS[request.param]


@pytest.mark.slow
def test_listing_needs_no_triton_and_depends_on_nothing() -> None:
    # This process has another seed.
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    listed = subprocess.check_output(
        [sys.executable, "-c", LIST_WITHOUT_TRITON], env=environment, text=True
    )
    here = [[s.name, *(p.key for p in s.points())] for s in SWEEPS.values()]
    assert [line.split() for line in listed.splitlines()] == here


@pytest.mark.slow
def test_keys_are_unique_and_safe_as_file_names(sweep: Sweep) -> None:
    keys = [point.key for point in sweep.points()]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[a-z0-9_-]{1,100}", key) for key in keys)


@pytest.mark.slow
def test_an_architecture_alone_gets_its_own_points(sweep: Sweep) -> None:
    everything = sweep.points()
    for arch in sweep.archs:
        alone = sweep.points([arch])
        assert alone == tuple(point for point in everything if point.arch == arch)


def test_every_point_comes_back_from_its_json(sweep: Sweep) -> None:
    for point in sweep.points():
        assert point_from_json(point.arch, point.kernel, point.parameters_json) == point


def test_parameters_json_is_canonical() -> None:
    text = make_point("gfx942", "gemm", {"block_m": 128}).parameters_json
    values = json.loads(text)
    assert text == json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert values["block_m"] == 128
    assert set(values) == KERNELS["gemm"].parameter_names - set(NVIDIA_OPTIONS)


def test_sizes_of_the_sweeps() -> None:
    assert list(SWEEPS) == ["mini", "small", "default"]
    for arch in ("gfx90a", "gfx942", "sm_80"):
        assert 15 <= len(SWEEPS["mini"].points([arch])) <= 30
        assert 90 <= len(SWEEPS["small"].points([arch])) <= 110
        assert 2_100 <= len(SWEEPS["default"].points([arch])) <= 2_400
    assert len(SWEEPS["mini"].points(["sm_90"])) == 6


@pytest.mark.parametrize(
    ("name", "digest"),
    [("mini", "7b074022cee9110c"), ("small", "06f604126ce4f14a"), ("default", "c98058b41b1fded6")],
)
def test_points_of_published_data_keep_their_identity(name: str, digest: str) -> None:
    """A new architecture, parameter or axis leaves AMD's points and their order alone."""
    keys = "\n".join(point.key for point in SWEEPS[name].points(["gfx90a", "gfx942"]))
    assert hashlib.sha256(keys.encode()).hexdigest()[:16] == digest


def test_small_is_a_part_of_default() -> None:
    assert set(SWEEPS["small"].points()) <= set(SWEEPS["default"].points())


def test_sm_90_has_the_points_of_sm_80_in_two_ways() -> None:
    old = [(p.kernel, p.parameters) for p in SWEEPS["default"].points(["sm_80"])]
    new: dict[int, list[tuple[str, Parameters]]] = {}
    for point in SWEEPS["default"].points(["sm_90"]):
        values = dict(point.parameters)
        capability = int(values.pop("capability"))
        new.setdefault(capability, []).append((point.kernel, Parameters.of(values)))
    assert new.keys() == {0, 80}
    for points in new.values():
        assert Counter(points) == Counter(old)


def test_mini_is_the_same_for_both_amd_architectures() -> None:
    by_arch = {
        arch: [(p.kernel, p.parameters) for p in SWEEPS["mini"].points([arch])]
        for arch in ("gfx90a", "gfx942")
    }
    assert by_arch["gfx90a"] == by_arch["gfx942"]


def test_mini_is_varied_everywhere() -> None:
    for arch in PUBLISHED:
        points = SWEEPS["mini"].points([arch])
        assert min(Counter(point.family for point in points).values()) >= 8
        assert {p.parameters["dtype"] for p in points} == {"fp16", "bf16", "fp32", "int8"}
    budgets = {p.parameters["maxnreg"] for p in SWEEPS["mini"].points(["sm_80"])}
    assert budgets >= {0, 48, 96, 168}


def test_default_covers_every_kernel_and_value() -> None:
    for arch in SWEEPS["default"].archs:
        points = SWEEPS["default"].points([arch])
        assert {point.kernel for point in points} == set(KERNELS)
        seen: dict[str, set[object]] = {}
        for point in points:
            for name, value in point.parameters.items():
                seen.setdefault(name, set()).add(value)
        assert seen["dtype"] >= {"fp16", "bf16", "fp32", "int8"}
        assert ("fp8e4b8" in seen["dtype"]) == (arch == "gfx942")
        assert seen["head_dim"] == {32, 40, 64, 80, 96, 128, 192, 256}
        assert seen["activation"] == {"none", "relu", "gelu", "silu"}
        layouts = {
            (p.parameters["transpose_a"], p.parameters["transpose_b"])
            for p in points
            if p.kernel == "gemm"
        }
        assert len(layouts) == 4
        flags = ("causal", "window", "variable_length", "alibi", "matrix_bias", "softcap", "peel")
        assert all(seen[flag] == {False, True} for flag in flags)
        assert seen.get("maxnreg") == ({0, 64, 96, 128, 168, 255} if arch[:2] == "sm" else None)


def test_a_prefix_of_default_is_varied() -> None:
    archs = SWEEPS["default"].archs
    prefix = SWEEPS["default"].points()[: 30 * len(archs)]
    assert Counter((p.arch, p.family) for p in prefix) == Counter(
        {(arch, family): 15 for arch in archs for family in ("gemm", "mha")}
    )
    assert len({p.kernel for p in prefix}) >= 8
    assert {p.parameters["dtype"] for p in prefix} >= {"fp16", "bf16", "fp32", "int8"}
    assert len({p.group for p in prefix}) >= 40


def test_near_copies_share_a_group() -> None:
    base = make_point("gfx942", "gemm", {"block_m": 128})
    near = [
        make_point("gfx90a", "gemm", {"block_m": 128}),
        make_point("gfx942", "gemm", {"block_m": 128, "num_stages": 1}),
        make_point("gfx942", "gemm", {"block_m": 128, "waves_per_eu": 2}),
        make_point("gfx942", "gemm", {"block_m": 128, "matrix_instr_nonkdim": 16}),
        make_point("gfx942", "gemm", {"block_m": 128, "activation": "gelu"}),
        make_point("gfx942", "gemm", {"block_m": 128, "dtype": "bf16", "out_dtype": "bf16"}),
        make_point("gfx942", "gemm_batched", {"block_m": 128}),
    ]
    assert {point.group for point in near} == {base.group}
    assert len({point.key for point in near} | {base.key}) == len(near) + 1
    far = [
        make_point("gfx942", "gemm", {"block_m": 64}),
        make_point("gfx942", "gemm", {"block_m": 128, "dtype": "int8", "out_dtype": "int32"}),
        make_point("gfx942", "gemm_gated", {"block_m": 128}),
        make_point("gfx942", "mha_forward", {"block_m": 128}),
    ]
    assert len({point.group for point in far} | {base.group}) == len(far) + 1


def test_groups_of_default_are_small_enough_to_split() -> None:
    sizes = Counter(point.group for point in SWEEPS["default"].points())
    assert len(sizes) >= 200
    assert max(sizes.values()) <= sum(sizes.values()) // 20


def test_constraints_hold_for_what_is_sampled() -> None:
    for point in (*SWEEPS["default"].points(), *SWEEPS["small"].points()):
        assert native_types(point)
        if point.kernel in {"gemm", "mha_forward", "mha_backward_dq"}:
            assert local_memory_fits(point)
            assert tile_feeds_every_warp(point)
            assert matrix_instruction_fits(point)
            assert modifiers_agree(point)


WIDE = {"block_m": 256, "block_n": 256}
HEADS = {"head_dim": 256, "block_d": 256}
LARGE_HEADS = {"block_m": 128, **HEADS}


@pytest.mark.parametrize(
    ("allows", "arch", "kernel", "good", "bad"),
    [
        (local_memory_fits, "gfx942", "gemm", {"block_m": 128, "block_n": 128, "num_stages": 3},
         {**WIDE, "block_k": 64, "num_stages": 3}),
        (local_memory_fits, "sm_80", "mha_forward", LARGE_HEADS, {**LARGE_HEADS, "block_m": 256}),
        (local_memory_fits, "sm_80", "mha_backward_dq",
         {"block_m": 128, "head_dim": 128, "block_d": 128}, LARGE_HEADS),
        (tile_feeds_every_warp, "gfx942", "gemm", {"block_m": 32, "block_n": 32, "num_warps": 4},
         {"block_m": 16, "block_n": 16, "num_warps": 4}),
        (matrix_instruction_fits, "gfx942", "gemm", {"block_m": 16, "matrix_instr_nonkdim": 16},
         {"block_m": 16, "matrix_instr_nonkdim": 32}),
        (matrix_instruction_fits, "sm_80", "gemm", {"dtype": "int8", "block_k": 32},
         {"dtype": "int8", "block_k": 16}),
        (products_fit_registers, "gfx942", "gemm", {"block_m": 128, "block_n": 128}, WIDE),
        (products_fit_registers, "sm_80", "gemm", {"block_m": 128, "block_n": 128},
         {"block_m": 128, "block_n": 256}),
        (products_fit_registers, "sm_80", "gemm", {"maxnreg": 64}, {"maxnreg": 64, "block_m": 128}),
        (attention_fits_registers, "gfx942", "mha_forward", {"block_m": 128},
         {"block_m": 16, **HEADS, "waves_per_eu": 4}),
        (attention_fits_registers, "sm_80", "mha_forward", {"maxnreg": 128},
         {"block_m": 128, "maxnreg": 128}),
        (attention_fits_registers, "sm_80", "mha_backward_dkdv", {"maxnreg": 168},
         {"maxnreg": 96}),
        (modifiers_agree, "gfx942", "mha_forward", {"variable_length": True, "even": False},
         {"variable_length": True, "even": True}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)  # fmt: skip
def test_each_constraint_tells_good_from_bad(allows, arch, kernel, good, bad) -> None:
    assert allows(make_point(arch, kernel, good))
    assert not allows(make_point(arch, kernel, bad))


def test_types_are_native() -> None:
    quantized = {"dtype": "fp8e4b8"}
    assert native_types(make_point("gfx942", "gemm_quantized", quantized))
    assert not native_types(make_point("gfx90a", "gemm_quantized", quantized))


def test_architectures_have_their_own_options_alone() -> None:
    point = make_point("sm_80", "gemm", {"waves_per_eu": 2, "maxnreg": 96})
    assert not {*AMD_OPTIONS, "small_buffers"} & set(point.parameters)
    assert point == make_point("sm_80", "gemm", {"kpack": 2, "maxnreg": 96})
    assert point != make_point("sm_80", "gemm", {})
    assert make_point("gfx942", "gemm", {"maxnreg": 96}) == make_point("gfx942", "gemm", {})


def test_a_product_is_all_that_its_constraints_allow() -> None:
    product = AxisProduct(
        "gemm",
        (axis("num_warps", 1, 2, 4), joint("block_m block_n", (16, 16), (32, 32))),
        (tile_feeds_every_warp,),
    )
    found = [
        tuple(point.parameters[name] for name in ("num_warps", "block_m"))
        for point in product.points("gfx942")
    ]
    assert found == [(1, 16), (1, 32), (2, 32), (4, 32)]


def test_a_smaller_sample_is_a_prefix_of_a_larger_one() -> None:
    axes = (axis("num_warps", 1, 2, 4), axis("num_stages", 1, 2, 3), axis("kpack", 1, 2))
    few = AxisProduct("gemm", axes, keep=5).points("gfx942")
    many = AxisProduct("gemm", axes, keep=12).points("gfx942")
    assert len(few) == 5
    assert many[:5] == few


def test_listed_sweeps_keep_their_order() -> None:
    products = (fixed("gemm", kpack=2), fixed("gemm"))
    listed = Sweep("x", "", ("gfx90a", "gfx942"), products, order="listed")
    found = [(point.arch, point.parameters["kpack"]) for point in listed.points()]
    assert found == [("gfx90a", 2), ("gfx942", 2), ("gfx90a", 1), ("gfx942", 1)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: sweep_named("huge"),
        lambda: SWEEPS["mini"].points(["gfx9999"]),
        lambda: make_point("gfx942", "gemv", {}),
        lambda: make_point("gfx942", "gemm", {"head_dim": 64}),
        lambda: point_from_json("gfx942", "gemm", "[1]"),
        lambda: point_from_json("gfx942", "gemm", "{"),
    ],
)
def test_unknown_names_are_input_errors(call) -> None:
    with pytest.raises(InputError):
        call()


@pytest.mark.parametrize("every", [1, 3, 4, 8])
def test_a_sample_has_all_architectures_and_families(every: int) -> None:
    points = sweep_named("default").points()
    whole = Counter((point.arch, point.family) for point in points)
    found = Counter((point.arch, point.family) for point in sampled(points, every))
    assert found == {lane: -(-count // every) for lane, count in whole.items()}


def test_parameters_are_a_mapping() -> None:
    parameters = Parameters.of({"b": 1, "a": "x"})
    assert list(parameters) == ["a", "b"]
    assert parameters == Parameters.of({"a": "x", "b": 1})
    assert parameters.integer("b") == 1
    with pytest.raises(TypeError):
        parameters.integer("a")
    with pytest.raises(KeyError):
        parameters["c"]
