"""The text of a machine function as lines that can be rewritten.

The parser finds the instructions and their operands. This module keeps the lines
themselves, so everything that allocation ignores (immediates, memory operands,
flags) stays unchanged, letter by letter. Debug values are dropped: an answer does
not say which register holds a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from verilocc_bench.backends.amdgpu.machine import MachineBlock, MachineFunction, is_ignored
from verilocc_bench.backends.amdgpu.mir_yaml import Frame
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits

_FLAG = "implicit-def|implicit|def|undef|early-clobber|internal|dead|killed|renamable|debug-use"
_TOKEN = re.compile(
    rf"(?<![\w.%$&@-])(?P<flags>(?:(?:{_FLAG}) )*)"
    r"(?:%(?P<virtual>\d{1,9}|[A-Za-z_$-][\w$-]*)|\$(?P<physical>\w+))"
    r"(?:\.(?P<sub>\w+))?(?::\w+)?(?P<ends>(?:\((?:tied-def \d{1,4}|[a-z]+\d+|<[^()]*>)\))*)",
    re.ASCII,
)
_NO_REGISTERS = {"bb", "stack", "fixed-stack", "const", "jump-table", "ir", "ir-block", "subreg"}
_TIED = re.compile(r"\(tied-def \d+\)", re.ASCII)
_TAIL = re.compile(r" :: |,? debug-location |,? debug-instr-number |;")
_DEBUG = re.compile(r"\s*(?:[\w-]+ )*DBG_\w+(?: .*)?", re.ASCII)
_STACK_OBJECT = re.compile(r"\s*- \{ id: (\d+),.*")
_SPILLED = {True: "hasSpilledSGPRs", False: "hasSpilledVGPRs"}
_BARRIERS = re.compile(r"(S_BRANCH|S_ENDPGM|S_SETPC_B64|SI_RETURN|SI_TCRETURN|SI_CS_CHAIN)\w*")
_UNIT_NAMES = {"v": "vgpr", "a": "agpr", "s": "sgpr"}


@dataclass(frozen=True, slots=True)
class RegisterToken:
    """A register operand in a line; `number` counts the register operands of the line from 0."""

    number: int
    flags: tuple[str, ...]
    virtual: str | None
    physical: str | None
    sub_register: str | None
    tied: str
    is_definition: bool

    def spelled(self, name: str, flags: tuple[str, ...]) -> str:
        """The operand with another register and other flags, without types and classes."""
        return "".join(f"{flag} " for flag in flags) + f"${name}{self.tied}"


def replace_registers(line: str, spell: Callable[[RegisterToken], str | None]) -> str:
    """The line with every register operand spelled anew; for None the operand stays."""
    tail = _tail_start(line)
    head, rest = line[:tail], line[tail:]
    equals = head.find(" = ")
    pieces = re.split(r'("[^"]*")', head)
    kept: list[str] = []
    number = at = 0
    for index, piece in enumerate(pieces):
        if index % 2:
            kept.append(piece)
            at += len(piece)
            continue
        last = 0
        for match in _TOKEN.finditer(piece):
            if match["virtual"] in _NO_REGISTERS:
                continue
            flags = tuple(match["flags"].split())
            token = RegisterToken(
                number,
                flags,
                match["virtual"],
                match["physical"],
                match["sub"],
                "".join(_TIED.findall(match["ends"])),
                at + match.start() < equals or bool({"def", "implicit-def"} & {*flags}),
            )
            number += 1
            spelled = spell(token)
            if spelled is not None:
                kept += [piece[last : match.start()], spelled]
                last = match.end()
        kept.append(piece[last:])
        at += len(piece)
    return "".join(kept) + rest


def _tail_start(line: str) -> int:
    """The offset of the memory operands or the debug location, outside quotes."""
    at = 0
    for index, piece in enumerate(re.split(r'("[^"]*")', line)):
        if index % 2 == 0 and (match := _TAIL.search(piece)):
            return at + match.start()
        at += len(piece)
    return len(line)


def register_name(units: FixedUnits, half: str | None = None) -> str:
    """LLVM's name of physical units: `vgpr4_vgpr5`, `vcc_lo`, `vgpr3_hi16`."""
    if units.file == "vcc":
        name = "vcc" if units.count == 2 else ("vcc_lo", "vcc_hi")[units.first]
    else:
        indices = range(units.first, units.first + units.count)
        name = "_".join(f"{_UNIT_NAMES[units.file]}{index}" for index in indices)
    return f"{name}_{half}" if half else name


