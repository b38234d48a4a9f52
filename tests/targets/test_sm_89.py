"""sm_89 as data: what ptxas assembles for it is read and written back; nothing is mined yet."""

from __future__ import annotations

import pytest

from tests.backends.nvidia import assembled_kernels as kernels
from tests.backends.nvidia.assembled_kernels import lowered_kernel
from tests.sampling import some_of
from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.distance_table import distance_table
from verilocc_bench.backends.nvidia.read import load_kernel
from verilocc_bench.backends.nvidia.write_back import RunVerdict
from verilocc_bench.targets import get_target

TARGET = get_target("sm_89")


@pytest.mark.parametrize(("registers", "warps"), [(0, 48), (38, 48), (39, 40), (126, 16), (253, 8)])
def test_occupancy(registers: int, warps: int) -> None:
    assert TARGET.occupancy({"R": registers}) == warps


@pytest.mark.slow
@pytest.mark.parametrize("ptx", some_of([kernels.LOOP, kernels.PRODUCT]), ids=["loop", "product"])
def test_its_cubins_are_read_and_written_back(ptx: str) -> None:
    cubin = kernels.assembled(ptx, "sm_89")
    assert int.from_bytes(cubin[0x30:0x34], "little") == ARCHITECTURES["sm_89"].flags
    _, gated = load_kernel(cubin, "kernel.cubin")
    normalized, problem = gated.normalized(255)
    assert problem.target is TARGET
    same = lowered_kernel(cubin, normalized, normalized.assignment)
    assert same.data == cubin
    assert same.verdict is RunVerdict.COMPILERS_OWN


def test_no_distance_is_known_before_it_is_mined() -> None:
    assert not distance_table("sm_89").cells
