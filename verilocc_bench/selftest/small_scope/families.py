"""The families of functions that make up the small scope."""

from __future__ import annotations

from verilocc_bench.ir import FixedUnits
from verilocc_bench.selftest.small_scope.grammar import Environment, Family, RegisterKind

_LIVE_IN = (FixedUnits("v", 1, 1),)
_RESERVED = (FixedUnits("v", 2, 1),)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="lanes",
            target="gfx942",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2, most=2)),
            registers=2,
            operands=3,
        ),
        Family(
            name="aligned",
            target="gfx942",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2, 2, most=2)),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            undef_uses=False,
            needed=(1,),
        ),
        Family(
            name="four-operands",
            target="gfx942",
            budgets=(("v", 3),),
            kinds=(RegisterKind("v"), RegisterKind("v", 2)),
            registers=2,
            operands=4,
            definitions=1,
            uses=1,
            undef_uses=False,
            needed=(0, 1),
        ),
        Family(
            name="three-registers",
            target="gfx942",
            budgets=(("v", 3),),
            kinds=(RegisterKind("v", most=3),),
            registers=3,
            operands=4,
        ),
        Family(
            name="fixed",
            target="gfx942",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2)),
            registers=2,
            operands=3,
            fixed=FixedUnits("v", 1, 1),
            environments=(
                Environment(),
                Environment(live_ins=_LIVE_IN),
                Environment(_LIVE_IN, _RESERVED),
            ),
        ),
        Family(
            name="guards",
            target="sm_80",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R", most=2), RegisterKind("P")),
            registers=3,
            operands=3,
            early_clobbers=False,
            ties=False,
            undef_uses=False,
            guards=True,
        ),
        Family(
            name="two-predicates",
            target="sm_80",
            budgets=(("R", 3), ("P", 2)),
            kinds=(RegisterKind("R", most=2), RegisterKind("P", most=2)),
            registers=4,
            operands=2,
            definitions=1,
            uses=1,
            early_clobbers=False,
            ties=False,
            undef_uses=False,
            guards=True,
            needed=(1,),
        ),
        Family(
            name="guarded-marks",
            target="sm_80",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R", most=2),),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            undef_uses=False,
            guards=True,
            fixed=FixedUnits("P", 0, 1),
        ),
        Family(
            name="guarded-lanes",
            target="sm_80",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R"), RegisterKind("R", 2)),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            early_clobbers=False,
            ties=False,
            undef_uses=False,
            guards=True,
            fixed=FixedUnits("P", 0, 1),
            fixed_operands=False,
            needed=(0, 1),
        ),
    )
}