@dataclass(slots=True)
class MirBlock:
    """A block: the line of its head, its successors' line and its instructions' lines.

    `starts[i]` is the index of the line at which instruction i of the normalized
    function starts. An empty line is a removed line.
    """

    number: int
    head: str
    successors: str | None
    lines: list[str]
    starts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MirText:
    """A file in parts: the text before a machine function's blocks, the blocks, and the rest."""

    before: list[str]
    blocks: list[MirBlock]
    after: list[str]
    first_key: int

    @classmethod
    def cut(
        cls,
        text: str,
        machine: MachineFunction,
        successors: Sequence[Sequence[int]],
    ) -> MirText:
        """The function's lines without debug values.

        `successors` has the successors of each block, for blocks whose text leaves
        them to be inferred.
        """
        lines = text.split("\n")
        first = machine.blocks[0].line - 1
        ends = (at for at in range(first, len(lines)) if lines[at] and not lines[at][0].isspace())
        end = next(ends, len(lines))
        bounds = [block.line - 1 for block in machine.blocks] + [end]
        blocks = [
            _cut_block(lines, bounds[i], bounds[i + 1], block)
            for i, block in enumerate(machine.blocks)
        ]
        for block, targets in zip(blocks, successors, strict=True):
            if block.successors is None and targets:
                names = ", ".join(f"%bb.{blocks[target].number}" for target in targets)
                block.successors = f"    successors: {names}"
        frame = machine.frame
        header = _assigned_keys(lines, frame, frame.first, first)
        after = _assigned_keys(lines, frame, end, frame.last)
        rest = [*after, *lines[frame.last :]]
        return cls([*lines[: frame.first], *header], blocks, rest, frame.first)

    @property
    def first_stack_object(self) -> int:
        """The first unused number of a stack object."""
        rows = self.before[self._section("stack") :]
        numbers = []
        for line in rows[1:]:
            if line and not line[0].isspace():
                break
            if match := _STACK_OBJECT.match(line):
                numbers.append(int(match[1]))
        return max(numbers, default=-1) + 1

    def declare_stack(self, rows: list[str], scalar: set[bool]) -> None:
        """Adds stack objects, and the flags for spilled SGPRs and spilled vector registers."""
        at = self._section("stack")
        if self.before[at].partition(":")[2].partition("#")[0].strip() not in ("", "[]"):
            raise InputError("expected the objects of 'stack' in rows below it", line=at + 1)
        self.before[at] = "stack:"
        self.before[at + 1 : at + 1] = rows
        for index in range(at, len(self.before)):
            for kind in scalar:
                if self.before[index].strip() == f"{_SPILLED[kind]}: false":
                    self.before[index] = f"  {_SPILLED[kind]}: true"

    def _section(self, name: str) -> int:
        """The line of a key of the function; adds the key if it is missing."""
        for index in range(len(self.before) - 1, self.first_key - 1, -1):
            if self.before[index].startswith(f"{name}:"):
                return index
        self.before.insert(self.first_key, f"{name}: []")
        return self.first_key

    def text(self, live_ins: Callable[[int], Sequence[str]]) -> str:
        """The text of the file; `live_ins(b)` gives the live-ins of block b."""
        return "\n".join([*self.before, *self._body(live_ins), *self.after])

    def _body(self, live_ins: Callable[[int], Sequence[str]]) -> Iterator[str]:
        for index, block in enumerate(self.blocks):
            if index:
                yield ""
            yield block.head
            if block.successors is not None:
                yield block.successors
            if names := live_ins(index):
                yield "    liveins: " + ", ".join(f"${name}" for name in names)
            yield "  "
            yield from (line for line in block.lines if line)


def falls_through(block: MachineBlock) -> bool:
    """True if the end of a block can be reached."""
    code = [instruction for instruction in block.instructions if not is_ignored(instruction)]
    return not (code and _BARRIERS.fullmatch(code[-1].opcode))


def _cut_block(lines: list[str], first: int, end: int, block: MachineBlock) -> MirBlock:
    starts = [instruction.line - 1 for instruction in block.instructions]
    body = range(first + 1, starts[0] if starts else end)
    successors = [lines[i] for i in body if lines[i].strip().startswith("successors:")]
    cut = MirBlock(block.number, lines[first], successors[0] if successors else None, [])
    for index, start in enumerate(starts):
        stop = starts[index + 1] if index + 1 < len(starts) else end
        if not is_ignored(block.instructions[index]):
            cut.starts.append(len(cut.lines))
        for line in lines[start:stop]:
            stripped = line.strip()
            if stripped and stripped[0] not in ";#" and not _DEBUG.fullmatch(line):
                cut.lines.append(line)
    return cut


def _assigned_keys(lines: list[str], frame: Frame, start: int, end: int) -> list[str]:
    """Lines with keys of a function, as they are once it has no virtual registers."""
    kept = lines[start:end]
    live_ins = [f"  - {{ reg: '{name}' }}" for name in frame.live_ins()]
    assigned = {
        "registers": ["registers:       []"],
        "noVRegs": ["noVRegs:         true"],
        "liveins": ["liveins:", *live_ins] if live_ins else ["liveins:         []"],
    }
    for key, (first, after) in sorted(frame.places.items(), key=lambda item: -item[1][0]):
        if key in assigned and start <= first < end:
            kept[first - start : after - start] = assigned[key]
    return kept
