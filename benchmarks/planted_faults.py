"""Faults planted in the code between a row and its machine code: which check notices them.

    python benchmarks/planted_faults.py [--output FILE]
    python benchmarks/planted_faults.py --reach FILE [--largest N]

Each fault is one changed line of the reading, normalizing, writing back or register tables of
the AMD back end, planted in this process and taken out again. For some kernels of the
embedded dataset everything is then done anew: machine IR is read and normalized, an allocator
answers, the verifier judges the answer (for the problem as it was read), llc makes machine code,
the interpreter executes it. A fault is noticed by

- `text`: the normalized text is not that of the published row;
- `error`: the code itself fails;
- `verifier`: it rejects the allocator's answer;
- `llc`: it refuses the machine IR;
- `execution`: other numbers than before, or a fault.

`--reach` takes the faults of FILE that nothing noticed to all kernels of mini, with more answers
(linear scan, the best known one, random edits; splitting live ranges on the split track), and
says how far each comes: `text` (kernels whose normalized text it changes), `machine IR`, `code`
(answers whose lowered IR, or machine code, it changes), `refused` by llc, `numbers`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from executed_answers import memory_digest
from planted_fault_list import FAULTS, READING, PlantedFault
from tabulate import tabulate

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends import AmdgpuBackend
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.lower import lowered_input, run_llc_on, write_answer
from verilocc_bench.backends.amdgpu.write_back import LoweredMir
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.machine.execution import Fault
from verilocc_bench.selftest.random_edits import random_edits
from verilocc_bench.verification import Verifier

REACHES = ("text", "answers", "machine IR", "refused", "code", "numbers")
CHECKS = ("text", "error", "verifier", "llc", "execution")
ASSIGN_KERNELS = {"fe33ea20e7c8cba7", "ff7f1b9aa13ea155"}
SPLIT_KERNELS = {"e76a3923a014c440"}


def functions_of(space: dict[str, Any], module: str) -> Iterator[tuple[str, types.FunctionType]]:
    """Every function and method that a module defines, inside of caches, too."""
    for name, value in space.items():
        inner = getattr(value, "__wrapped__", value)
        if isinstance(inner, types.FunctionType) and inner.__module__ == module:
            yield name, inner
        elif isinstance(value, type) and value.__module__ == module:
            for attribute, method in vars(value).items():
                if isinstance(method, types.FunctionType):
                    yield f"{name}.{attribute}", method


def clear_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("verilocc_bench."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear") and hasattr(value, "__wrapped__"):
                    value.cache_clear()


@contextmanager
def planted(fault: PlantedFault) -> Iterator[None]:
    """The fault in the loaded modules: the code of the functions that it changes."""
    name = f"verilocc_bench.{fault.module}"
    module = importlib.import_module(name)
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    if source.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: {source.count(fault.old)} places")
    changed = types.ModuleType(name)
    changed.__file__ = module.__file__
    sys.modules[name] = changed  # dataclasses look their module up
    try:
        exec(compile(source.replace(fault.old, fault.new), name, "exec"), changed.__dict__)
    finally:
        sys.modules[name] = module
    new = dict(functions_of(changed.__dict__, name))
    old_codes = {}
    for place, function in functions_of(module.__dict__, name):
        if (place in new and new[place].__code__.co_code != function.__code__.co_code) or (
            place in new and new[place].__code__.co_consts != function.__code__.co_consts
        ):
            old_codes[function] = function.__code__
            function.__code__ = new[place].__code__
    if not old_codes:
        raise ValueError(f"{fault.name}: changes no function")
    clear_caches()
    try:
        yield
    finally:
        for function, code in old_codes.items():
            function.__code__ = code
        clear_caches()


def subjects() -> list[tuple[Row, str, str]]:
    """Rows with their raw text and the allocator that answers."""
    found = []
    for track, wanted, allocator in (
        ("assign", ASSIGN_KERNELS, "linear-scan"), ("split", SPLIT_KERNELS, "live-range-splitting"),
    ):  # fmt: skip
        rows = [row for row in load_rows("mini", track=track).rows if row.id in wanted]
        found += [(row, load_raw_row("mini", row.id).content, allocator) for row in rows]
    return found


class Checks:
    """Asks all checks about a kernel; what depends on the same bytes is computed once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], tuple[Answer, bool]] = {}
        self._digests: dict[tuple[str, bytes], str] = {}
        self.last_digest = ""

    def noticed(self, row: Row, content: str, allocator: str, wanted: str | None) -> list[str]:
        """The checks that notice something; `wanted` is the memory without a fault."""
        found: list[str] = []
        try:
            options = ReadOptions(arch=row.arch)
            kernel = AmdgpuBackend().read(content.encode(), Path("x.mir"), options)
            text = print_function(kernel.problem.function)
            if text != row.normalized:
                found.append("text")
            if (row.id, text) not in self._answers:
                answer = BUILT_IN[allocator].allocate(Request(kernel.problem))
                valid = Verifier(kernel.problem).verify(answer).valid
                self._answers[row.id, text] = (answer, valid)
            answer, valid = self._answers[row.id, text]
            if not valid:
                found.append("verifier")
            lowered = write_answer(kernel, answer)
            code = run_llc_on(kernel, lowered_input(lowered), "obj")
        except InputError as error:
            return [*found, "llc" if "llc: " in str(error) else "error"]
        except Exception:  # noqa: BLE001 (a fault may break anything)
            return [*found, "error"]
        digest = self.last_digest = self.digest(row, code)
        return [*found, "execution"] if wanted is not None and digest != wanted else found

    def digest(self, row: Row, code: bytes) -> str:
        """What the code leaves in memory, or the fault that ends it."""
        if (row.id, code) not in self._digests:
            try:
                digest = memory_digest(row, code)
            except (Fault, InputError) as error:
                digest = f"{type(error).__name__}: {error}"
            self._digests[row.id, code] = digest
        return self._digests[row.id, code]


