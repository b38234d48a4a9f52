"""The occupancy of a verdict is that of the machine code."""

from __future__ import annotations

import json

import pytest

from tests.backends.amdgpu.machine_ir import RAW, ROWS, Kernel, kernel_of
from tests.sampling import few_rows
from verilocc_bench.allocators import answer_from_assignment, linear_scan
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, machine_code_counts, run_llc
from verilocc_bench.errors import InputError
from verilocc_bench.verification import Verifier

pytestmark = pytest.mark.slow

CAPPED = """\
--- |
  target triple = "amdgcn-amd-amdhsa"
  define amdgpu_kernel void @k() #0 { ret void }
  attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "amdgpu-waves-per-eu"="WAVES" }
...
---
name: k
tracksRegLiveness: true
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    %0:vgpr_32 = V_MOV_B32_e32 0, implicit $exec
    S_NOP 0, implicit %0
    S_ENDPGM 0
...
"""


def waves_of(kernel: Kernel, answer: dict[str, str]) -> int:
    """What llc says of the kernel's machine code."""
    lowered = kernel.lower(answer)
    arch = kernel.target.name
    assembly = run_llc(lowered.text, arch, "asm", (*LLC_OPTIONS, *lowered.llc_options))
    return machine_code_counts(assembly.decode(), lowered.function)["waves"]


def occupancy_of(kernel: Kernel, answer: dict[str, str]) -> int | None:
    verdict = Verifier(kernel.problem).verify(answer)
    assert verdict.valid
    return verdict.occupancy


@pytest.mark.usefixtures("llc")
@pytest.mark.parametrize("row", few_rows(ROWS), ids=lambda row: f"{row.arch}-{row.id}")
def test_waves_of_the_embedded_kernels(row) -> None:
    assert row.assignment is not None
    kernel = kernel_of(RAW[row.id], row.arch)
    scanned = answer_from_assignment(kernel.problem, linear_scan(kernel.problem))
    for answer in (json.loads(row.assignment), scanned):
        assert occupancy_of(kernel, answer) == waves_of(kernel, answer)


@pytest.mark.parametrize(
    ("attribute", "limit"), [("3,3", 3), ("2", None), ("1,5", 5), ("1,8", None), ("9,9", None)]
)
def test_the_limit_stands_in_the_text(attribute: str, limit: int | None) -> None:
    kernel = kernel_of(CAPPED.replace("WAVES", attribute), "gfx942")
    assert kernel.problem.function.maximum_occupancy == limit
    assert (f"\noccupancy {limit}\n" in kernel.problem.normalized) == (limit is not None)
    verdict = Verifier(kernel.problem).verify({"%0": "v0"})
    assert verdict.occupancy == (limit or 8)


def test_a_limit_that_the_hardware_sets_anyway_is_refused() -> None:
    kernel = kernel_of(CAPPED.replace("WAVES", "3,3"), "gfx942")
    text = kernel.problem.normalized.replace("\noccupancy 3\n", "\noccupancy 8\n")
    with pytest.raises(InputError, match="expected an occupancy below 8"):
        type(kernel.problem).from_text(text)
