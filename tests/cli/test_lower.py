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
from tests.command_line import CommandLine
from verilocc_bench.allocators import NamedAssignment, answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu import linking
from verilocc_bench.backends.nvidia.architectures import KNOWN
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.ir import Assignment
from verilocc_bench.machine.code_object import load_code_object

ROWS = load_rows("mini").rows
ROW = min((row for row in ROWS if row.arch == "sm_80"), key=lambda row: row.n_instructions)


@pytest.fixture(name="run")
def _run(run: CommandLine) -> CommandLine:
    return run.of("lower")


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


def writes_nothing(run: CommandLine, *words: object) -> None:
    """A wrong answer is said, and no file is written."""
    out, err = run(*words, status=1)
    assert (out, "a wrong answer" in err) == ("", True)
    assert not Path(str(words[-1])).exists()


def test_the_compilers_own_answer_gives_the_same_file(
    run: CommandLine, cubin: Path, tmp_path: Path
) -> None:
    problem = normalized(cubin.read_bytes(), 255)
    own = answer_from_assignment(AllocationProblem(problem.function), problem.assignment)
    output = tmp_path / "new" / "out.cubin"
    out, err = run(cubin, answer(tmp_path / "a.json", own), "-o", output)
    assert err == ""
    assert "0 changed; 0 reuse marks cleared" in out
    assert out.endswith(f"\nthe compiler's own assignment\nwrote {output}\n")
    assert output.read_bytes() == cubin.read_bytes()


@pytest.mark.slow
def test_another_answer_is_written_with_its_hazards(
    run: CommandLine, cubin: Path, tmp_path: Path
) -> None:
    problem = normalized(cubin.read_bytes(), 255)
    other = answer(tmp_path / "a.json", linear_scan(problem))
    output = tmp_path / "out.cubin"
    assert "not runnable: " in run(cubin, other, "--arch", "sm_80", "-o", output).out
    summary = run.json(cubin, other, "--function", "sums", "-o", output)
    assert summary["function"] == "sums"
    assert not summary["runnable"]
    assert summary["verdict"] == "not runnable"
    assert summary["reasons"]
    assert summary["changed_instructions"] <= summary["instructions"]
    assert {"kind", "registers", "address", "after_address"} <= {
        key for hazard in summary["hazards"] for key in hazard
    } or not summary["hazards"]
    assert read_cubin(output.read_bytes()).kernels[0].register_count == summary["register_count"]


def test_a_wrong_answer_writes_nothing(run: CommandLine, cubin: Path, tmp_path: Path) -> None:
    problem = normalized(cubin.read_bytes(), 255)
    wrong = dict.fromkeys(problem.assignment, problem.assignment[0])
    writes_nothing(run, cubin, answer(tmp_path / "a.json", wrong), "-o", tmp_path / "out.cubin")


def test_bad_cubins_are_told_in_one_line(run: CommandLine, cubin: Path, tmp_path: Path) -> None:
    some = answer(tmp_path / "a.json", {"%0": "R0"})
    output = tmp_path / "out.cubin"
    end = ("-o", output)
    several = tmp_path / "several.cubin"
    several.write_bytes(assembled(SEVERAL))
    run.refuses([several, some, *end], str(several), "several kernels", "--function", "plain")
    run.refuses([several, some, "--function", "f", *end], "there is no kernel 'f'")
    other = tmp_path / "other.cubin"
    other.write_bytes(assembled(LOOP.replace("sm_80", "sm_75"), "sm_75"))
    run.refuses(
        [other, some, *end],
        str(other),
        f"expected a cubin for {KNOWN}, this is one for sm_75",
    )
    part = tmp_path / "part.cubin"
    part.write_bytes(cubin.read_bytes()[:2000])
    run.refuses([part, some, *end], str(part), "byte 2000", "not whole")
    run.refuses([some, some, "-o", tmp_path / "out.s"], str(some), "expected a row")
    run.refuses(
        [cubin, some, "--arch", "gfx90a", *end],
        "expected machine IR for gfx90a, this is a cubin",
    )
    run.refuses([cubin, tmp_path / "none.json", *end], "no such file")
    run.refuses([tmp_path / "none.cubin", some, *end], "there is no such file")
    assert not output.exists()


