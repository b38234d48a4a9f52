"""From an answer back to machine code: assignments written into the cubins of sm_80."""

from verilocc_bench.lower.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.lower.proof import ProofFailed
from verilocc_bench.lower.write_back import LoweredCubin, lower_sass

__all__ = [
    "Hazard",
    "HazardKind",
    "LoweredCubin",
    "ProofFailed",
    "find_hazards",
    "lower_sass",
]
