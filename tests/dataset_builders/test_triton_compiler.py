"""From points to LLVM IR and PTX: no debug information, no folders, the same bytes everywhere."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dataset_builders.compilers import triton_compiler
from dataset_builders.compilers.triton_compiler import compile_kernel, kernel_source_hash
from dataset_builders.kernels.specifications import KERNELS, OPTIONS, TYPES
from dataset_builders.sweeps import SweepPoint, make_point
from verilocc_bench.errors import MissingExtraError, RejectedKernel

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)

POINTS = [
    make_point("gfx90a", "gemm", {"block_m": 32, "block_n": 32, "even_k": False, "bias": True}),
    make_point("gfx942", "gemm_split_k", {"block_m": 32, "block_n": 32}),
    make_point("gfx942", "mha_forward", {"block_m": 32, "block_n": 32, "head_dim": 32,
                                         "block_d": 32, "num_warps": 2, "causal": True}),
    make_point("gfx90a", "mha_decode_combine", {"splits": 4}),
]  # fmt: skip

# Every elementary function that our kernels call is in one of these.
PTX_POINTS = [
    make_point("sm_80", "gemm", {"block_m": 32, "block_n": 32, "bias": True,
                                 "activation": "gelu", "maxnreg": 64}),
    make_point("sm_80", "mha_forward", {"block_m": 32, "block_n": 32, "head_dim": 32,
                                        "block_d": 32, "num_warps": 2, "softcap": True,
                                        "alibi": True}),
    make_point("sm_80", "gemm_gated", {"block_m": 32, "block_n": 32, "activation": "silu"}),
    make_point("sm_80", "mha_decode_combine", {"splits": 4}),
]  # fmt: skip

COMPILE_AND_HASH = """
import hashlib, sys
from dataset_builders.sweeps import point_from_json
from dataset_builders.compilers.triton_compiler import compile_kernel
points = [line.split(" ") for line in sys.stdin.read().splitlines()]
for arch, kernel, parameters in points:
    point = point_from_json(arch, kernel, parameters)
    compiled = compile_kernel(point)
    text = compiled.ptx or compiled.llvm_ir
    print(hashlib.sha256(text.encode()).hexdigest())
