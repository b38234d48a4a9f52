"""The sides of a kernel: ptxas's own code, answers in it, and ptxas at other caps.

    python -m benchmarks.silicon.sides -o WORK [--seconds N] [--only KEY]

writes a folder a kernel, with the cubins and `sides.json`, and leaves finished ones alone. A
point of a sweep gives two kernels: Triton's PTX for sm_80 assembled for sm_90 (`mma`), and
the PTX that Triton writes for sm_90 (`wgmma`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dataset_builders.compilers.triton_compiler import compile_kernel
from dataset_builders.sweeps.point import Parameters, SweepPoint, make_point
from dataset_builders.sweeps.registry import sweep_named
from verilocc_bench.allocators import answer_from_assignment, linear_scan
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.api.problems import Problem, load_problem
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.kernel import SassKernel, machine_problem
from verilocc_bench.backends.nvidia.lower import write_answer
from verilocc_bench.backends.nvidia.tools import assemble
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed, RejectedKernel, VerilocError
from verilocc_bench.files import write_atomically
from verilocc_bench.measuring.blocks import MULTIPROCESSORS
from verilocc_bench.training.renaming import rename

_CARD = MULTIPROCESSORS["sm_90"]
_MOST_REGISTERS = 255
_NEAR = 24
_MOST_INSTRUCTIONS = 1_600
SECONDS = 4.0
"""Of processor time, for each search."""
_FAMILIES = ("gemm", "mha_forward", "gemm_gated", "gemm_batched", "mha_backward_dq",
             "mha_backward_dkdv", "gemm_weight_only", "gemm_persistent")  # fmt: skip

# kernel, type, tile, warps, stages, and the matrices that are transposed, or the head and mask
_COMMON = """\
gemm fp16 128x128x64 4 3
gemm bf16 128x256x64 8 3
gemm fp16 128x128x64 8 4
gemm fp16 64x128x64 4 3
gemm bf16 256x128x64 8 3
mha_forward fp16 128x64 4 3 64 causal
mha_forward bf16 128x64 8 2 128 causal
mha_forward fp16 128x128 4 2 64
mha_forward fp16 128x128 8 2 128
mha_forward bf16 64x64 4 3 64 causal"""
_MORE = """\
gemm fp16 64x64x64 4 3
gemm bf16 64x64x32 4 4 b
gemm fp16 128x64x64 4 3 a
gemm bf16 64x128x32 4 3 ab
gemm_batched fp16 64x64x64 4 3
gemm_persistent fp16 64x64x64 4 3 b
gemm bf16 64x128x128 4 2
gemm fp16 128x64x32 4 4 b
gemm_batched bf16 128x64x64 4 2 b
gemm_persistent bf16 64x128x64 4 2
gemm bf16 128x128x32 4 3
gemm fp16 64x64x128 4 2 ab
mha_forward fp16 64x64 4 2 64
mha_forward bf16 64x32 4 3 64
mha_forward fp16 64x64 4 2 32 causal
mha_forward fp16 64x64 4 2 128
mha_forward bf16 64x32 4 2 128
mha_forward fp16 64x32 4 2 64 causal"""


@dataclass
class Sides:
    """A kernel, and its sides as they are found; each is saved at once."""

    folder: Path
    document: dict[str, Any]
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, role: str, cubin: bytes, **facts: Any) -> None:
        """Keeps a cubin. Equal ones stay apart: their times show the noise."""
        (kernel,) = read_cubin(cubin).kernels
        write_atomically(self.folder / f"{name}.cubin", cubin)
        registers = kernel.register_count
        blocks = _CARD.holds(registers, self.document["threads"],
                             facts.get("shared", self.document["shared"]))  # fmt: skip
        self.found[name] = {"role": role, "registers": registers, "blocks": blocks, **facts}

    def add_answer(self, name: str, role: str, problem: Problem, answer: Answer) -> int:
        """Keeps the cubin with an answer in it; gives its registers."""
        lowered = write_answer(problem.kernel(), answer)
        runnable = lowered.runnable
        if role == "same" and not runnable:
            role = "control"
        text = json.dumps({"id": problem.id, "assignment": dict(answer.assignment)})
        write_atomically(self.folder / f"{name}.answer.json", text + "\n")
        reasons = "; ".join(lowered.reasons)
        self.add(name, role, lowered.data, runnable=runnable, reasons=reasons)
        return lowered.register_count


def _common(line: str) -> SweepPoint:
    """A point of the tables above."""
    kernel, dtype, tile, warps, stages, *more = line.split()
    sizes = dict(zip(("block_m", "block_n", "block_k"), map(int, tile.split("x")), strict=False))
    common = {"dtype": dtype, **sizes, "num_warps": int(warps), "num_stages": int(stages)}
    if kernel == "mha_forward":
        head = int(more[0])
        own = {"head_dim": head, "block_d": head, "causal": "causal" in more}
    else:
        turned = "".join(more)
        own = {"out_dtype": dtype, "transpose_a": "a" in turned, "transpose_b": "b" in turned}
    return make_point("sm_80", kernel, common | own)


def points() -> Iterator[tuple[str, SweepPoint]]:
    """The doors and points, the ones that tell most first."""
    mini = list(sweep_named("mini").points(["sm_80"]))
    small = [p for p in sweep_named("small").points(["sm_80"]) if p.kernel in _FAMILIES]
    common = [_common(line) for line in _COMMON.split("\n")]
    for point in common:
        yield from (("wgmma", point), ("mma", point))
    more = [_common(line) for line in _MORE.split("\n")]
    for number, first in enumerate(mini):
        yield from (("mma", first), ("wgmma", first))
        if number == 4:
            yield from (("wgmma", point) for point in small)
        if number < len(more):
            yield from (("wgmma", more[number]), ("mma", more[number]))
    for point in small:
        yield "mma", point


def key_of(door: str, point: SweepPoint) -> str:
    """The name of a kernel's folder."""
    return f"{point.key.replace('-sm_80', '')}-{door}"


