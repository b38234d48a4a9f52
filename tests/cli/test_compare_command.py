"""`compare` from end to end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.backends.nvidia.assembled_kernels import LOOP, assembled, normalized, require_tools
from tests.command_line import CommandLine, answered
from tests.sampling import some_of
from verilocc_bench.allocators import answer_from_assignment, linear_scan
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.backends.amdgpu.cycles import find_analyzer
from verilocc_bench.cli import main
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.verification import Verifier

ROWS = load_rows("mini").rows
AMD_ROW = next(row for row in ROWS if row.id == "8223b064765a0a4d")
SPLIT_ROW = min(
    (row for row in load_rows("mini", track="split").rows if row.arch == "gfx942"),
    key=lambda row: row.n_instructions,
)
NVIDIA_ROW = min((row for row in ROWS if row.arch == "sm_80"), key=lambda row: row.n_instructions)
needs_llc = pytest.mark.usefixtures("llc")


@pytest.fixture(name="run")
def _run(run: CommandLine) -> CommandLine:
    return run.of("compare")


def scanned(row: Row, path: Path) -> tuple[AllocationProblem, dict[str, str]]:
    """linear-scan's answer in a file."""
    problem = AllocationProblem.from_text(row.normalized)
    answer = answer_from_assignment(problem, linear_scan(problem))
    answered(path, answer, id=row.id)
    return problem, answer


