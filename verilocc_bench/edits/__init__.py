"""Edits of a function, as answers of the split track have them: moves, spills, constants."""

from verilocc_bench.edits.edited_function import (
    GUARD,
    MAXIMUM_SLOTS,
    Action,
    EditedFunction,
    Move,
    Reload,
    Rematerialize,
    Spill,
    edit_function,
    replaced_function,
)
from verilocc_bench.edits.execution_mask import VectorPlaces
from verilocc_bench.edits.json_form import edits_to_json, parse_edits
from verilocc_bench.edits.records import (
    Answer,
    AnyAnswer,
    At,
    EditKind,
    Edits,
    Insertion,
    OnEdge,
    RegisterSpan,
    Replacement,
    SlotSpan,
    SplitAnswer,
    Transfer,
)

__all__ = [
    "GUARD",
    "MAXIMUM_SLOTS",
    "Action",
    "Answer",
    "AnyAnswer",
    "At",
    "EditKind",
    "EditedFunction",
    "Edits",
    "Insertion",
    "Move",
    "OnEdge",
    "RegisterSpan",
    "Reload",
    "Rematerialize",
    "Replacement",
    "SlotSpan",
    "Spill",
    "SplitAnswer",
    "Transfer",
    "VectorPlaces",
    "edit_function",
    "edits_to_json",
    "parse_edits",
    "replaced_function",
]