def collect(door: str, point: SweepPoint, work: Path) -> str:
    """Writes the folder of one kernel; says what became of it."""
    mma = compile_kernel(point)
    compiled, architecture = mma, "sm_90"
    if door == "wgmma":
        parameters = Parameters.of({**point.parameters, "capability": 0})
        compiled = compile_kernel(SweepPoint("sm_90", point.kernel, parameters))
        architecture = "sm_90a"
        if "wgmma" not in compiled.ptx:
            return "no wgmma in it"
    folder = work / key_of(door, point)
    own = assemble(compiled.ptx, architecture=architecture)
    if door == "wgmma" and point in sweep_named("small").points(["sm_80"]):
        registers = read_cubin(own).kernels[0].register_count
        shape = {"threads": 32 * compiled.num_warps, "shared": compiled.shared_memory_bytes}
        if not any(registers - step <= _NEAR for step in _steps(shape, registers)[:1]):
            return "no step near"
    path = folder / "own.cubin"
    write_atomically(path, own)
    problem = load_problem(path)
    kernel: SassKernel = problem.kernel()
    if len(kernel.code.function.instructions) > _MOST_INSTRUCTIONS + 800 * (door == "wgmma"):
        return "too large"
    threads = 32 * compiled.num_warps
    instructions = kernel.code.function.instructions
    document = {
        "key": folder.name, "door": door, "kernel": point.kernel, "id": problem.id,
        "parameters": dict(point.parameters), "threads": threads,
        "shared": compiled.shared_memory_bytes, "source": point.key,
        "instructions": len(instructions),
        "spills": sum(i.opcode.startswith(("STL", "LDL")) for i in instructions),
    }  # fmt: skip
    sides = Sides(folder, document)
    sides.add("own", "own", own)
    count = sides.found["own"]["registers"]
    larger = _larger_count(count, threads, compiled.shared_memory_bytes)
    if larger is not None:
        sides.add("own-larger-count", "same", _with_count(own, larger))
    for number in (1, 2):
        renamed = Answer(rename(problem, problem.label or {}, number))
        sides.add_answer(f"permuted-{number}", "same", problem, renamed)
    _answers(sides, problem, kernel)
    _caps(sides, compiled.ptx, architecture)
    if door == "wgmma":
        other = assemble(mma.ptx, architecture="sm_90")
        sides.add("mma-sync", "other", other, shared=mma.shared_memory_bytes)
    sides.add("own-again", "same", own)
    document["sides"] = sides.found
    write_atomically(folder / "sides.json", json.dumps(document, indent=1) + "\n")
    return f"{len(sides.found)} sides"


