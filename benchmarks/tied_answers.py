"""Wrong answers about tied operands, lowered and executed.

    python benchmarks/tied_answers.py scan [--dataset NAME --splits NAME,…]
    python benchmarks/tied_answers.py run --output FILE [--rounds N]

LLVM makes one virtual register of two tied ones before it allocates, and machine IR in which it has
not is refused by name. So no text of a dataset has a tie of two registers: `scan` counts
them. `run` makes kernels that have some, with that refusal off. In the
machine IR of mini's kernels the result of each V_FMAC in a straight line of code gets a register
of its own, which is marked as tied to the one that is read. The answer is llc's own, with
both in one register; it must leave the numbers that the kernel left before. Then the self-test's
operator `tied_mismatch` changes it, and each mutant is lowered and executed as in
executed_answers.py, whose `table` reads the output.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from executed_answers import Subject, judged, mutate
from execution import chosen_rows

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.backends import AmdgpuBackend
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import MirFile
from verilocc_bench.dataset import Row, load_raw_row
from verilocc_bench.edits import Answer
from verilocc_bench.ir import print_function
from verilocc_bench.targets import get_target

_REGISTER = re.compile(r"%(\d+)\b")
_FMAC = re.compile(r"^\s*%(\d+):vgpr_32 = (?:\w+ )*V_FMAC_F32\w* .*?, %(\d+)(?=, implicit)")
_DECLARED = re.compile(r"^  - \{ id: (\d+), class: .*\}$")
OPERATOR = "tied_mismatch"
REFUSAL = "verilocc_bench.backends.amdgpu.normalize.refuse_unsupported"


@dataclass(frozen=True, slots=True)
class TiedKernel:
    """A row's kernel with ties, and the answer to it."""

    row: Row
    kernel: MachineKernel
    answer: Answer


def apart(text: str) -> tuple[str, dict[int, int]]:
    """Machine IR in which results of V_FMAC are registers of their own.

    Gives these registers by number, with the ones that they are tied to.
    """
    lines = text.splitlines()
    known = {n: int(found[1]) for n, line in enumerate(lines) if (found := _DECLARED.match(line))}
    number = 1 + max(known.values())
    made: dict[int, int] = {}
    for place, line in enumerate(lines):
        found = _FMAC.match(line)
        if found is None or found[1] != found[2]:
            continue
        register = found[1]
        named = re.compile(rf"%{register}\b")
        block = range(block_start(lines, place), block_end(lines, place))
        everywhere = [n for n, other in enumerate(lines) if named.search(other)]
        definitions = [n for n in everywhere if re.match(rf"\s*%{register}:", lines[n])]
        if definitions[-1] != place or not set(everywhere) <= set(block):
            continue
        head, tail = line[: found.end()], line[found.end() :]
        head = head.replace(f"%{register}:", f"%{number}:", 1) + "(tied-def 0)"
        lines[place] = head + tail
        for after in [n for n in everywhere if n > place]:
            lines[after] = named.sub(f"%{number}", lines[after])
        made[number] = int(register)
        number += 1
    declarations = [
        f"  - {{ id: {n}, class: vgpr_32, preferred-register: '', flags: [  ] }}" for n in made
    ]
    last = max(known)
    lines[last + 1 : last + 1] = declarations
    return "\n".join(lines) + "\n", made


def block_start(lines: list[str], place: int) -> int:
    return max(n for n in range(place) if re.match(r"\s*bb\.\d+", lines[n]))


def block_end(lines: list[str], place: int) -> int:
    later = (n for n in range(place, len(lines)) if re.match(r"\s*bb\.\d+", lines[n]))
    return next(later, len(lines))


def tied_kernel(row: Row) -> TiedKernel | None:
    """A row with ties; None where no instruction can have one."""
    content = load_raw_row("mini", row.id).content
    text, made = apart(content)
    if not made or row.label is None:
        return None
    target = get_target(row.arch)
    old, new = (normalized_names(each, row) for each in (content, text))
    file = MirFile(text, row.id)
    normalized = normalize_machine_function(file.function(file.names[0]), file.module, target)
    problem = AllocationProblem(normalized.function)
    places = {old[int(name[1:])]: register for name, register in row.label.items()}
    answer = {}
    for number, name in enumerate(new):
        tied = made.get(int(name[1:]))
        answer[f"%{number}"] = places[name if tied is None else f"%{tied}"]
    kernel = AmdgpuBackend().read_raw(text, problem, row.id)
    changed = replace(row, normalized=print_function(normalized.function))
    return TiedKernel(changed, kernel, Answer(answer))


def normalized_names(text: str, row: Row) -> tuple[str, ...]:
    file = MirFile(text, row.id)
    function = file.function(file.names[0])
    return normalize_machine_function(function, file.module, get_target(row.arch)).original_names


def subjects() -> Iterator[Subject]:
    """The kernels with ties, whose answers leave the numbers of the kernels without."""
    for _, row in chosen_rows("mini", ["test"], None):
        with patch(REFUSAL):
            tied = tied_kernel(row) if row.track == "assign" else None
        if tied is None:
            continue
        subject = Subject(tied.row, tied.answer)
        subject.__dict__["kernel"] = tied.kernel
        assert row.label is not None
        before = Subject(row, Answer(row.label))
        if subject.own_memory(1) != before.own_memory(1):
            print("OTHER NUMBERS", row.id)
            continue
        yield subject


def run(options: argparse.Namespace) -> None:
    with options.output.open("w") as file:
        for subject in subjects():
            ties = len(tied_operands(subject.problem.function))
            for number in range(options.rounds):
                generator = random.Random(f"{OPERATOR} {number} {subject.row.id}")
                about = {
                    "row": subject.row.id, "arch": subject.row.arch,
                    "kernel": subject.row.kernel, "operator": OPERATOR, "number": number,
                    "ties": ties,
                }  # fmt: skip
                about |= judged(subject, mutate(subject, OPERATOR, generator))
                file.write(json.dumps(about) + "\n")
                file.flush()


def scan(options: argparse.Namespace) -> None:
    """Counts the ties of two registers in all texts of AMD targets."""
    found = Counter[str]()
    for _, row in chosen_rows(options.dataset, options.splits.split(","), None):
        found["texts"] += 1
        found["ties of two registers"] += len(
            tied_operands(AllocationProblem.from_text(row.normalized).function)
        )
    print(dict(found))


def main() -> None:
    parser = argparse.ArgumentParser(description="wrong answers about tied operands")
    actions = parser.add_subparsers(dest="action", required=True)
    running = actions.add_parser("run")
    running.add_argument("--output", type=Path, required=True)
    running.add_argument("--rounds", type=int, default=4)
    scanning = actions.add_parser("scan")
    scanning.add_argument("--dataset", default="mini")
    scanning.add_argument("--splits", default="test")
    options = parser.parse_args()
    (run if options.action == "run" else scan)(options)


if __name__ == "__main__":
    main()