@needs_llc
def test_an_answer_against_the_label(run: CommandLine, tmp_path: Path) -> None:
    path, folder = tmp_path / "a.json", tmp_path / "out"
    problem, answer = scanned(AMD_ROW, path)
    out, err = run(AMD_ROW.id, path, "--json", "-o", folder)
    document: dict[str, Any] = json.loads(out)
    assert err == ""
    assert json.loads((folder / "comparison.json").read_text()) == document
    assert (document["id"], document["arch"]) == (AMD_ROW.id, "gfx942")
    assert document["other"]["name"] == AMD_ROW.label_source
    for side, assignment in (("answer", answer), ("other", AMD_ROW.label)):
        assert assignment is not None
        metrics = document[side]["metrics"]
        verdict = Verifier(problem).verify(assignment)
        assert verdict.registers_used is not None
        assert metrics["vector_registers"] == verdict.registers_used["vector"]
        assert metrics["occupancy"] == verdict.occupancy == metrics["waves"]
        assert metrics["bank_conflicts"] == count_bank_conflicts(problem, assignment).any
        assembly = (folder / side / "kernel.s").read_text()
        assert metrics["waits"] == len(re.findall(r"^\ts_waitcnt", assembly, re.MULTILINE))
        assert metrics["instructions"] > metrics["waits"] > 0
        assert (folder / side / "kernel.o").read_bytes().startswith(b"\x7fELF")
        copied = json.loads((folder / side / "answer.json").read_text())
        assert copied == {"id": AMD_ROW.id, "assignment": assignment}
    assert document["versions"]["llc"].startswith("22.")
    assert "banks" in document["words"][-1]
    assert str(tmp_path) not in out
    again = tmp_path / "again"
    text = run(AMD_ROW.id, path, answered(tmp_path / "l.json", AMD_ROW.label), "-o", again).out
    assert text.endswith(f"wrote {again}\n")
    assert "loop_waits" in text
    for name in ("answer/kernel.o", "other/kernel.o", "other/kernel.s", "commands.sh"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@needs_llc
def test_equal_assignments_are_equal_and_the_commands_make_the_files_again(
    run: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    document = run.json(AMD_ROW.id, answered(tmp_path / "l.json", AMD_ROW.label), "-o", folder)
    assert document["answer"]["metrics"] == document["other"]["metrics"]
    assert document["answer"]["loops"] == document["other"]["loops"]
    cycles = document["answer"]["metrics"]["loop_cycles"]
    assert (cycles is None) == (find_analyzer().program is None)
    script = (folder / "commands.sh").read_text()
    names = ("answer/kernel.s", "answer/kernel.o", "other/kernel.s", "other/kernel.o")
    before = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    without_lld = re.sub(r"^ld\.lld.*", "", script, flags=re.MULTILINE)
    subprocess.run(["/bin/sh", "-c", without_lld], cwd=folder, check=True, capture_output=True)
    assert {name: (folder / name).read_bytes() for name in names} == before


@needs_llc
def test_the_other_side_of_own_machine_ir_is_read_off_llc(run: CommandLine, tmp_path: Path) -> None:
    mir = tmp_path / "kernel.mir"
    mir.write_text(load_raw_row("mini", AMD_ROW.id).content)
    path = answered(tmp_path / "l.json", AMD_ROW.label)
    document = run.json(mir, path, "--arch", "gfx942")
    assert document["other"]["name"].startswith("llvm-greedy 22.")
    assert document["other"]["metrics"] == document["answer"]["metrics"]
    assert document["other"]["metrics"]["bank_conflicts"] is not None
    run.refuses([mir, path], str(mir), "--arch")


@needs_llc
def test_where_llc_splits_live_ranges_the_other_is_its_own_code(
    run: CommandLine, tmp_path: Path
) -> None:
    """For a row of the split track, and for a file of machine IR."""
    path, folder, mir = (tmp_path / name for name in ("a.json", "out", "kernel.mir"))
    mir.write_text(load_raw_row("mini", SPLIT_ROW.id).content)
    assert main(["allocate", "--model", "spill-everywhere", SPLIT_ROW.id, "-o", str(path)]) == 0
    for problem in ((SPLIT_ROW.id, path), (mir, path, "--arch", "gfx942")):
        document = run.json(*problem, "-o", folder)
        answer, other = document["answer"]["metrics"], document["other"]["metrics"]
        assert document["other"]["name"] == "llc's own"
        assert answer["bank_conflicts"] is other["bank_conflicts"] is None
        assert other["vgprs"] > 0
        said = "llc's own: bank conflicts of llc's own allocation are not counted"
        assert said in document["words"]
        assert not (folder / "other" / "answer.json").exists()
        assert (folder / "other" / "kernel.o").exists()
        shutil.rmtree(folder)


@needs_llc
def test_without_llvm_mca_cycles_are_null(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "there is no llvm-mca of LLVM 22"
    monkeypatch.setattr(
        "verilocc_bench.backends.amdgpu.compare.find_analyzer",
        lambda: type(find_analyzer())(None, None, missing),
    )
    document = run.json(AMD_ROW.id, answered(tmp_path / "l.json", AMD_ROW.label))
    assert document["answer"]["metrics"]["loop_cycles"] is None
    assert any(missing in word for word in document["words"])
    assert "llvm-mca" not in document["versions"]


def test_bad_input_is_one_line(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = answered(tmp_path / "l.json", AMD_ROW.label)
    run.refuses(["0000000000000000", path], "neither a file nor an id")
    run.refuses([AMD_ROW.id, path, "-o", path], str(path), "expected a folder")
    monkeypatch.delenv("VERILOCC_BENCH_LLC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    run.refuses([AMD_ROW.id, path], "needs llc of LLVM 22", "VERILOCC_BENCH_LLC")


@needs_llc
def test_a_wrong_answer_writes_nothing(run: CommandLine, tmp_path: Path) -> None:
    assert AMD_ROW.label is not None
    good = answered(tmp_path / "l.json", AMD_ROW.label)
    wrong = answered(tmp_path / "wrong.json", dict.fromkeys(AMD_ROW.label, "v0"))
    folder = tmp_path / "out"
    for pair in ((wrong,), (good, wrong)):
        out, err = run(AMD_ROW.id, *pair, "-o", folder, status=1)
        assert out == ""
        assert err.startswith("verilocc-bench compare: ")
        assert "wrong.json: a wrong answer" in err
        assert not folder.exists()


@pytest.mark.slow
def test_cubins(run: CommandLine, tmp_path: Path) -> None:
    require_tools()
    path, folder = tmp_path / "a.json", tmp_path / "out"
    scanned(NVIDIA_ROW, path)
    document = run.json(NVIDIA_ROW.id, path, "-o", folder)
    other = document["other"]
    assert (other["metrics"]["hazards"], other["metrics"]["runnable"]) == (0, True)
    assert other["metrics"]["changed_instructions"] == 0
    answer = document["answer"]
    assert answer["metrics"]["hazards"] == len(answer["cubin"]["hazards"])
    assert answer["metrics"]["runnable"] == answer["cubin"]["runnable"]
    assert answer["metrics"]["occupancy"] > 0
    assert (folder / "answer" / "kernel.cubin").read_bytes().startswith(b"\x7fELF")


@pytest.mark.slow
def test_a_cubin_of_ones_own(run: CommandLine, tmp_path: Path) -> None:
    cubin = tmp_path / "loop.cubin"
    cubin.write_bytes(assembled(LOOP))
    problem = normalized(cubin.read_bytes(), 255)
    own = answer_from_assignment(AllocationProblem(problem.function), problem.assignment)
    text, err = run(cubin, answered(tmp_path / "a.json", own))
    assert err == ""
    assert "\nanswer: runnable\nthe compiler: runnable\n" in text
    assert re.search(r"^changed_instructions +0 +0 +0$", text, re.MULTILINE)


NAMED = """--- |
  target triple = "amdgcn-amd-amdhsa"
  define amdgpu_kernel void @NAME() {
    ret void
  }
...
---
name: NAME
tracksRegLiveness: true
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    liveins: $vgpr0
    %0:vgpr_32 = COPY $vgpr0
    %1:vgpr_32 = V_MUL_LO_U32_e64 %0, %0, implicit $exec
    GLOBAL_STORE_DWORD_SADDR %0, %1, undef $sgpr0_sgpr1, 0, 0, implicit $exec
    S_ENDPGM 0
...
"""


@needs_llc
@pytest.mark.parametrize(
    "name", some_of(['it\'s "$c" \\@.', "a-b", "é", "a b", "two\nlines", "a$.b@c"], one_in=2)
)
def test_names_that_llvm_puts_in_quotes(run: CommandLine, tmp_path: Path, name: str) -> None:
    quoted = "".join(f"\\{byte:02X}" for byte in name.encode())
    text = NAMED.replace("@NAME", f'@"{quoted}"').replace("NAME", json.dumps(name))
    machine_ir, answer, folder = tmp_path / "k.mir", tmp_path / "a.json", tmp_path / "out"
    machine_ir.write_text(text)
    answered(answer, {"%0": "v0", "%1": "v6"})
    document = run.json(machine_ir, answer, "--arch", "gfx942", "-o", folder)
    assert document["function"] == name
    assert document["answer"]["metrics"]["vgprs"] == 7
    assert document["answer"]["metrics"]["instructions"] > 2
    commands = (folder / "commands.sh").read_text().splitlines()
    assert commands[1].startswith("# The kernel is ")
    assert commands[3] == "set -e"