def more_subjects(largest: int) -> Iterator[tuple[Row, MachineKernel, list[Answer]]]:
    """Kernels of mini with several right answers each."""
    for track in ("assign", "split"):
        for row in load_rows("mini", track=track).rows:
            if row.arch == "sm_80" or len(row.normalized) > largest:
                continue
            content = load_raw_row("mini", row.id).content
            kernel = AmdgpuBackend().read(content.encode(), Path("x.mir"), ReadOptions(row.arch))
            problem = kernel.problem
            if row.label is None:
                names = ("live-range-splitting", "spill-everywhere")
                answers = [BUILT_IN[name].allocate(Request(problem)) for name in names]
            else:
                answers = [BUILT_IN["linear-scan"].allocate(Request(problem))]
                answers += [Answer(row.best_label)] if row.best_label else []
                generator = random.Random(row.id)
                edited = [random_edits(problem, row.label, generator, 6) for _ in range(6)]
                verifier = Verifier(problem)
                answers += [e for e in edited if e is not None and verifier.verify(e).valid]
            yield row, kernel, answers


def lowered(kernel: MachineKernel, answer: Answer) -> LoweredMir | str:
    try:
        return write_answer(kernel, answer)
    except Exception as error:  # noqa: BLE001 (a fault may break anything)
        return f"{type(error).__name__}: {error}"


def code_of(kernel: MachineKernel, text: LoweredMir | str) -> bytes | str:
    if isinstance(text, str):
        return text
    try:
        return run_llc_on(kernel, lowered_input(text), "obj")
    except InputError as error:
        return str(error)


def reach(path: Path, largest: int) -> None:
    """Prints how far the faults that nothing noticed come on more kernels."""
    missed = {e["fault"] for e in map(json.loads, path.read_text().splitlines())
              if not any(e[check] for check in CHECKS)}  # fmt: skip
    faults = [fault for fault in FAULTS if fault.name in missed]
    counts = {fault.name: Counter[str]() for fault in faults}
    for row, kernel, answers in more_subjects(largest):
        content = load_raw_row("mini", row.id).content.encode()
        right = [lowered(kernel, answer) for answer in answers]
        codes: dict[int, bytes | str] = {}
        for fault in faults:
            count = counts[fault.name]
            with planted(fault):
                if fault.module in READING:
                    read = AmdgpuBackend().read(content, Path("x.mir"), ReadOptions(row.arch))
                    count["text"] += print_function(read.problem.function) != row.normalized
                found = [lowered(kernel, answer) for answer in answers]
            for number, (text, wanted) in enumerate(zip(found, right, strict=True)):
                count["answers"] += 1
                if text == wanted:
                    continue
                count["machine IR"] += 1
                if number not in codes:
                    codes[number] = code_of(kernel, wanted)
                code = code_of(kernel, text)
                if code == codes[number]:
                    continue
                if isinstance(code, str):
                    count["refused"] += 1
                    continue
                count["code"] += 1
                own = codes[number]
                assert isinstance(own, bytes)
                try:
                    count["numbers"] += memory_digest(row, code) != memory_digest(row, own)
                except Fault:
                    count["numbers"] += 1
        print(json.dumps({"row": row.id, "counts": counts}), flush=True)
    print(tabulate([[name, *(c[k] for k in REACHES)] for name, c in counts.items()],
                   headers=["fault", *REACHES], tablefmt="github"))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--reach", type=Path, help="an output, whose missed faults are followed")
    parser.add_argument("--largest", type=int, default=10**9, help="characters of a function")
    options = parser.parse_args()
    if options.reach:
        reach(options.reach, options.largest)
        return 0
    rows = subjects()
    checks = Checks()
    baselines: dict[str, str] = {}
    for row, content, allocator in rows:
        if found := checks.noticed(row, content, allocator, None):
            raise SystemExit(f"{row.id}: without a fault {found}")
        baselines[row.id] = checks.last_digest
    lines = []
    for fault in FAULTS:
        by_check: Counter[str] = Counter()
        with planted(fault):
            for row, content, allocator in rows:
                by_check.update(checks.noticed(row, content, allocator, baselines[row.id]))
        entry = {"fault": fault.name, "module": fault.module} | {c: by_check[c] for c in CHECKS}
        lines.append(entry)
        print(json.dumps(entry), file=sys.stderr, flush=True)
    if options.output:
        options.output.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    print(summary(lines))
    return 0


def summary(lines: list[dict[str, Any]]) -> str:
    def share(test: Callable[[dict[str, Any]], bool]) -> int:
        return sum(1 for line in lines if test(line))

    others = [c for c in CHECKS if c != "execution"]
    rows = [
        ["faults", len(lines)],
        ["noticed", share(lambda e: any(e[c] for c in CHECKS))],
        ["noticed by execution", share(lambda e: bool(e["execution"]))],
        ["by execution alone", share(lambda e: e["execution"] and not any(e[c] for c in others))],
        ["by execution alone, had there been no published text", share(
            lambda e: e["execution"] and not any(e[c] for c in others if c != "text"))],
        ["by nothing", share(lambda e: not any(e[c] for c in CHECKS))],
    ]  # fmt: skip
    return tabulate(rows, tablefmt="github")


if __name__ == "__main__":
    sys.exit(main())
