"""EXEC as the hardware has it, on machine IR that LLVM made of random divergent code.

Four threads run through the code with EXEC computed from the machine IR itself. A thread that EXEC
stops in one place and wakes in another has skipped what lies between. Its own path must then lead
through some place where nothing could be inserted for vector registers, all the way: `VectorPlaces`
may not allow a place that the path passes and the thread does not execute.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator

from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineOperand,
    MachineOperandFlag,
    is_ignored,
)
from verilocc_bench.edits import VectorPlaces
from verilocc_bench.ir import Function
from verilocc_bench.targets import get_target

THREADS = 4
ALL = (1 << THREADS) - 1
STEPS = 300
NUMBER = re.compile(r", (-?\d+)|= (?:[a-z]+ )*\w+ (-?\d+)")
TWO_OPERANDS = {
    "S_AND_B64": lambda x, y: x & y,
    "S_OR_B64": lambda x, y: x | y,
    "S_XOR_B64": lambda x, y: x ^ y,
    "S_ANDN2_B64": lambda x, y: x & ~y,
    "S_ORN2_B64": lambda x, y: (x | ~y) & ALL,
}


class DivergentCode:
    """A random kernel in LLVM IR: ifs, loops, breaks and returns on each thread's own data."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.body(4, None)
        self.store()
        self.lines += ["  br label %ret", "ret:", "  ret void", "}"]
        slots = [f"  %{v} = alloca i32, addrspace(5)" for v in "abc"]
        first = [
            line
            for v in "abc"
            for line in (
                f"  %i{v} = load volatile i32, ptr addrspace(1) %q",
                f"  store i32 %i{v}, ptr addrspace(5) %{v}",
            )
        ]
        head = [
            'target triple = "amdgcn-amd-amdhsa"',
            "declare i32 @llvm.amdgcn.workitem.id.x()",
            "define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %u) {",
            "entry:",
            *slots,
            "  %t = call i32 @llvm.amdgcn.workitem.id.x()",
            "  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t",
            *first,
        ]
        self.text = "\n".join(head + self.lines) + "\n"

    def new(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def load(self) -> str:
        name = self.new()
        self.emit(f"  %{name} = load i32, ptr addrspace(5) %{self.generator.choice('abc')}")
        return name

    def assign(self) -> None:
        left, right, product, total = self.load(), self.load(), self.new(), self.new()
        operation = self.generator.choice(["add", "mul", "xor"])
        self.emit(f"  %{product} = {operation} i32 %{left}, %{right}")
        self.emit(f"  %{total} = add i32 %{product}, {self.generator.randint(1, 99)}")
        self.emit(f"  store i32 %{total}, ptr addrspace(5) %{self.generator.choice('abc')}")

    def store(self) -> None:
        value, place = self.load(), self.new()
        offset = self.generator.randint(0, 99)
        self.emit(f"  %{place} = getelementptr i32, ptr addrspace(1) %q, i32 {offset}")
        self.emit(f"  store volatile i32 %{value}, ptr addrspace(1) %{place}")

    def condition(self) -> str:
        name = self.new()
        if self.generator.random() < 0.2:  # the same for all threads
            self.emit(f"  %{name} = icmp eq i32 %u, {self.generator.randint(0, 5)}")
            return name
        value, bit = self.load(), self.new()
        self.emit(f"  %{bit} = and i32 %{value}, {1 << self.generator.randrange(5)}")
        self.emit(f"  %{name} = icmp eq i32 %{bit}, 0")
        return name

    def branch(self, yes: str, no: str) -> None:
        self.emit(f"  br i1 %{self.condition()}, label %{yes}, label %{no}")

    def body(self, depth: int, loop: tuple[str, str] | None) -> None:
        for _ in range(self.generator.choice([1, 1, 2, 3])):
            self.statement(depth, loop)

    def statement(self, depth: int, loop: tuple[str, str] | None) -> None:
        drawn = self.generator.random()
        if depth <= 0 or drawn < 0.3:
            (self.assign if self.generator.random() < 0.6 else self.store)()
        elif drawn < 0.6:
            then, other, join = self.new("then"), self.new("else"), self.new("join")
            self.branch(then, other)
            self.emit(f"{then}:")
            self.body(depth - 1, loop)
            self.emit(f"  br label %{join}")
            self.emit(f"{other}:")
            if self.generator.random() < 0.5:
                self.body(depth - 1, loop)
            self.emit(f"  br label %{join}")
            self.emit(f"{join}:")
        elif drawn < 0.8:
            self.loop(depth)
        else:
            on = self.new("on")
            self.branch(self.generator.choice(loop) if loop and drawn < 0.93 else "ret", on)
            self.emit(f"{on}:")

    def loop(self, depth: int) -> None:
        head, inside, behind = self.new("head"), self.new("inside"), self.new("behind")
        self.emit(f"  br label %{head}")
        self.emit(f"{head}:")
        if self.generator.random() < 0.7:
            self.branch(inside, behind)
            self.emit(f"{inside}:")
        self.body(depth - 1, (head, behind))
        if self.generator.random() < 0.6:
            self.emit(f"  br label %{head}")
        else:
            self.branch(head, behind)
        self.emit(f"{behind}:")


def machine_ir(seed: int, opt: str, llc: str, arch: str) -> str:
    """What LLVM makes of a random kernel, up to register allocation."""
    target = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}"]
    passes = ["mem2reg", "mem2reg,simplifycfg", "mem2reg,instcombine,simplifycfg,gvn"][seed % 3]
    text = DivergentCode(seed).text
    for command in (
        [opt, *target, f"-passes={passes}", "-S"],
        [llc, *target, f"-O{2 + seed % 2}", "-stop-before=greedy", "-o", "-"],
    ):
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


