"""Code of one's own: LLVM IR, machine IR and PTX in, the compiler's own answer with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import verilocc_bench as vb
from tests.backends.nvidia.assembled_kernels import LOOP, require_tools
from tests.command_line import CommandLine
from verilocc_bench.backends.amdgpu.kernel import is_llvm_ir

LLVM_IR = """
target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workitem.id.x()

define amdgpu_kernel void @sum_of_products(ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
entry:
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %at.a = getelementptr <4 x float>, ptr addrspace(1) %a, i32 %id
  %at.b = getelementptr <4 x float>, ptr addrspace(1) %b, i32 %id
  %x = load <4 x float>, ptr addrspace(1) %at.a
  %y = load <4 x float>, ptr addrspace(1) %at.b
  %product = fmul <4 x float> %x, %y
  %sum = fadd <4 x float> %product, %y
  store <4 x float> %sum, ptr addrspace(1) %at.b
  ret void
}

define amdgpu_kernel void @copied(ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
entry:
  %x = load i32, ptr addrspace(1) %a
  store i32 %x, ptr addrspace(1) %b
  ret void
}

attributes #0 = { "target-cpu"="gfx942" "amdgpu-flat-work-group-size"="1,256" }
"""


@pytest.fixture
def own_ir(tmp_path: Path) -> Path:
    path = tmp_path / "own.ll"
    path.write_text(LLVM_IR)
    return path


def test_what_llvm_ir_is() -> None:
    assert is_llvm_ir(LLVM_IR)
    assert not is_llvm_ir("--- |\n" + LLVM_IR + "\n---\nname: f\n...\n")
    assert not is_llvm_ir("define nothing")


@pytest.mark.usefixtures("llc")
def test_llvm_ir_has_the_compilers_answer(own_ir: Path) -> None:
    problem = vb.load_problem(own_ir, function="sum_of_products")
    assert problem.arch == "gfx942"  # as the code says
    assert problem.label is not None
    assert problem.label_source.startswith("llvm-greedy 22.")
    assert problem.label_absence is None
    assert vb.verify(problem, problem.label, judge="all").valid
    assert vb.allocate(problem, "compiler").assignment == problem.label
    with pytest.raises(vb.InputError, match="for gfx90a, this is for gfx942"):
        vb.load_problem(own_ir, function="sum_of_products", arch="gfx90a")


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_machine_ir_is_worked_with(
    arch: str, llc: Callable[..., str], run: CommandLine, tmp_path: Path
) -> None:
    path, names, answer = (tmp_path / name for name in ("own.mir", "map", "answer.json"))
    path.write_text(llc(LLVM_IR.replace("gfx942", arch), arch, "-O3", "-stop-before=greedy"))
    chosen = (path, "--arch", arch, "--function", "sum_of_products")
    assert f"target {arch}" in run("normalize", *chosen, "--map", names).out
    registers = list(json.loads(names.read_text()))
    assert registers == [f"%{number}" for number in range(len(registers))]
    judged = (path, answer, *chosen[1:])
    for model in ("linear-scan", "graph-coloring"):
        run("allocate", "--model", model, *chosen, "-o", answer)
        run("verify", *judged)
    document = json.loads(answer.read_text())
    document["assignment"]["%0"] = document["assignment"]["%1"]
    answer.write_text(json.dumps(document))
    run("verify", *judged, status=1)


@pytest.mark.usefixtures("llc")
def test_machine_ir_has_the_same_answer(own_ir: Path, tmp_path: Path) -> None:
    by_ir = vb.load_problem(own_ir, function="copied")
    path = tmp_path / "own.mir"
    path.write_text(by_ir.kernel().code.text)
    by_mir = vb.load_problem(path, function="copied", arch="gfx942")
    assert by_mir.id == by_ir.id
    assert by_mir.label == by_ir.label


@pytest.mark.usefixtures("llc")
def test_the_commands(own_ir: Path, tmp_path: Path, run: CommandLine) -> None:
    chosen = [str(own_ir), "--function", "sum_of_products"]
    answer, row = str(tmp_path / "answer.json"), str(tmp_path / "row.json")
    run("allocate", "--model", "linear-scan", *chosen, "-o", answer)
    run("verify", *chosen, answer)
    compared = run.json("compare", *chosen, answer)
    assert "llvm-greedy 22." in json.dumps(compared)
    told = run.json("problem", *chosen, "-o", row)
    assert told["title"] == "own.ll: sum_of_products"
    assert told["its_answer"].startswith("valid: ")
    out = run("problem", row).out
    assert told["id"] in out
    assert "llvm-greedy 22." in out
    run("lower", *chosen, answer, "-o", tmp_path / "own.o")
    assert (tmp_path / "own.o").read_bytes().startswith(b"\x7fELF")


@pytest.mark.usefixtures("llc")
def test_bad_llvm_ir_is_told_in_one_line(own_ir: Path, run: CommandLine) -> None:
    run.refuses(["problem", own_ir], "sum_of_products, copied")
    assert run("normalize", "--list", own_ir).out.count(" yes ") == 2
    command = ["problem", own_ir, "--function", "copied"]
    own_ir.write_text(LLVM_IR.replace("fmul <4 x float>", "fmul <5 x float>"))
    run.refuses(command, own_ir, "error:")
    own_ir.write_text(LLVM_IR.replace('"target-cpu"="gfx942" ', ""))
    run.refuses(command, "--arch")


def test_without_llc_there_is_no_label_and_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = next(p for p in vb.load_problems("mini", arch="gfx942", limit=1))
    path = tmp_path / "own.mir"
    path.write_text(row.kernel().code.text)
    monkeypatch.setenv("VERILOCC_BENCH_LLC", "/no/such/llc")
    problem = vb.load_problem(path, arch="gfx942")
    assert problem.label is None
    assert "/no/such/llc" in str(problem.label_absence)
    with pytest.raises(vb.InputError, match="no answer of the compiler"):
        vb.allocate(problem, "compiler")
    assert vb.verify(problem, vb.allocate(problem, "linear-scan")).valid


def test_ptx_is_assembled(tmp_path: Path, run: CommandLine) -> None:
    require_tools()
    path = tmp_path / "own.ptx"
    path.write_text(LOOP)
    problem = vb.load_problem(path)
    assert problem.arch == "sm_80"
    assert problem.label is not None
    assert vb.verify(problem, problem.label).valid
    lowered = vb.lower(problem, problem.label, tmp_path / "own.cubin")
    assert lowered.data == problem.kernel().code.cubin
    path.write_text(LOOP.replace("add.", "sum."))
    err = run.refuses(["problem", path])
    assert "ptxas" in err
