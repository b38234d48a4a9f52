"""Webs: the accesses of a split register that must share one new register.

If a unit stays in its register between two accesses, the accesses belong to one
*web*. All lanes of a register that one instruction names belong to one web, too:
operands that are lanes of one register must stay in one file, and tied operands
in one register. Each web becomes a virtual register (Chaitin's renumbering) with
the lanes from the first to the last used one.

Cost: nearly linear in the accesses and regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from verilocc_bench.allocators.spill_code import natural_class
from verilocc_bench.allocators.splitting.candidates import SplitPlan
from verilocc_bench.allocators.splitting.regions import UnitRegions
from verilocc_bench.allocators.splitting.split_units import operand_lanes
from verilocc_bench.ir import Function, RegisterClass, VirtualLanes
from verilocc_bench.targets import Target


@dataclass(slots=True)
class Web:
    """Lanes `first` to `last` of a register, which become the lanes of `name`.

    `name` is the register's own number if the web keeps it.
    """

    register: int
    first: int
    last: int
    name: int = -1
    register_class: RegisterClass | None = None


@dataclass(frozen=True, slots=True)
class Webs:
    """The webs of all split registers.

    `at[register, block, index]` is the web of an instruction's operands.
    `during[unit, region]` is the web of a region in which the unit stays. `new`
    has the classes of new registers.
    """

    at: dict[tuple[int, int, int], Web]
    during: dict[tuple[int, int], Web]
    new: list[RegisterClass]


class WebFinder:
    """Finds webs for any plan of one function.

    `classes` are the classes of its virtual registers, perhaps narrowed.
    """

    def __init__(
        self,
        function: Function,
        target: Target,
        units: Sequence[UnitRegions],
        classes: Sequence[RegisterClass],
    ) -> None:
        self.function, self.target, self.units = function, target, units
        self.classes = classes
        self.budgets = {file.name: file.count for file in function.files}

    def webs(self, plan: SplitPlan) -> Webs:
        """The webs under a plan."""
        joined = _Joined()
        for number, each in enumerate(self.units):
            self._join(joined, number, each, plan)
        webs: dict[object, Web] = {}
        at: dict[tuple[int, int, int], Web] = {}
        during: dict[tuple[int, int], Web] = {}
        for number, each in enumerate(self.units):
            unit = each.unit
            for access in unit.accesses:
                key = unit.register, access.block, access.index
                at[key] = _widened(webs, joined.root(key), unit.register, unit.lanes)
            for region in range(len(each.regions)):
                if (number, region) not in plan.away:
                    root = joined.root((number, region))
                    during[number, region] = _widened(webs, root, unit.register, unit.lanes)
        # Webs in which an operand would not be aligned keep all lanes of the register.
        for block, index, instruction in self.function.instructions():
            for _, lanes in operand_lanes(instruction):
                web = at.get((lanes.register, block, index))
                if web is not None and not self._fits(web, lanes):
                    web.first, web.last = 0, self.classes[lanes.register].width - 1
        return Webs(at, during, self._named(webs.values()))

    def _join(self, joined: _Joined, number: int, each: UnitRegions, plan: SplitPlan) -> None:
        unit = each.unit
        for place, region in enumerate(each.regions):
            if (number, place) in plan.away:
                continue
            for part in region.parts:
                for end in (part.entry, part.exit):
                    if end is not None:
                        access = unit.accesses[end]
                        key = unit.register, access.block, access.index
                        joined.join((number, place), key)
        for edge in each.edges:
            if not plan.away & {(number, edge.source), (number, edge.target)}:
                joined.join((number, edge.source), (number, edge.target))

    def _fits(self, web: Web, lanes: VirtualLanes) -> bool:
        for file in self.classes[lanes.register].files:
            step = self.target.file(file).usual_step(lanes.count)
            whole = self.target.file(file).usual_step(web.last - web.first + 1)
            if (lanes.first - web.first) % step or whole % step:
                return False
        return True

    def _named(self, webs: Iterable[Web]) -> list[RegisterClass]:
        new: list[RegisterClass] = []
        keeps: set[int] = set()
        for web in webs:
            own = self.classes[web.register]
            count = web.last - web.first + 1
            if count == own.width:
                web.register_class = own
                if web.register not in keeps:
                    keeps.add(web.register)
                    web.name = web.register
                    continue
            else:
                web.register_class = natural_class(self.target, self.budgets, own.files, count)
            web.name = len(self.function.virtual_registers) + len(new)
            new.append(web.register_class)
        return new


def _widened(webs: dict[object, Web], root: object, register: int, lanes: Sequence[int]) -> Web:
    """The web of a root, widened to hold these lanes."""
    web = webs.setdefault(root, Web(register, lanes[0], lanes[-1]))
    web.first, web.last = min(web.first, lanes[0]), max(web.last, lanes[-1])
    return web


class _Joined:
    """Union-find over hashable keys."""

    def __init__(self) -> None:
        self.parent: dict[object, object] = {}

    def root(self, thing: object) -> object:
        path = []
        while (parent := self.parent.get(thing, thing)) != thing:
            path.append(thing)
            thing = parent
        for passed in path:
            self.parent[passed] = thing
        return thing

    def join(self, a: object, b: object) -> None:
        self.parent[self.root(a)] = self.root(b)
