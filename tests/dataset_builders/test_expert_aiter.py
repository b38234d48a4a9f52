"""AITER: the list of candidates, and rows from an archive of our own in its place."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dataset_builders.experts.aiter import AITER, AITER_ARCHIVE, AiterLibrary, aiter_kernel
from dataset_builders.sweeps.experts import (
    EXPERT_KERNELS,
    expert_point_from_json,
    make_expert_point,
)
from tests.machine.assembly import assembled
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir.text_parser import parse_function

NAME = "bf16gemm/own.co"
POINT = make_expert_point("gfx942", "aiter_gemm_bf16", {"object": NAME})
CODE = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_and_b32_e32 v0, 0x3ff, v0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dword v1, v2, s[6:7]
    s_endpgm
"""


def test_the_list_of_candidates() -> None:
    points = AITER.points()
    names = [str(point.parameters["object"]) for point in points]
    assert names == sorted(set(names))
    counts = Counter(point.kernel for point in points)
    assert counts["aiter_attention_forward"] == 32
    assert counts["aiter_attention_backward"] == 120
    assert counts["aiter_gemm_bf16"] == 4
    assert {EXPERT_KERNELS[kernel][0] for kernel in counts} == {"aiter"}
    assert counts.keys() == {k for k, (library, _) in EXPERT_KERNELS.items() if library == "aiter"}
    for point in points:
        assert expert_point_from_json(point.arch, point.kernel, point.parameters_json) == point
    with pytest.raises(InputError, match="unknown code object"):
        aiter_kernel("layer_norm.co")


def library(folder: Path, code: str) -> AiterLibrary:
    """AITER with an archive that has one code object of our own."""
    wheel = folder / "own.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"aiter_meta/hsa/gfx942/{NAME}", assembled(code))
        archive.writestr(AITER_ARCHIVE.notice, "a licence\n")
    data = wheel.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    own = replace(AITER_ARCHIVE, file=wheel.name, sha256=sha256, size_bytes=len(data))
    return replace(AITER, archive=own)


@pytest.mark.slow
def test_a_row_of_a_code_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_EXPERTS", str(tmp_path))
    source = library(tmp_path, CODE)
    source.check("a test")
    built = source.build(POINT)
    row, provenance = built.row, json.loads(built.row.provenance)
    assert (row.license, row.family, row.kernel) == ("MIT", "gemm", "aiter_gemm_bf16")
    assert row.label_source == f"aiter {AITER_ARCHIVE.version}"
    assert all(len(provenance[key]) == 64 for key in source.hashes)
    assert provenance["other_encodings"] == 0
    assert source.archive.notice_text() == "a licence\n"
    problem = AllocationProblem(parse_function(row.normalized, "row"))
    kernel = backend_of("gfx942").read_raw(built.raw.content, problem, "raw")
    assert kernel.problem.id == row.id
    assert source.build(POINT).row == row  # the same bytes again


@pytest.mark.slow
def test_a_rejected_code_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_EXPERTS", str(tmp_path))
    with pytest.raises(RejectedKernel) as rejection:
        library(tmp_path, "s_set_gpr_idx_on s2, gpr_idx(SRC0)\ns_endpgm").build(POINT)
    assert rejection.value.kind == "indexed-registers"
    with pytest.raises(InputError, match="no such code object"):
        library(tmp_path, CODE).build(
            make_expert_point("gfx942", "aiter_gemm_bf16", {"object": "bf16gemm/other.co"})
        )