def _answers(sides: Sides, problem: Problem, kernel: SassKernel) -> None:
    """Answers on the machine's live ranges, by two allocators, and one on the text's."""
    machine = machine_problem(kernel)

    def add(name: str, role: str, make: Callable[[], Answer]) -> int | None:
        try:
            return sides.add_answer(name, role, problem, make())
        except AllocationFailed:
            return None

    best = add("best-runnable", "same", partial(searched, machine, SECONDS))
    if best is not None and _is_near(sides.document, sides.found["own"]["registers"], best):
        add("best-runnable-longer", "same", partial(searched, machine, 3 * SECONDS))
    add(
        "linear-runnable",
        "same",
        lambda: Answer(answer_from_assignment(problem, linear_scan(machine))),
    )
    add("best", "control", partial(searched, problem, SECONDS))


def searched(problem: AllocationProblem, seconds: float) -> Answer:
    """What `best` finds in `seconds` of processor time, beginning from the compiler's answer."""
    search = Search(problem, SearchOptions(brief=True), Means.TABU)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        search.run()
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if search.found is None:
        raise AllocationFailed("no answer in the time")
    return Answer(answer_from_assignment(problem, search.found.assignment))


def _steps(document: dict[str, Any], count: int) -> list[int]:
    """The most registers at each count of blocks beyond the one with `count`, the next first."""
    threads, shared = document["threads"], document["shared"]
    steps: list[int] = []
    for cap in range(count - 1, 23, -1):
        blocks = _CARD.holds(cap, threads, shared)
        if blocks > _CARD.holds(steps[-1] if steps else count, threads, shared):
            steps.append(cap)
    return steps


def _is_near(document: dict[str, Any], count: int, best: int) -> bool:
    steps = _steps(document, count)
    return bool(steps) and steps[0] < best <= steps[0] + _NEAR


def _caps(sides: Sides, ptx: str, architecture: str) -> None:
    """ptxas at the counts of the next steps of occupancy, and at those that people write."""
    count = sides.found["own"]["registers"]
    usual = [cap for cap in (168, 128, 96, 80, 64) if count - 64 <= cap < count]
    for cap in dict.fromkeys([*_steps(sides.document, count)[:2], *usual[:2]]):
        with contextlib.suppress(RejectedKernel):  # wgmma needs its registers
            code = assemble(ptx, architecture=architecture, maximum_registers=cap)
            sides.add(f"ptxas-{cap}", "other", code)


def _larger_count(count: int, threads: int, shared: int) -> int | None:
    """The least register count at which one block fewer fits."""
    before = _CARD.holds(count, threads, shared)
    for larger in range(count, _MOST_REGISTERS + 1):
        if 0 < _CARD.holds(larger, threads, shared) < before:
            return larger
    return None


def _with_count(cubin: bytes, count: int) -> bytes:
    data = bytearray(cubin)
    for offset in read_cubin(cubin).kernels[0].register_attribute_offsets:
        struct.pack_into("<I", data, offset, count)
    return bytes(data)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=300, help="the most for one kernel")
    parser.add_argument("--only", default="", help="only kernels whose name has this in it")
    options = parser.parse_args()

    def end(*_: object) -> None:
        raise TimeoutError

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGVTALRM, interrupt)
    done: set[str] = set()
    for door, point in points():
        key = key_of(door, point)
        marker = options.output / key / "done"
        if key in done or marker.exists() or options.only not in key:
            continue
        done.add(key)
        signal.alarm(options.seconds)
        try:
            said = collect(door, point, options.output)
        except (VerilocError, TimeoutError) as error:
            said = f"{type(error).__name__}: {str(error)[:150]}"
        signal.alarm(0)
        write_atomically(marker, said + "\n")
        print(time.strftime("%H:%M:%S"), key, said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
