"""The judges of answers by their names: commands, results and docs know them from here."""

from __future__ import annotations

FAST, INDEPENDENT, SMT, VALUE_WALK = "fast", "independent", "smt", "value-walk"
JUDGES = (FAST, INDEPENDENT, SMT, VALUE_WALK)
"""The judges of an answer's text, in the order in which they are asked (verification.judges)."""

JUDGES_OF_EDITS = (INDEPENDENT, VALUE_WALK)
"""Those that judge answers with edits, too."""

MACHINE_CODE = "machine-code"
"""The judge that runs machine code (the room `execution`). It needs more than the text."""

ALL = "all"
"""All of JUDGES that can judge an answer."""

_OLD_NAMES = {"executor": VALUE_WALK, "execution": MACHINE_CODE}


def judge_named(name: str) -> str:
    """The judge's present name, for a name of the command line or of a file."""
    return _OLD_NAMES.get(name, name)
