"""Whole files of every kind that a command reads, and the commands that read it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from leaderboard import render, revalidate
from tests.backends.nvidia import assembled_kernels
from tests.cli.damaged_files import Commands, DamagedKind
from tests.conftest import TESTS
from tests.leaderboard.submissions import Arena, submitted
from tests.machine import assembly
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_raw_row, load_rows

ROWS = load_rows("mini").rows
AMD = min((row for row in ROWS if row.arch == "gfx942"), key=lambda row: row.n_instructions)
LLVM_IR = TESTS / "backends" / "amdgpu" / "kernels" / "debug.ll"
GFX942 = ("--arch", "gfx942")
MODEL = "linear-scan"
RESUMED = ("ledger", "samples", "answers")


def _problem_commands(answer: Path, *options: str) -> Commands:
    """What reads a problem."""
    return lambda path, out: [
        ["problem", path, *options, "-o", out / "row.json"],
        ["allocate", path, *options, "--model", "linear-scan", "-o", out / "answer.json"],
        ["verify", path, answer, *options],
        ["bound", path, *options, "--no-solver", "-o", out / "proof.json"],
        ["show", path, answer, *options, "-o", out / "page.html"],
    ]


def _code_commands(answer: Path, *options: str, code: str = "code.s") -> Commands:
    """What reads compiled code."""
    return lambda path, out: [
        *_problem_commands(answer, *options)(path, out),
        ["normalize", path, *options, "--map", out / "map", "-o", out / "text"],
        ["normalize", path, *options, "--list"],
        ["lower", path, answer, *options, "-o", out / code],
        ["compare", path, answer, *options],
    ]


def _run_commands(code: Path | None, arrays: Path | None) -> Commands:
    """What runs a code object; None for the file that is damaged."""

    def commands(path: Path, out: Path) -> list[list[object]]:
        command = ["run", code or path, "--arguments", arrays or path, "--grid", "1"]
        return [[*command, "-o", out / "after.npz"]]

    return commands


def _answer_of(path: Path, folder: Path, *options: str) -> Path:
    """An answer to the whole file, for damaged copies too: without its id."""
    answer = folder / "answer.json"
    assert main(["allocate", str(path), *options, "--model", MODEL, "-o", str(answer)]) == 0
    answer.write_text(json.dumps({"assignment": json.loads(answer.read_text())["assignment"]}))
    return answer


def code_object(folder: Path) -> DamagedKind:
    run, whole = _run_commands(None, _arrays(folder)), folder / "whole.o"
    whole.write_bytes(assembly.assembled(assembly.ADD_ONE))
    read = _code_commands(_answer_of(whole, folder))
    return DamagedKind(
        "kernel.o", whole.read_bytes(), lambda path, out: [*run(path, out), *read(path, out)]
    )


def _arrays(folder: Path) -> Path:
    """The arguments of the kernel."""
    path = folder / "arguments.npz"
    numbers = np.arange(64, dtype=np.uint32)
    np.savez(path, numbers=numbers, out=np.zeros(64, np.uint32), n=np.uint32(5))
    return path


def arguments(folder: Path) -> DamagedKind:
    code = folder / "kernel.o"
    code.write_bytes(assembly.assembled(assembly.ADD_ONE))
    return DamagedKind("arguments.npz", _arrays(folder).read_bytes(), _run_commands(code, None))


def cubin(folder: Path) -> DamagedKind:
    whole = folder / "whole.cubin"
    whole.write_bytes(assembled_kernels.assembled(assembled_kernels.LOOP))
    commands = _code_commands(_answer_of(whole, folder), code="code.cubin")
    return DamagedKind("kernel.cubin", whole.read_bytes(), commands)


def llvm_ir(folder: Path) -> DamagedKind:
    commands = _code_commands(_answer_of(LLVM_IR, folder, *GFX942), *GFX942)
    return DamagedKind("kernel.ll", LLVM_IR.read_bytes(), commands)


def machine_ir(folder: Path) -> DamagedKind:
    content = load_raw_row("mini", AMD.id).content
    whole = content.encode() if isinstance(content, str) else content
    return DamagedKind("kernel.mir", whole, _code_commands(_label(folder), *GFX942))


def normalized(folder: Path) -> DamagedKind:
    text = AMD.normalized.encode()
    return DamagedKind("function.txt", text, _problem_commands(_label(folder)))


def row(folder: Path) -> DamagedKind:
    whole = folder / "row.json"
    assert main(["problem", AMD.id, "-o", str(whole)]) == 0
    return DamagedKind("row.json", whole.read_bytes(), _problem_commands(_label(folder)))


def answer(folder: Path) -> DamagedKind:
    whole = _label(folder)

    def commands(path: Path, out: Path) -> Sequence[Sequence[object]]:
        return [
            ["verify", AMD.id, path],
            ["verify", AMD.id, path, "--judge", "all", "--json"],
            ["lower", AMD.id, path, "-o", out / "code.s"],
            ["compare", AMD.id, path],
            ["show", AMD.id, path, "-o", out / "page.html"],
            ["measure", AMD.id, path, "-o", out / "measurement"],
            ["run", AMD.id, path],
        ]

    return DamagedKind("answer.json", whole.read_bytes(), commands)


def proof(folder: Path) -> DamagedKind:
    whole = folder / "proof.json"
    assert main(["bound", AMD.id, "--no-solver", "-o", str(whole)]) == 0
    check = ["bound", AMD.id, "--check"]
    return DamagedKind("proof.json", whole.read_bytes(), lambda path, _: [[*check, path]])


def _label(folder: Path) -> Path:
    path = folder / "label.json"
    path.write_text(json.dumps({"assignment": AMD.label}))
    return path


def results(folder: Path, arena: Arena) -> DamagedKind:
    run = _evaluated(folder, arena)

    def commands(path: Path, out: Path) -> Iterator[Sequence[object]]:
        hub = ["--dataset-id", "a/b", "-o", out / "results"]
        for command in (
            ["report"],
            ["report", "--format", "html", "-o", out / "report"],
            ["report", "--format", "eval-results", *hub],
            ["report", run],
            ["failures"],
            ["submit", out / "submission", "--from-run"],
        ):
            yield [*command, _copied(run, path, out)]
        yield _evaluate(arena, _copied(run, path, out))

    return DamagedKind("results.json", (run / "results.json").read_bytes(), commands)


def predictions(folder: Path, arena: Arena) -> DamagedKind:
    run = _evaluated(folder, arena)

    def commands(path: Path, out: Path) -> Sequence[Sequence[object]]:
        asked = ["--dataset", arena.folder, arena.rows[0].id]
        return [
            _evaluate(arena, out / "run", f"predictions:{path}"),
            ["allocate", "--model", f"predictions:{path}", *asked, "-o", out / "answer.json"],
        ]

    return DamagedKind("predictions.jsonl", (run / "answers.jsonl").read_bytes(), commands)


def _resumed(name: str, folder: Path, arena: Arena) -> DamagedKind:
    """A file of a run's folder, and the commands that read it."""
    run = _evaluated(folder, arena)

    def commands(path: Path, out: Path) -> Iterator[Sequence[object]]:
        yield _evaluate(arena, _copied(run, path, out))
        yield ["failures", _copied(run, path, out)]
        yield ["report", "--format", "html", "-o", out / "page.html", _copied(run, path, out)]
        yield ["submit", out / "submission", "--from-run", _copied(run, path, out)]

    return DamagedKind(name, (run / name).read_bytes(), commands, name == "ledger.jsonl")


