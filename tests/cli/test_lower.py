"""`lower` from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import (
    LOOP,
    SEVERAL,
    assembled,
    linear_scan,
    normalized,
    require_tools,
)
from verilocc_bench.allocators import NamedAssignment, answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.architectures import KNOWN
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.ir import Assignment

ROWS = load_rows("mini").rows
ROW = min((row for row in ROWS if row.arch == "sm_80"), key=lambda row: row.n_instructions)


@pytest.fixture(name="run")
def _run(capsys):  # type: ignore[no-untyped-def]
    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(["lower", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture(name="cubin")
def _cubin(tmp_path: Path) -> Path:
    path = tmp_path / "loop.cubin"
    path.write_bytes(assembled(LOOP))
    return path


def answer(path: Path, assignment: Assignment | NamedAssignment) -> Path:
    """An answer file for LOOP, or for any function if it has names already."""
    names = {
        name: base if isinstance(base, str) else f"{base.file}{base.index}"
        for name, base in assignment.items()
    }
    text = {name if isinstance(name, str) else f"%{name}": base for name, base in names.items()}
    path.write_text(json.dumps({"assignment": text}))
    return path


def refused(result: tuple[int, str, str], *words: str) -> None:
    status, out, err = result
    assert (status, out) == (2, ""), result
    assert err.count("\n") == 1
    assert err.startswith("verilocc-bench lower: ")
    for word in words:
        assert word in err


def test_the_compilers_own_answer_gives_the_same_file(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    own = answer_from_assignment(AllocationProblem(problem.function), problem.assignment)
    output = tmp_path / "new" / "out.cubin"
    result = run(cubin, answer(tmp_path / "a.json", own), "-o", output)
    assert result[::2] == (0, "")
    assert "0 changed; 0 reuse marks cleared" in result[1]
    assert result[1].endswith(f"\nthe compiler's own assignment\nwrote {output}\n")
    assert output.read_bytes() == cubin.read_bytes()


@pytest.mark.slow
def test_another_answer_is_written_with_its_hazards(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    other = answer(tmp_path / "a.json", linear_scan(problem))
    output = tmp_path / "out.cubin"
    status, out, _ = run(cubin, other, "--arch", "sm_80", "-o", output)
    assert status == 0
    assert "not runnable: " in out
    status, out, _ = run(cubin, other, "--function", "sums", "--json", "-o", output)
    summary = json.loads(out)
    assert status == 0
    assert summary["function"] == "sums"
    assert not summary["runnable"]
    assert summary["verdict"] == "not runnable"
    assert summary["reasons"]
    assert summary["changed_instructions"] <= summary["instructions"]
    assert {"kind", "registers", "address", "after_address"} <= {
        key for hazard in summary["hazards"] for key in hazard
    } or not summary["hazards"]
    assert read_cubin(output.read_bytes()).kernels[0].register_count == summary["register_count"]


def test_a_wrong_answer_writes_nothing(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    wrong = dict.fromkeys(problem.assignment, problem.assignment[0])
    output = tmp_path / "out.cubin"
    status, out, err = run(cubin, answer(tmp_path / "a.json", wrong), "-o", output)
    assert (status, out) == (1, "")
    assert "a wrong answer" in err
    assert not output.exists()


def test_bad_cubins_are_told_in_one_line(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    some = answer(tmp_path / "a.json", {"%0": "R0"})
    output = tmp_path / "out.cubin"
    end = ("-o", output)
    several = tmp_path / "several.cubin"
    several.write_bytes(assembled(SEVERAL))
    refused(run(several, some, *end), str(several), "several kernels", "--function", "plain")
    refused(run(several, some, "--function", "f", *end), "there is no kernel 'f'")
    other = tmp_path / "other.cubin"
    other.write_bytes(assembled(LOOP.replace("sm_80", "sm_75"), "sm_75"))
    refused(
        run(other, some, *end),
        str(other),
        f"expected a cubin for {KNOWN}, this is one for sm_75",
    )
    part = tmp_path / "part.cubin"
    part.write_bytes(cubin.read_bytes()[:2000])
    refused(run(part, some, *end), str(part), "byte 2000", "not whole")
    refused(run(some, some, "-o", tmp_path / "out.s"), str(some), "expected a row")
    refused(
        run(cubin, some, "--arch", "gfx90a", *end),
        "expected machine IR for gfx90a, this is a cubin",
    )
    refused(run(cubin, tmp_path / "none.json", *end), "no such file")
    refused(run(tmp_path / "none.cubin", some, *end), "there is no such file")
    assert not output.exists()


def test_an_id_of_the_dataset(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    require_tools()
    assert ROW.label is not None
    output = tmp_path / "out.cubin"
    status, out, _ = run(ROW.id, answer(tmp_path / "a.json", ROW.label), "--json", "-o", output)
    assert status == 0
    assert json.loads(out)["runnable"]
    assert json.loads(out)["changed_instructions"] == 0
    assert read_cubin(output.read_bytes()).architecture == "sm_80"


def test_edits_are_not_for_cubins(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    edits = {"insert": [{"at": [0, 0], "spill": ["slot0", "%0"]}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"assignment": {"%0": "R0"}, "edits": edits}))
    refused(run(cubin, path, "-o", tmp_path / "o"), "edits are lowered on gfx90a and gfx942 only")


AMD_ROWS = [row for row in ROWS if row.arch == "gfx942"]
AMD_ROW = min(AMD_ROWS, key=lambda row: row.n_instructions)
needs_llc = pytest.mark.usefixtures("llc")


def amd_answer(path: Path) -> Path:
    assert AMD_ROW.label is not None
    return answer(path, AMD_ROW.label)


@pytest.fixture(name="mir")
def _mir(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.mir"
    path.write_text(load_raw_row("mini", AMD_ROW.id).content)
    return path


@needs_llc
def test_machine_ir_becomes_machine_code(run, mir: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    some = amd_answer(tmp_path / "a.json")
    assembly, again = tmp_path / "new" / "out.s", tmp_path / "again.s"
    status, out, err = run(AMD_ROW.id, some, "-o", assembly)
    assert (status, err) == (0, "")
    assert re.fullmatch(
        r"\w+: \d+ instructions of machine IR, \d+ identity copies went away, 0 edits; "
        r"registers v \d+, a 0, s \d+, vcc \d\n"
        r"llc 22\.[\d.]+ and its machine verifier accept it\n"
        r"the machine code says: vgprs \d+, agpr_offset \d+, sgprs \d+, scratch_bytes 0, waves \d\n"
        rf"wrote {assembly}\n",
        out,
    )
    assert run(mir, some, "--arch", "gfx942", "-o", again)[0] == 0
    assert again.read_bytes() == assembly.read_bytes()
    assert "s_endpgm" in assembly.read_text()
    status, out, _ = run(AMD_ROW.id, some, "--json", "-o", tmp_path / "out.o")
    summary = json.loads(out)
    assert status == 0
    assert (tmp_path / "out.o").read_bytes().startswith(b"\x7fELF")
    assert summary["function"] == AMD_ROW.kernel
    assert summary["arch"] == "gfx942"
    assert summary["inserted"] == 0
    assert summary["output"] == str(tmp_path / "out.o")
    assert summary["llc_version"].startswith("22.")
    assert "-verify-machineinstrs" in summary["llc_options"]
    assert set(summary["registers"]) == {"v", "a", "s", "vcc"}
    assert summary["machine_code"]["vgprs"] == summary["registers"]["v"]


@needs_llc
def test_edits_become_machine_code(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert AMD_ROW.label is not None
    classes = AllocationProblem.from_text(AMD_ROW.normalized).function.virtual_registers
    name = next(f"%{n}" for n, c in enumerate(classes) if c.name == "V")
    insert = [{"at": [0, 0], "spill": ["slot0", name]}, {"at": [0, 0], "reload": [name, "slot0"]}]
    path = tmp_path / "a.json"
    document = {"assignment": AMD_ROW.label, "edits": {"insert": insert}}
    path.write_text(json.dumps(document))
    status, out, _ = run(AMD_ROW.id, path, "--json", "-o", tmp_path / "out.s")
    assert status == 0
    assert json.loads(out)["inserted"] == 2
    assert "Folded Spill" in (tmp_path / "out.s").read_text()
    document["edits"] = {"replace": [[0, 0, 0, name]], "insert": insert}
    path.write_text(json.dumps(document))
    output = tmp_path / "wrong.s"
    status, _, err = run(AMD_ROW.id, path, "-o", output)
    assert status == 1
    assert "a wrong answer" in err
    assert not output.exists()


@needs_llc
def test_scalar_spills_take_a_vgpr_and_that_is_said(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert AMD_ROW.label is not None
    classes = AllocationProblem.from_text(AMD_ROW.normalized).function.virtual_registers
    name = next(f"%{n}" for n, c in enumerate(classes) if c.name == "S")
    insert = [{"at": [0, 0], "spill": ["slot0", name]}, {"at": [0, 0], "reload": [name, "slot0"]}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"assignment": AMD_ROW.label, "edits": {"insert": insert}}))
    status, out, _ = run(AMD_ROW.id, path, "--json", "-o", tmp_path / "out.o")
    summary = json.loads(out)
    assert status == 0
    assert summary["machine_code"]["vgprs"] == summary["registers"]["v"] + 1


def test_no_more_registers_than_the_codes_own_threads_leave(run, mir: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = mir.read_text()
    mir.write_text(re.sub(r'"amdgpu-flat-work-group-size"="\d+,\d+"', "", text))
    some = amd_answer(tmp_path / "a.json")
    command = (mir, some, "--arch", "gfx942", "-o", tmp_path / "out.mir")
    refused(run(*command, "--max-threads", "64"), "work-group size only 128")


@pytest.mark.usefixtures("llc")
def test_nor_does_compare_take_more(
    mir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = mir.read_text()
    mir.write_text(re.sub(r'"amdgpu-flat-work-group-size"="\d+,\d+"', "", text))
    some = amd_answer(tmp_path / "a.json")
    command = ["compare", str(mir), str(some), "--arch", "gfx942", "--max-threads", "64"]
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "work-group size only 128" in err


def test_machine_ir_without_llc(run, mir: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    some = amd_answer(tmp_path / "a.json")
    monkeypatch.delenv("VERILOCC_BENCH_LLC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    output = tmp_path / "out.s"
    result = run(AMD_ROW.id, some, "-o", output)
    refused(result, "needs llc of LLVM 22", "apt-get install llvm-22", "VERILOCC_BENCH_LLC")
    for name, words in (("none", "cannot be run"), ("old", "is of LLVM 21.1.0; expected LLVM 22")):
        program = tmp_path / "old"
        program.write_text("#!/bin/sh\necho LLVM version 21.1.0\n")
        program.chmod(0o755)
        monkeypatch.setenv("VERILOCC_BENCH_LLC", str(tmp_path / name))
        refused(run(AMD_ROW.id, some, "-o", output), "VERILOCC_BENCH_LLC", words)
    assert not output.exists()
    assigned = tmp_path / "out.mir"
    status, out, _ = run(AMD_ROW.id, some, "--json", "-o", assigned)
    assert status == 0
    assert json.loads(out)["llc_version"] is None
    assert "noVRegs:         true" in assigned.read_text()
    assert run(mir, some, "--arch", "gfx942", "-o", tmp_path / "b.mir")[0] == 0
    assert (tmp_path / "b.mir").read_text() == assigned.read_text()


def test_what_llc_refuses_is_told_in_one_line(run, mir: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    some = amd_answer(tmp_path / "a.json")
    program = tmp_path / "llc"
    monkeypatch.setenv("VERILOCC_BENCH_LLC", str(program))
    complaint = (
        "*** Bad machine code: Illegal register ***\n- function: k\n"
        "- basic block: %bb.0 (0x55f1a) [0B;9B)\n- instruction: 16B X\nstack dump"
    )
    crash = (
        "LLVM ERROR: Unsupported instruction : <MCInst 8>\nStack dump:\n"
        "1.\tRunning pass 'AMDGPU Assembly Printer' on function '@k'\n0 libLLVM.so 0x1"
    ).replace("'", "'\\''")
    for body, words in (
        (f"echo '{complaint}'; exit 1", "Illegal register; - basic block: %bb.0; - instruction: X"),
        ("echo 'llc: error: no such thing' >&2; exit 1", "llc: llc: error: no such thing"),
        ("echo boom; exit 3", "llc ended with status 3: boom"),
        ("kill -11 $$", "llc ended by signal 11"),
        (
            f"echo '{crash}'; kill -6 $$",
            "llc ended by signal 6: Unsupported instruction : <MCInst 8>, in function k, pass "
            "AMDGPU Assembly Printer",
        ),
    ):
        program.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo LLVM version 22.1.8 && exit\n{body}\n'
        )
        program.chmod(0o755)
        output = tmp_path / "out.o"
        refused(run(mir, some, "--arch", "gfx942", "-o", output), str(mir), words)
        assert not output.exists()


@needs_llc
@pytest.mark.parametrize("kind", ["s", "o"])
def test_code_that_cannot_be_decoded_is_refused(run, tmp_path: Path, kind: str) -> None:  # type: ignore[no-untyped-def]
    for word, status in (("0x7e000280", 0), ("0xffffffff", 2)):
        path, output = tmp_path / "words.mir", tmp_path / f"{status}.{kind}"
        path.write_text(
            "--- |\n  define amdgpu_kernel void @words() { ret void }\n...\n"
            "---\nname: words\ntracksRegLiveness: true\nbody: |\n  bb.0:\n"
            "    %0:vgpr_32 = IMPLICIT_DEF\n"
            f'    INLINEASM &".long {word}", 1, implicit %0\n    S_ENDPGM 0\n...\n'
        )
        some = answer(tmp_path / "a.json", {"%0": "v0"})
        result = run(path, some, "--arch", "gfx942", "-o", output)
        assert output.exists() == (status == 0), result
    refused(result, str(path), "words has code that gfx942 lacks", "decode '.long 0xffffffff'")


def test_bad_machine_ir_is_told_in_one_line(run, mir: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    some = amd_answer(tmp_path / "a.json")
    output = tmp_path / "out.mir"
    refused(run(AMD_ROW.id, some, "-o", tmp_path / "o"), "ends in .s", ".o", ".mir")
    refused(run(mir, some, "-o", output), "--arch")
    refused(run(mir, some, "--arch", "sm_80", "-o", output), str(mir), "expected a cubin for sm_80")
    refused(run(mir, some, "--arch", "gfx1100", "-o", output), "gfx1100")
    refused(run(AMD_ROW.id, some, "--arch", "gfx942", "-o", output), "--arch is for compiled code")
    text = mir.read_text()
    mir.write_text(text[: len(text) // 2])
    refused(run(mir, some, "--arch", "gfx942", "-o", output), str(mir), "cut off")
    mir.write_text(text)
    assert AMD_ROW.label is not None
    wrong = answer(tmp_path / "w.json", {**AMD_ROW.label, "%0": "v999"})
    status, out, err = run(mir, wrong, "--arch", "gfx942", "--json", "-o", output)
    assert status == 1
    assert not json.loads(out)["valid"]
    assert "a wrong answer" in err
    assert not output.exists()
