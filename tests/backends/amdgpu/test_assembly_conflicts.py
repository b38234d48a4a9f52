"""Bank conflicts counted from assembly: as many as on the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import verilocc_bench as vb
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.backends.amdgpu.assembly_conflicts import _sources, conflicts_of_assembly
from verilocc_bench.backends.amdgpu.lower import lower


@pytest.mark.parametrize(
    ("instruction", "sources"),
    [
        ("v_fma_f32 v0, v1, -v2, |v3|", ["v1", "v2", "v3"]),
        ("v_fmac_f32_e32 v0, v1, v2", ["v0", "v1", "v2"]),
        ("v_addc_co_u32_e64 v9, s[2:3], v4, v8, s[2:3]", ["v4", "v8"]),
        ("v_mfma_f32_16x16x16_f16 a[0:3], v[2:3], v[4:5], a[0:3]", []),
        ("v_accvgpr_write_b32 a1, v2", ["v2"]),
        ("ds_write2_b32 v1, v2, v3 offset1:4", ["v1", "v2", "v3"]),
        ("v_fma_mixhi_f16 v1, v2, v3, 0 op_sel_hi:[0,0,0]", ["v1", "v2", "v3"]),
        ("v_cvt_f32_i32_sdwa v94, sext(v95) dst_sel:DWORD", ["v95"]),
        ("global_store_dword v[0:1], v2, off", []),
    ],
)
def test_sources(instruction: str, sources: list[str]) -> None:
    assert [f"{file}{index}" for file, index in _sources(instruction)] == sources


@pytest.mark.usefixtures("llc")
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_assembly_has_the_conflicts_of_the_answer(arch: str) -> None:
    problems = vb.load_problems("mini", arch=arch, limit=6)
    counts = [count_bank_conflicts(each, each.label or {}).any for each in problems]
    most = max(counts)
    assert most > 90
    for number in {0, counts.index(most)}:
        problem = problems[number]
        kernel = problem.kernel()
        assert problem.label is not None
        data = lower(kernel, vb.Answer(problem.label), Path("kernel.s")).data
        assert isinstance(data, bytes)
        assert conflicts_of_assembly(data.decode(), kernel.name, arch) == counts[number]
