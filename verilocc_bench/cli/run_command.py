"""`verilocc-bench run`, and the judge `machine-code` of `verify`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.api.problems import Problem
from verilocc_bench.backends import backend_of
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.run_arguments import FOR_TRACES, refuse_options
from verilocc_bench.cli.run_code_object import is_code_object, run_code_object
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.execution import TILES, AnswerExecutor, ExecutedAnswer
from verilocc_bench.machine.code_object import ARCHITECTURES
from verilocc_bench.machine.stepping import trace
from verilocc_bench.settings.judges import MACHINE_CODE

EVENTS = 5
"""How many events are told; the others are counted."""


def run(options: argparse.Namespace) -> int:
    """Executes an answer, or llc's own allocation, and prints what came of it.

    The status is 1 where the numbers or the bits are others, or nothing comes out.
    """
    if is_code_object(Path(options.instance)):
        return run_code_object(options)
    refuse_options(options, ("arguments", "grid", "block", "output"), "is for a code object")
    if options.trace is None:
        refuse_options(options, FOR_TRACES, "goes with --trace")
    instance = load_instance(options)
    answer = None
    if options.answer is not None:
        answer = answer_of_file(instance, options.answer)
    executor = executor_for(instance, options)
    if options.trace is not None:
        _trace(executor, answer, options)
        return 0
    done = executor.own if answer is None else executor.execute(answer)
    if options.json:
        document = {"id": instance.id, "grid": list(executor.launch.grid), **done.to_json()}
        print(json.dumps(document, indent=2))
    else:
        print(f"{instance.title}: " + "\n".join(lines_of(done)))
    return 0 if done.accepted else 1


def executor_for(instance: Problem, options: argparse.Namespace) -> AnswerExecutor:
    """The executor of an instance's kernel. Raises InputError without one."""
    if instance.row is None:
        raise InputError(
            "expected an id of a dataset: execution needs the kernel's parameters and machine IR; "
            "of a file, `verify` judges the answer and `lower -o FILE.s` writes its code",
            source=options.instance,
        )
    if instance.target.name not in ARCHITECTURES.values():
        raise InputError(
            f"execution is for gfx90a and gfx942, the row is for {instance.target.name}",
            source=options.instance,
        )
    backend_of(instance.target).check_comparison()  # llc
    return AnswerExecutor.of_row(
        instance.kernel(),
        instance.row,
        tiles=getattr(options, "tiles", None) or TILES,
        asynchronous=not getattr(options, "fast", False),
    )


def lines_of(done: ExecutedAnswer) -> list[str]:
    """What came of an answer, for people."""
    if not done.comparisons:
        return [f"{done.outcome}: {done.why}"]
    worst = max(done.comparisons, key=lambda c: (not c.agrees, c.error))
    bits = {
        None: "",
        True: ", bit for bit as llc's own allocation leaves them",
        False: ", other bits than llc's own allocation's",
    }[done.same_bits]
    lines = [
        f"{done.outcome} (largest relative error {worst.error:.2g}, tolerance "
        f"{worst.tolerance:.2g}){bits}; {done.wave_instructions:,} wave instructions"
    ]
    if not worst.agrees and worst.stray_writes:
        lines.append(f"{worst.name}: {worst.stray_writes} elements written that must stay")
    if done.event_count:
        lines.append(f"{done.event_count:,} registers read or written too soon; the first:")
        lines += [f"  {event}" for event in done.events[:EVENTS]]
    counts = ", ".join(f"{kind} {count:,}" for kind, count in done.counts.items())
    lines.append(f"executed: {counts}")
    return lines


def execution_word(done: ExecutedAnswer) -> dict[str, Any]:
    """What the judge `machine-code` says, as the other judges' words in JSON."""
    return {
        "judge": MACHINE_CODE,
        "accepts": done.accepted,
        "note": done.why or None,
        "verdict": None,
        "miscompile": None,
        "execution": done.to_json(),
    }


def _trace(executor: AnswerExecutor, answer: Answer | None, options: argparse.Namespace) -> None:
    """Prints the registers of a wave before an instruction."""
    code = executor.own_code if answer is None else executor.lower(answer)
    kernel = executor.load(code)
    found = trace(
        kernel,
        executor.arguments,
        executor.launch.grid,
        options.trace,
        group=options.work_group or (0, 0, 0),
        wave=options.wave or 0,
        visit=options.visit or 0,
    )
    vectors = {f"v{n}": found.vectors[n] for n in range(len(found.vectors))}
    vectors |= {f"a{n}": found.accumulators[n] for n in range(len(found.accumulators))}
    scalars = {f"s{n}": int(value) for n, value in enumerate(found.scalars)}
    scalars |= {"vcc": found.vcc, "exec": found.execution, "scc": found.scc}
    if options.json:
        document = {
            "scalars": scalars,
            "vectors": {name: lanes.tolist() for name, lanes in vectors.items()},
        }
        print(json.dumps(document))
        return
    at = kernel.program.instructions[kernel.program.index_of(options.trace)]
    print(f"before 0x{at.address:x}: {at.text}")
    for name, value in scalars.items():
        print(f"{name:>5} {value:#x}")
    for name, lanes in vectors.items():
        print(f"{name:>5} {' '.join(f'{value:08x}' for value in lanes)}")
