"""Small-scope checking: all judges on all answers to all small functions of a grammar.

It follows the small-scope hypothesis (Jackson, "Software Abstractions", 2006): a
mistake of a judge shows on some small function, so all of them are tried.
"""

from verilocc_bench.selftest.small_scope.enumeration import MAXIMUM_INSTRUCTIONS, Enumeration
from verilocc_bench.selftest.small_scope.families import FAMILIES
from verilocc_bench.selftest.small_scope.small_scope_state import EnumerationState
from verilocc_bench.selftest.small_scope.small_scope_table import document, render

__all__ = [
    "FAMILIES",
    "MAXIMUM_INSTRUCTIONS",
    "Enumeration",
    "EnumerationState",
    "document",
    "render",
]