def test_an_id_of_the_dataset(run: CommandLine, tmp_path: Path) -> None:
    require_tools()
    assert ROW.label is not None
    output = tmp_path / "out.cubin"
    summary = run.json(ROW.id, answer(tmp_path / "a.json", ROW.label), "-o", output)
    assert (summary["runnable"], summary["changed_instructions"]) == (True, 0)
    assert read_cubin(output.read_bytes()).architecture == "sm_80"


def test_edits_are_not_for_cubins(run: CommandLine, cubin: Path, tmp_path: Path) -> None:
    edits = {"insert": [{"at": [0, 0], "spill": ["slot0", "%0"]}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"assignment": {"%0": "R0"}, "edits": edits}))
    run.refuses([cubin, path, "-o", tmp_path / "o"], "edits are lowered on gfx90a and gfx942 only")


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
def test_machine_ir_becomes_machine_code(
    run: CommandLine, mir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = amd_answer(tmp_path / "a.json")
    assembly, again = tmp_path / "new" / "out.s", tmp_path / "again.s"
    out, err = run(AMD_ROW.id, some, "-o", assembly)
    assert err == ""
    assert re.fullmatch(
        r"\w+: \d+ instructions of machine IR, \d+ identity copies went away, 0 edits; "
        r"registers v \d+, a 0, s \d+, vcc \d\n"
        r"llc 22\.[\d.]+ and its machine verifier accept it\n"
        r"the machine code says: vgprs \d+, agpr_offset \d+, sgprs \d+, scratch_bytes 0, waves \d\n"
        rf"wrote {assembly}\n",
        out,
    )
    run(mir, some, "--arch", "gfx942", "-o", again)
    assert again.read_bytes() == assembly.read_bytes()
    assert "s_endpgm" in assembly.read_text()
    summary = run.json(AMD_ROW.id, some, "-o", tmp_path / "out.o")
    assert (tmp_path / "out.o").read_bytes().startswith(b"\x7fELF")
    assert (summary["function"], summary["arch"]) == (AMD_ROW.kernel, "gfx942")
    assert (summary["inserted"], summary["output"]) == (0, str(tmp_path / "out.o"))
    assert summary["llc_version"].startswith("22.")
    assert "-verify-machineinstrs" in summary["llc_options"]
    assert set(summary["registers"]) == {"v", "a", "s", "vcc"}
    assert summary["machine_code"]["vgprs"] == summary["registers"]["v"]
    run(AMD_ROW.id, some, "-o", tmp_path / "out.co")
    kernel = load_code_object((tmp_path / "out.co").read_bytes()).kernel()
    assert kernel.name == AMD_ROW.kernel
    monkeypatch.setattr(linking, "_lld", lambda: None)
    monkeypatch.setattr(linking, "find_spec", lambda _: None)
    run.refuses([AMD_ROW.id, some, "-o", tmp_path / "out.hsaco"], "install lld")


@needs_llc
@pytest.mark.parametrize("kind", ["V", "S"])
def test_edits_become_machine_code(run: CommandLine, tmp_path: Path, kind: str) -> None:
    classes = AllocationProblem.from_text(AMD_ROW.normalized).function.virtual_registers
    name = next(f"%{n}" for n, c in enumerate(classes) if c.name == kind)
    insert = [{"at": [0, 0], "spill": ["slot0", name]}, {"at": [0, 0], "reload": [name, "slot0"]}]
    path = tmp_path / "a.json"
    document = {"assignment": AMD_ROW.label, "edits": {"insert": insert}}
    path.write_text(json.dumps(document))
    summary = run.json(AMD_ROW.id, path, "-o", tmp_path / "out.s")
    assert summary["inserted"] == 2
    # A spilled scalar takes a VGPR, and the machine code says so.
    assert summary["machine_code"]["vgprs"] == summary["registers"]["v"] + (kind == "S")
    assert ("Folded Spill" in (tmp_path / "out.s").read_text()) or kind == "S"
    document["edits"] = {"replace": [[0, 0, 0, name]], "insert": insert}
    path.write_text(json.dumps(document))
    writes_nothing(run, AMD_ROW.id, path, "-o", tmp_path / "wrong.s")


@needs_llc
def test_no_more_registers_than_the_codes_own_threads_leave(
    run: CommandLine, mir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = mir.read_text()
    mir.write_text(re.sub(r'"amdgpu-flat-work-group-size"="\d+,\d+"', "", text))
    command = [mir, amd_answer(tmp_path / "a.json"), "--arch", "gfx942", "--max-threads", "64"]
    run.refuses([*command, "-o", tmp_path / "out.mir"], "work-group size only 128")
    CommandLine(capsys, "compare").refuses(command, "work-group size only 128")


def test_machine_ir_without_llc(
    run: CommandLine, mir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = amd_answer(tmp_path / "a.json")
    monkeypatch.delenv("VERILOCC_BENCH_LLC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    output = tmp_path / "out.s"
    command = [AMD_ROW.id, some, "-o", output]
    run.refuses(command, "needs llc of LLVM 22", "apt-get install llvm-22", "VERILOCC_BENCH_LLC")
    for name, words in (("none", "cannot be run"), ("old", "is of LLVM 21.1.0; expected LLVM 22")):
        program = tmp_path / "old"
        program.write_text("#!/bin/sh\necho LLVM version 21.1.0\n")
        program.chmod(0o755)
        monkeypatch.setenv("VERILOCC_BENCH_LLC", str(tmp_path / name))
        run.refuses(command, "VERILOCC_BENCH_LLC", words)
    assert not output.exists()
    assigned = tmp_path / "out.mir"
    assert run.json(AMD_ROW.id, some, "-o", assigned)["llc_version"] is None
    assert "noVRegs:         true" in assigned.read_text()
    run(mir, some, "--arch", "gfx942", "-o", tmp_path / "b.mir")
    assert (tmp_path / "b.mir").read_text() == assigned.read_text()


def test_what_llc_refuses_is_told_in_one_line(
    run: CommandLine, mir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        run.refuses([mir, some, "--arch", "gfx942", "-o", output], str(mir), words)
        assert not output.exists()


@needs_llc
@pytest.mark.parametrize("kind", ["s", "o"])
def test_code_that_cannot_be_decoded_is_refused(
    run: CommandLine, tmp_path: Path, kind: str
) -> None:
    for word, status in (("0x7e000280", 0), ("0xffffffff", 2)):
        path, output = tmp_path / "words.mir", tmp_path / f"{status}.{kind}"
        path.write_text(
            "--- |\n  define amdgpu_kernel void @words() { ret void }\n...\n"
            "---\nname: words\ntracksRegLiveness: true\nbody: |\n  bb.0:\n"
            "    %0:vgpr_32 = IMPLICIT_DEF\n"
            f'    INLINEASM &".long {word}", 1, implicit %0\n    S_ENDPGM 0\n...\n'
        )
        some = answer(tmp_path / "a.json", {"%0": "v0"})
        err = run(path, some, "--arch", "gfx942", "-o", output, status=status).err
        assert output.exists() == (status == 0), err
    assert err.startswith(f"verilocc-bench lower: {path}")
    assert "words has code that gfx942 lacks" in err
    assert "decode '.long 0xffffffff'" in err


def test_bad_machine_ir_is_told_in_one_line(run: CommandLine, mir: Path, tmp_path: Path) -> None:
    some = amd_answer(tmp_path / "a.json")
    output = tmp_path / "out.mir"
    run.refuses([AMD_ROW.id, some, "-o", tmp_path / "o"], "ends in .s", ".o", ".mir")
    run.refuses([mir, some, "-o", output], "--arch")
    run.refuses(
        [mir, some, "--arch", "sm_80", "-o", output], str(mir), "expected a cubin for sm_80"
    )
    run.refuses([mir, some, "--arch", "gfx1100", "-o", output], "gfx1100")
    run.refuses([AMD_ROW.id, some, "--arch", "gfx942", "-o", output], "--arch is for compiled code")
    text = mir.read_text()
    mir.write_text(text[: len(text) // 2])
    run.refuses([mir, some, "--arch", "gfx942", "-o", output], str(mir), "cut off")
    mir.write_text(text)
    assert AMD_ROW.label is not None
    wrong = answer(tmp_path / "w.json", {**AMD_ROW.label, "%0": "v999"})
    out, err = run(mir, wrong, "--arch", "gfx942", "--json", "-o", output, status=1)
    assert not json.loads(out)["valid"]
    assert "a wrong answer" in err
    assert not output.exists()
