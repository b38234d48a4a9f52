"""From an answer back to machine code: cubins of sm_80, machine IR of gfx90a and gfx942."""

from verilocc_bench.lower.amdgpu import LoweredMir, lower_amdgpu
from verilocc_bench.lower.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.lower.llc import (
    LLC_OPTIONS,
    LlcFailed,
    find_llc,
    llc_version,
    machine_code_counts,
    run_llc,
)
from verilocc_bench.lower.proof import ProofFailed
from verilocc_bench.lower.write_back import LoweredCubin, lower_sass

__all__ = [
    "LLC_OPTIONS",
    "Hazard",
    "HazardKind",
    "LlcFailed",
    "LoweredCubin",
    "LoweredMir",
    "ProofFailed",
    "find_hazards",
    "find_llc",
    "llc_version",
    "lower_amdgpu",
    "lower_sass",
    "machine_code_counts",
    "run_llc",
]
