"""Wrong answers that LLVM's machine verifier is content with, and every judge of ours is not.

Each file in `planted` is a small function; the answer beside it destroys a
value that is still needed, by another that is defined too. What LLVM checks
(classes, alignment, that every register read was written) is all in order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.write_back import write_assignment
from verilocc_bench.settings.judges import JUDGES
from verilocc_bench.targets import get_target
from verilocc_bench.verification import FindingKind, Verifier
from verilocc_bench.verification.judges import Judges

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).with_name("planted")
NAMES = sorted(path.stem for path in FOLDER.glob("*.mir"))
assert len(NAMES) >= 10
FIXED = {"live_in", "vcc_between"}


def load(name: str) -> tuple[str, AllocationProblem, dict[str, str]]:
    text = FOLDER.joinpath(f"{name}.mir").read_text()
    module = parse_mir(text)
    normalized = normalize_machine_function(module.functions[0], module, get_target("gfx942"))
    answer = json.loads(FOLDER.joinpath(f"{name}.json").read_text())["assignment"]
    return text, AllocationProblem(normalized.function), answer


@pytest.mark.parametrize("name", NAMES)
def test_every_judge_rejects_it(name: str) -> None:
    pytest.importorskip("z3")
    _, problem, answer = load(name)
    for judge in JUDGES:
        word = Judges(problem).word(judge, answer)
        assert (word.judge, word.accepts) == (judge, False)
    kinds = {finding.kind for finding in Verifier(problem).verify(answer).findings}
    expected = FindingKind.FIXED_REGISTER_CLOBBERED if name in FIXED else FindingKind.OVERLAP
    assert kinds == {expected}


@pytest.mark.parametrize("name", NAMES)
def test_llvm_is_content_with_it(name: str, llc: Callable[..., str]) -> None:
    text, problem, answer = load(name)
    module = parse_mir(text)
    normalized = normalize_machine_function(module.functions[0], module, problem.target)
    assignment = {}
    for key, register in answer.items():
        base = parse_register_name(problem.target, register)
        assert base is not None
        assignment[int(key[1:])] = base
    lowered = write_assignment(text, module.functions[0], normalized, assignment)
    assert "tracksRegLiveness: true" in lowered.text
    # From after allocation to the end: every later pass is checked too.
    assembly = llc(
        lowered.text, "gfx942", "-x", "mir", "-O3", "-start-before=greedy", "-verify-machineinstrs"
    )
    assert "s_endpgm" in assembly
