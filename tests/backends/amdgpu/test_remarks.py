"""Machine IR from before allocation's input is told by the pass that has not run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.amdgpu.machine_ir import ROWS, load
from tests.backends.amdgpu.mir_texts import mir
from tests.backends.amdgpu.test_own_answer import ir_of
from tests.sampling import few_rows, one_of_each_kernel
from verilocc_bench.backends.amdgpu.kernel import read_kernel
from verilocc_bench.backends.amdgpu.remarks import remarks
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.cli import main

KERNELS = Path(__file__).parent / "kernels"
GRAPH = "---\n========== SCHEDULING DAG ==========\nSU(0):   S_ENDPGM 0\n  # preds left       : 0\n"


def remark(text: str, arch: str = "gfx942", function: str | None = None) -> str:
    kernel = read_kernel(text.encode(), Path("x.mir"), ReadOptions(arch, function))
    return " ".join(remarks(kernel))


@pytest.mark.parametrize(
    "row", few_rows(one_of_each_kernel(ROWS)), ids=lambda row: f"{row.arch}-{row.kernel}"
)
def test_rows_are_the_input_of_allocation(row) -> None:  # type: ignore[no-untyped-def]
    text = load(row).text
    assert remark(text, row.arch) == ""
    assert "LLVM's scheduler" in remark(text + GRAPH, row.arch)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_marks_that_the_coalescer_clears(arch: str, llc: Callable[..., str]) -> None:
    text = (KERNELS / "divergent_loop.ll").read_text()
    found = remark(llc(text, arch, "-stop-after=twoaddressinstruction"), arch)
    assert "from before LLVM's register coalescer" in found
    assert remark(llc(text, arch, "-stop-before=greedy"), arch) == ""


@pytest.mark.slow
def test_an_order_that_the_scheduler_changes(llc: Callable[..., str]) -> None:
    row = max((row for row in ROWS if row.kernel == "gemm_gated"), key=lambda row: row.arch)
    text = ir_of(row)
    found = remark(llc(text, row.arch, "-stop-before=machine-scheduler"), row.arch)
    assert "from before LLVM's scheduler" in found
    assert remark(llc(text, row.arch, "-stop-after=machine-scheduler"), row.arch) == ""


def test_a_claimed_occupancy_that_cannot_be() -> None:
    """What LLVM's scheduler leaves is what its order of instructions allows."""
    head = "machineFunctionInfo:\n  isEntryFunction: true\n  occupancy: 8\n"
    wide = "\n".join(f"    %{n}:vreg_512_align2 = IMPLICIT_DEF" for n in range(5))
    uses = "\n    S_NOP 0, " + ", ".join(f"implicit %{n}" for n in range(5))
    assert "LLVM's scheduler" in remark(mir(wide + uses, head))
    assert remark(mir(wide + uses, head.replace("8", "5"))) == ""
    assert remark(mir(wide + uses)) == ""


def test_the_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(mir("    S_ENDPGM 0") + GRAPH + mir("    S_NOP 0").replace("f", "g", 1))
    for command in ("normalize", "problem", "bound"):
        assert main([command, str(path), "--arch", "gfx942", "--function", "f"]) == 0
        told = capsys.readouterr().err.splitlines()
        assert (
            sum(f"verilocc-bench {command}: {path}: this machine IR" in line for line in told) == 1
        )
