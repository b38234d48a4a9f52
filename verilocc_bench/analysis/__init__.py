"""The analyses of a function: liveness, pressure, loops, placements."""

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.liveness import Liveness, analyse_liveness
from verilocc_bench.analysis.loops import loop_depths
from verilocc_bench.analysis.placement import Placements, parse_register_name
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem

__all__ = [
    "VECTOR",
    "AllocationProblem",
    "Liveness",
    "Placements",
    "analyse_liveness",
    "iterate_bits",
    "loop_depths",
    "parse_register_name",
]