"""


@needs_triton
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.key)
def test_ir_has_no_debug_information_and_no_folder(point: SweepPoint) -> None:
    compiled = compile_kernel(point)
    assert "!dbg" not in compiled.llvm_ir
    assert "DILocation" not in compiled.llvm_ir
    assert str(ROOT) not in compiled.llvm_ir
    assert ".py" not in compiled.llvm_ir
    assert compiled.llvm_ir.count("define amdgpu_kernel void @") == 1
    assert f"define amdgpu_kernel void @{point.kernel}(" in compiled.llvm_ir
    # Our own source only: no call into a vendor's math library.
    assert "@__ocml" not in compiled.llvm_ir
    assert 0 <= compiled.shared_memory_bytes <= 65_536
    assert compiled.num_warps == point.parameters["num_warps"]
    assert not compiled.ptx


@needs_triton
@pytest.mark.parametrize("point", PTX_POINTS, ids=lambda point: point.key)
def test_ptx_says_its_launch_and_nothing_of_the_folder(point: SweepPoint) -> None:
    compiled = compile_kernel(point)
    ptx = compiled.ptx
    assert ".version 8.7\n.target sm_80\n" in ptx
    assert ptx.count(".entry ") == ptx.count(f".entry {point.kernel}(") == 1
    assert f".reqntid {32 * compiled.num_warps}\n" in ptx
    budget = point.parameters["maxnreg"]
    assert (f".maxnreg {budget}\n" in ptx) if budget else (".maxnreg" not in ptx)
    assert not any(word in ptx for word in (".loc", ".file", ".py", ".section", str(ROOT)))
    # Our own source only: no call of anybody's library, and nothing linked in.
    assert ".func" not in ptx
    assert "__nv" not in ptx + compiled.llvm_ir


@needs_triton
@pytest.mark.parametrize(("capability", "target"), [(0, "sm_90a"), (80, "sm_80")])
def test_there_are_two_ways_to_sm_90(capability: int, target: str) -> None:
    point = make_point("sm_90", "gemm", {"capability": capability, "block_k": 64})
    compiled = compile_kernel(point)
    assert f".version 8.7\n.target {target}\n" in compiled.ptx
    assert ("wgmma" in compiled.ptx) == (capability == 0)


@needs_triton
def test_a_kernel_that_calls_libdevice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton.language

    from dataset_builders.kernels import mha_decode

    # Triton lowers its own exp2 to a call of libdevice's, which it then links in.
    monkeypatch.setattr(mha_decode, "power_of_two", triton.language.exp2)
    with pytest.raises(RejectedKernel, match="calls __nv_exp2f of NVIDIA's libdevice"):
        compile_kernel(make_point("sm_80", "mha_decode_combine", {"splits": 8}))


@needs_triton
def test_the_same_bytes_in_any_process_and_folder(tmp_path: Path) -> None:
    points = [POINTS[0], POINTS[2], PTX_POINTS[0], PTX_POINTS[3]]
    compiled = [compile_kernel(point) for point in points]
    here = [hashlib.sha256((c.ptx or c.llvm_ir).encode()).hexdigest() for c in compiled]
    for name in ("dataset_builders", "verilocc_bench"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "7", "HOME": str(home),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_DISABLE_LINE_INFO": "0",
        "AMDGCN_USE_BUFFER_OPS": "0", "TRITON_PTXAS_PATH": "/no/ptxas",
    }  # fmt: skip
    described = "\n".join(f"{p.arch} {p.kernel} {p.parameters_json}" for p in points[::-1])
    elsewhere = subprocess.check_output(
        [sys.executable, "-c", COMPILE_AND_HASH],
        env=environment, input=described, text=True, cwd=tmp_path,
    ).split()  # fmt: skip
    assert elsewhere[::-1] == here
    assert not list(home.iterdir())
    assert not (tmp_path / "cache").exists()


@needs_triton
def test_the_environment_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "0")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    compile_kernel(POINTS[3], tmp_path)
    assert os.environ["TRITON_DISABLE_LINE_INFO"] == "0"
    assert "TRITON_CACHE_DIR" not in os.environ


@needs_triton
def test_what_triton_refuses_is_named_in_one_line() -> None:
    not_a_power_of_two = make_point("gfx942", "gemm", {"block_m": 48})
    with pytest.raises(RejectedKernel) as failure:
        compile_kernel(not_a_power_of_two)
    error = failure.value
    assert error.reason.startswith(f"{not_a_power_of_two.key}: ")
    assert error.kind == "compilation_failed"
    assert "power of 2" in str(error)
    assert "\n" not in str(error)
    assert "/" not in error.reason


@needs_triton
def test_too_much_local_memory_is_a_failure() -> None:
    deep = {"block_m": 32, "block_n": 32, "block_k": 512, "num_stages": 3}
    with pytest.raises(RejectedKernel, match="local memory"):
        compile_kernel(make_point("gfx942", "gemm", deep))
    with pytest.raises(RejectedKernel, match="196608 bytes of local memory of 166912"):
        compile_kernel(make_point("sm_80", "gemm", deep | {"num_stages": 4}))


def test_missing_triton_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[build\]"):
        compile_kernel(POINTS[0])


def test_source_hash_covers_what_the_kernel_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(ROOT / "dataset_builders" / "kernels", folder)
    monkeypatch.setattr(triton_compiler, "_KERNEL_FOLDER", folder)
    before = {point.key: kernel_source_hash(point) for point in POINTS}
    with (folder / "mha.py").open("a") as file:
        file.write("# a change\n")
    after = {point.key: kernel_source_hash(point) for point in POINTS}
    changed = [before[point.key] != after[point.key] for point in POINTS]
    assert changed == [False, False, True, True]


@pytest.mark.parametrize("name", list(KERNELS))
def test_specification_and_kernel_agree(name: str) -> None:
    specification = KERNELS[name]
    path = ROOT / "dataset_builders" / "kernels" / f"{specification.module}.py"
    functions = {
        node.name: [argument.arg for argument in node.args.args]
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    run_time = {argument.name for argument in specification.arguments}
    constants = {n.upper() for n in specification.parameter_names - set(OPTIONS) - set(TYPES)}
    assert set(functions[name]) == run_time | constants
    assert {a.needed_by for a in specification.arguments} <= specification.parameter_names | {""}
