"""Counts of assembly, llvm-mca's loops, and what is said where they disagree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from verilocc_bench.backends.amdgpu import cycles
from verilocc_bench.backends.amdgpu.assembly import AssemblyLoop, count_code, innermost_loops
from verilocc_bench.backends.amdgpu.code_worth import (
    analyse_assembly,
    compare_metrics,
    estimate_words,
)
from verilocc_bench.backends.amdgpu.cycles import Analyzer, estimate_loops, find_analyzer
from verilocc_bench.errors import InputError

ASSEMBLY = Path(__file__).with_name("counted.s").read_text()
needs_analyzer = pytest.mark.skipif(
    find_analyzer().program is None and os.environ.get("CI") != "true",
    reason="needs llvm-mca of LLVM 22 (Debian: llvm-22)",
)


def test_counts_by_kind_and_by_loop() -> None:
    counts = count_code(ASSEMBLY, "kernel")
    assert counts.kinds == {
        "wait": 2,
        "nop": 2,
        "branch": 4,
        "scalar": 1,
        "mfma": 1,
        "accumulator_move": 1,
        "vector": 5,
        "local": 1,
        "global": 1,
        "scratch": 1,
    }
    assert counts.instructions == sum(counts.kinds.values()) == 19
    # Outside 6 + 1 + 1, in the outer loop 2 + 2, in the inner one 5, in the last 2.
    assert counts.weighted_instructions == 8 + 10 * (4 + 2) + 100 * 5
    assert (counts.waits, counts.weighted_waits) == (2, 1 + 100)
    assert (counts.nops, counts.wait_states, counts.weighted_wait_states) == (2, 7, 2 + 500)
    assert (counts.register_moves, counts.weighted_register_moves) == (2, 1 + 10)
    assert (counts.spill_code, counts.weighted_spill_code) == (1, 10)
    assert (counts.long_encodings, counts.code_bytes, counts.metadata) == (1, 96, {})
    assert count_code(ASSEMBLY, "other").wait_states == 8
    with pytest.raises(InputError, match="no function 'third'"):
        count_code(ASSEMBLY, "third")


def test_innermost_loops_are_those_without_another() -> None:
    inner, last = innermost_loops(ASSEMBLY, "kernel")
    assert (inner.label, inner.depth, len(inner.instructions)) == (".LBB1_2", 2, 5)
    assert inner.instructions[0] == "ds_read_b32 v5, v1"
    assert (last.label, last.depth) == (".LBB1_5", 1)
    assert last.instructions == ("v_add_u32_e32 v1, v1, v2", "s_cbranch_scc0 .LBB1_5")
    assert innermost_loops(ASSEMBLY, "other") == ()


@needs_analyzer
def test_cycles_are_those_that_llvm_mca_prints(tmp_path: Path) -> None:
    analyzer = find_analyzer()
    loop = innermost_loops(ASSEMBLY, "kernel")[0]
    (estimate,) = estimate_loops([loop], "gfx942", analyzer)
    path = tmp_path / "loop.s"
    path.write_text("\n".join((".LBB1_2:", *loop.instructions, "")))
    assert analyzer.program is not None
    options = ["-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-iterations=100"]
    printed = subprocess.run(
        [analyzer.program, *options, path], capture_output=True, text=True, check=True
    ).stdout
    total = re.search(r"Total Cycles: +(\d+)", printed)
    assert total is not None
    assert estimate.cycles == int(total[1]) / 100
    assert (estimate.instructions, estimate.skipped, estimate.reason) == (5, {}, None)


@needs_analyzer
def test_instructions_that_llvm_mca_does_not_know_are_named() -> None:
    loop = AssemblyLoop(".L", 1, ("v_add_u32_e32 v1, v1, v2", "v_magic v1", "v_magic v2"))
    (estimate,) = estimate_loops([loop], "gfx942", find_analyzer())
    assert estimate.skipped == {"v_magic": 2}
    assert estimate.cycles is not None
    text = ASSEMBLY.replace("v_add_u32_e32", "v_magic").replace("ds_read_b32", "ds_magic")
    words = estimate_words("answer", analyse_assembly(text, "kernel", "gfx942", find_analyzer()))
    expected = ((".LBB1_2", "1 of 5", "ds_magic 1"), (".LBB1_5", "1 of 2", "v_magic 1"))
    for word, (loop, share, unknown) in zip(words, expected, strict=True):
        assert word.startswith("answer: ")
        assert loop in word
        assert share in word
        assert word.endswith(unknown)


def test_without_llvm_mca_there_are_no_cycles_and_that_is_said(monkeypatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv("VERILOCC_BENCH_LLVM_MCA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    analyzer = find_analyzer()
    assert analyzer.program is None
    worth = analyse_assembly(ASSEMBLY, "kernel", "gfx942", analyzer)
    assert worth.loop_cycles is None
    assert [loop.cycles for loop in worth.loops] == [None, None]
    words = estimate_words("label", worth)
    assert len(words) == 2
    assert words[0].startswith("label: no cycles of .LBB1_2: there is no llvm-mca of LLVM 22")
    (word,) = estimate_words("label", analyse_assembly(ASSEMBLY, "other", "gfx942", analyzer))
    assert word.startswith("label: there is no loop")
    program = tmp_path / "old"
    program.write_text("#!/bin/sh\necho LLVM version 21.1.0\n")
    program.chmod(0o755)
    for name, word in (("old", "is of LLVM 21.1.0"), ("none", "cannot|can be run")):
        monkeypatch.setenv("VERILOCC_BENCH_LLVM_MCA", str(tmp_path / name))
        with pytest.raises(InputError, match=word):
            find_analyzer()


def reason_without_cycles(program: str | None) -> str | None:
    """Why an analyzer of a loop has no estimate."""
    loop = AssemblyLoop(".L", 1, ("s_nop 0",))
    (estimate,) = estimate_loops([loop], "gfx942", Analyzer(program, "22.1.8"))
    assert estimate.cycles is None
    return estimate.reason


def test_an_analyzer_that_says_nonsense_is_no_estimate() -> None:
    assert reason_without_cycles(shutil.which("echo")) == "llvm-mca makes nothing of it"
    cannot = "llvm-mca cannot be run: No such file or directory"
    assert reason_without_cycles("/no/such") == cannot


def test_a_loop_on_which_the_analyzer_never_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is given up soon: a single iteration does not end either."""
    monkeypatch.setattr(cycles, "_PROBE_SECONDS", 1)
    asked = tmp_path / "asked"
    program = tmp_path / "llvm-mca"
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec sleep 60\n')
    program.chmod(0o755)
    assert reason_without_cycles(str(program)) == "llvm-mca does not end in time"
    (line,) = asked.read_text().splitlines()
    assert line.endswith("--iterations=1")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bank_conflicts": 3, "loop_cycles": 120.0},
         r"fewer bank conflicts \(3 for 10\), but .*more cycles in loops \(120.00 for 100.00\)"),
        ({"bank_conflicts": 3, "loop_cycles": 100.05},
         r"fewer bank conflicts \(3 for 10\), and .*the same cycles.*\(100.05 for 100.00\)"),
        ({"occupancy": 5, "loop_cycles": 120.0},
         r"a higher occupancy \(5 for 4\), but .*more cycles in loops \(120.00 for 100.00\)"),
        # What points one way needs no words, nor a difference that llvm-mca could see and did not.
        ({"bank_conflicts": 3, "loop_cycles": 80.0}, None),
        ({"loop_waits": 6}, None),
        ({}, None),
        ({"bank_conflicts": 3, "loop_cycles": None}, None),
        ({"occupancy": 3, "loop_cycles": 120.0}, None),
    ],
)  # fmt: skip
def test_disagreement_is_said_in_words(changed: dict[str, float | None], words: str | None) -> None:
    base = {"bank_conflicts": 10, "occupancy": 4, "loop_waits": 5, "loop_cycles": 100.0}
    found = compare_metrics({**base, **changed}, base)
    assert len(found) == (words is not None)
    assert all(re.match(words or "", each) for each in found)
