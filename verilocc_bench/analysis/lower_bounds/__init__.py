"""Lower bounds on the registers of any valid assignment, with what proves them."""

from verilocc_bench.analysis.lower_bounds.checking import check_certificate
from verilocc_bench.analysis.lower_bounds.infeasibility import proves_infeasible, why_infeasible
from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.lower_bounds.search import lower_bound

__all__ = [
    "BoundKind",
    "Clique",
    "LowerBound",
    "Refutation",
    "Shape",
    "check_certificate",
    "lower_bound",
    "proves_infeasible",
    "why_infeasible",
]
