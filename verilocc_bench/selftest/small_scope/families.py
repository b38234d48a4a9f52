"""The families of functions that make up the small scope."""

from __future__ import annotations

from functools import partial

from verilocc_bench.ir import FixedUnits
from verilocc_bench.selftest.small_scope.grammar import EntryState, Family, RegisterKind

_AMD = partial(Family, target="gfx942")
_GUARDED = partial(
    Family, target="sm_80", early_clobbers=False, ties=False, undef_uses=False, guards=True
)
_LIVE_IN = (FixedUnits("v", 1, 1),)
_RESERVED = (FixedUnits("v", 2, 1),)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _AMD(
            name="lanes",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2, most=2)),
            registers=2,
            operands=3,
        ),
        _AMD(
            name="aligned",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2, 2, most=2)),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            undef_uses=False,
            needed=(1,),
        ),
        _AMD(
            name="four-operands",
            budgets=(("v", 3),),
            kinds=(RegisterKind("v"), RegisterKind("v", 2)),
            registers=2,
            operands=4,
            definitions=1,
            uses=1,
            undef_uses=False,
            needed=(0, 1),
        ),
        _AMD(
            name="three-registers",
            budgets=(("v", 3),),
            kinds=(RegisterKind("v", most=3),),
            registers=3,
            operands=4,
        ),
        _AMD(
            name="fixed",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2)),
            registers=2,
            operands=3,
            fixed=FixedUnits("v", 1, 1),
            environments=(
                EntryState(),
                EntryState(live_ins=_LIVE_IN),
                EntryState(_LIVE_IN, _RESERVED),
            ),
        ),
        _GUARDED(
            name="guards",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R", most=2), RegisterKind("P")),
            registers=3,
            operands=3,
        ),
        _GUARDED(
            name="two-predicates",
            budgets=(("R", 3), ("P", 2)),
            kinds=(RegisterKind("R", most=2), RegisterKind("P", most=2)),
            registers=4,
            operands=2,
            definitions=1,
            uses=1,
            needed=(1,),
        ),
        _GUARDED(
            name="guarded-marks",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R", most=2),),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            early_clobbers=True,
            ties=True,
            fixed=FixedUnits("P", 0, 1),
        ),
        _GUARDED(
            name="guarded-lanes",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R"), RegisterKind("R", 2)),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            fixed=FixedUnits("P", 0, 1),
            fixed_operands=False,
            needed=(0, 1),
        ),
        _AMD(
            name="destroyed",
            budgets=(("v", 4),),
            kinds=(RegisterKind("v", most=2), RegisterKind("v", 2)),
            registers=2,
            operands=3,
            definitions=1,
            uses=1,
            early_clobbers=False,
            ties=False,
            undef_uses=False,
            mask=(FixedUnits("v", 0, 1), FixedUnits("v", 2, 1)),
        ),
        _AMD(
            name="destroyed-fixed",
            budgets=(("v", 3),),
            kinds=(RegisterKind("v", most=2),),
            registers=2,
            operands=3,
            undef_uses=False,
            fixed=FixedUnits("v", 1, 1),
            mask=(FixedUnits("v", 1, 1),),
            environments=(EntryState(), EntryState(live_ins=_LIVE_IN)),
        ),
        _GUARDED(
            name="destroyed-guards",
            budgets=(("R", 3), ("P", 1)),
            kinds=(RegisterKind("R", most=2), RegisterKind("P")),
            registers=3,
            operands=2,
            definitions=1,
            uses=1,
            mask=(FixedUnits("R", 0, 2),),
        ),
    )
}