class Simulation:
    """Runs of one function; `missed` yields the sleeps whose path passes an allowed place."""

    def __init__(self, text: str, machine: MachineFunction, function: Function) -> None:
        self.lines = text.split("\n")
        self.function = function
        self.numbers = {block.number: index for index, block in enumerate(machine.blocks)}
        self.code = [
            [each for each in block.instructions if not is_ignored(each)]
            for block in machine.blocks
        ]
        target = get_target(function.target)
        places = VectorPlaces(function, target)
        self.allowed = [
            [not list(places.objections(b, i)) for i in range(len(block.instructions) + 1)]
            for b, block in enumerate(function.blocks)
        ]
        self.last = [
            next(
                (
                    i
                    for i, each in enumerate(b.instructions)
                    if target.terminators.fullmatch(each.opcode)
                ),
                len(b.instructions),
            )
            for b in function.blocks
        ]
        self.wakes = 0

    def closed(self, block: int, first: int, last: int) -> bool:
        """Whether nothing can be inserted at the places of a block between two, both included."""
        last = min(last, self.last[block])
        return not any(self.allowed[block][place] for place in range(first, last + 1))

    def passes_nothing(self, asleep: tuple[int, int], awake: tuple[int, int]) -> bool:
        """Whether some path from where a thread fell asleep to where it woke has no such place."""
        (start, after), (end, before) = asleep, awake
        if start == end and before > after and self.closed(start, after + 1, before):
            return True
        if not self.closed(start, after + 1, self.last[start]) or self.allowed[start][-1]:
            return False
        pending, seen = list(self.function.blocks[start].successors), set()
        while pending:
            block = pending.pop()
            if block in seen:
                continue
            seen.add(block)
            if block == end and self.closed(block, 0, before):
                return True
            if self.closed(block, 0, self.last[block]) and not self.allowed[block][-1]:
                pending += self.function.blocks[block].successors
        return False

    def missed(self, seed: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """(asleep, awake) of one run, each as (block, instruction)."""
        run = _Run(self, random.Random(seed))
        block: int | None = 0
        while block is not None and run.steps < STEPS:
            block = yield from run.block(block)


class _Run:
    def __init__(self, simulation: Simulation, generator: random.Random) -> None:
        self.simulation, self.generator = simulation, generator
        self.values: dict[str, int] = {}
        self.mask = ALL
        self.asleep: dict[int, tuple[int, int]] = {}
        self.steps = 0
        self.share = generator.choice([0.3, 0.5, 0.8])

    def value(self, operand: MachineOperand) -> int:
        if operand.name == "exec":
            return self.mask
        return self.values.setdefault(operand.name, self.generator.randint(0, ALL))

    def block(self, block: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for index, instruction in enumerate(self.simulation.code[block]):
            self.steps += 1
            before = self.mask
            self.execute(instruction)
            for thread in range(THREADS):
                was, now = before >> thread & 1, self.mask >> thread & 1
                if was and not now:
                    self.asleep[thread] = block, index
                elif now and not was:
                    self.simulation.wakes += 1
                    fell = self.asleep.pop(thread)
                    if not self.simulation.passes_nothing(fell, (block, index)):
                        yield fell, (block, index)
            if instruction.opcode.startswith("S_ENDPGM"):
                return None
            if instruction.targets and self.taken(instruction.opcode):
                return self.simulation.numbers[instruction.targets[0]]
        return block + 1

    def taken(self, opcode: str) -> bool:
        vcc = self.values.get("vcc", 0)
        known = {
            "S_BRANCH": True,
            "S_CBRANCH_EXECZ": self.mask == 0,
            "S_CBRANCH_EXECNZ": self.mask != 0,
            "S_CBRANCH_VCCZ": vcc == 0,
            "S_CBRANCH_VCCNZ": vcc != 0,
        }
        return known[opcode] if opcode in known else self.generator.random() < 0.5

    def execute(self, instruction: MachineInstruction) -> None:
        explicit = [
            o for _, o in instruction.operands if MachineOperandFlag.IMPLICIT not in o.flags
        ]
        written = [
            o for o in explicit if MachineOperandFlag.DEFINITION in o.flags and o.name != "scc"
        ]
        read = [o for o in explicit if MachineOperandFlag.DEFINITION not in o.flags]
        result = self.result(instruction, read)
        if instruction.opcode == "S_OR_SAVEEXEC_B64":
            self.values[written[0].name], self.mask = self.mask, self.mask | self.value(read[0])
            return
        if instruction.opcode.startswith("V_CMP") and not written:
            self.values["vcc"] = result if result is not None else 0
        for operand in written:
            value = self.generator.randint(0, ALL) if result is None else result
            if operand.name == "exec":
                assert result is not None, instruction
                self.mask = value
            else:
                self.values[operand.name] = value

    def result(self, instruction: MachineInstruction, read: list[MachineOperand]) -> int | None:
        """What a scalar operation gives, where it may be a mask; None for anything else."""
        operation = instruction.opcode.removesuffix("_term")
        numbers = [
            int(first or second) & ALL
            for first, second in NUMBER.findall(self.simulation.lines[instruction.line - 1])
        ]
        if operation in ("S_MOV_B64", "COPY"):
            return self.value(read[0]) if read else (numbers or [0])[0]
        if operation in TWO_OPERANDS:
            sources = [*map(self.value, read), *numbers][:2]
            return TWO_OPERANDS[operation](*sources)
        if operation == "S_CSELECT_B64":
            return self.generator.choice([*map(self.value, read), *numbers])
        if operation.startswith("V_CMP"):
            drawn = (self.generator.random() < self.share for _ in range(THREADS))
            return sum(bit << thread for thread, bit in enumerate(drawn)) & self.mask
        writes_mask = any(
            o.name == "exec" and MachineOperandFlag.DEFINITION in o.flags
            for _, o in instruction.operands
        )
        assert not writes_mask or operation == "S_OR_SAVEEXEC_B64", instruction
        return None