def _submitted(name: str, folder: Path, arena: Arena) -> DamagedKind:
    """A file of a submission's folder, and the commands that read it."""
    written = submitted(arena).write(folder / "submission")

    def commands(path: Path, out: Path) -> Iterator[Sequence[object]]:
        judged = ["--dataset", arena.folder, "--output", out / "judged", "--execute", "0"]
        yield [revalidate.main, _copied(written, path, out), *judged]
        yield ["submit", _copied(written, path, out), "--dataset", arena.folder, "--dry-run"]

    return DamagedKind(name, (written / name).read_bytes(), commands, name == "submission.yaml")


def revalidation(folder: Path, arena: Arena) -> DamagedKind:
    """What a revalidation writes, of which the page is made."""
    whole, written = folder / "judged", submitted(arena).write(folder / "submission")
    command = [written, "--dataset", arena.folder, "--output", whole, "--execute", "0"]
    assert revalidate.main([str(word) for word in command]) == 0

    def commands(path: Path, out: Path) -> Iterator[Sequence[object]]:
        (out / "entries").mkdir()
        shutil.copy(path, out / "entries")
        yield [render.main, out / "entries", "--output", out / "site"]

    return DamagedKind("revalidation.json", (whole / "revalidation.json").read_bytes(), commands)


def _evaluate(arena: Arena, folder: Path, model: str = MODEL) -> list[object]:
    return ["evaluate", "--model", model, "--dataset", arena.folder, "--output-path", folder]


def _evaluated(folder: Path, arena: Arena) -> Path:
    """The folder of a run."""
    run = folder / "whole-run"
    assert main([str(word) for word in _evaluate(arena, run)]) == 0
    return run


def _copied(folder: Path, damaged: Path, out: Path) -> Path:
    """A copy of a folder with the damaged file in its place."""
    copy = out / "copy"
    shutil.copytree(folder, copy)
    shutil.copy(damaged, copy)
    return copy


KINDS = (code_object, arguments, cubin, llvm_ir, machine_ir, normalized, row, answer, proof)
"""Files by themselves."""
OF_AN_ARENA: dict[str, Callable[[Path, Arena], DamagedKind]] = {
    "results": results,
    "predictions": predictions,
    "revalidation": revalidation,
    **{f"{name}.jsonl": partial(_resumed, f"{name}.jsonl") for name in RESUMED},
    "submission": partial(_submitted, "submission.yaml"),
    "submitted answers": partial(_submitted, "answers.jsonl"),
}
"""Files of runs and submissions."""
