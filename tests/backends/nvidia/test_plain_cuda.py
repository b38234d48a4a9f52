"""40 plain CUDA kernels (plain.cu), as nvcc makes them: read, valid, written back."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import require_tools
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia.kernel import read_kernels
from verilocc_bench.backends.nvidia.tools import find_tool
from verilocc_bench.backends.nvidia.write_back import write_assignment
from verilocc_bench.verification import FastVerifier, IndependentVerifier

SOURCE = Path(__file__).with_name("plain.cu")


EVERY, SOME = slice(None), slice(14, None, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "chosen"),
    [
        ("sm_90", SOME),
        pytest.param("sm_80", EVERY, marks=pytest.mark.exhaustive),
        pytest.param("sm_90", EVERY, marks=pytest.mark.exhaustive),
    ],
)
def test_every_kernel_is_read(architecture: str, chosen: slice, tmp_path: Path) -> None:
    require_tools()
    nvcc = find_tool("ptxas").with_name("nvcc")
    if not nvcc.is_file() or shutil.which("g++") is None:
        pytest.skip("needs nvcc, and g++ of the system")
    head, *kernels_of_source = re.split(r"^(?=KERNEL)", SOURCE.read_text(), flags=re.M)
    assert len(kernels_of_source) == 40
    path, source = tmp_path / "plain.cubin", tmp_path / "plain.cu"
    source.write_text(head + "".join(kernels_of_source[chosen]))
    subprocess.run([nvcc, f"-arch={architecture}", "-cubin", "-o", path, source], check=True)
    data = path.read_bytes()
    kernels = dict(read_kernels(data, path, ReadOptions()))
    assert len(kernels) == len(kernels_of_source[chosen])
    for name, kernel in kernels.items():
        assert not isinstance(kernel, str), (name, kernel)
        assert kernel.label is not None
        for verifier in (FastVerifier(kernel.problem), IndependentVerifier(kernel.problem)):
            assert verifier.verify(kernel.label).valid, name
        assert write_assignment(kernel.code, kernel.code.normalized.assignment).data == data, name
