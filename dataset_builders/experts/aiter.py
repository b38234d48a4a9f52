"""AITER: hand-written machine code for gfx942, in AMD's package `amd-aiter`.

The package holds code objects, and no source for them. Each is read back into machine
IR with virtual registers (docs/code-objects.md), and its own registers are the label.

`aiter_objects.txt` lists the candidates: every code object of attention, decoding, GEMM
and gating whose machine code no other one has, and of the 845 different ones of fused
mixtures of experts 72 at equal distances in the order of their names (48 of one kernel,
24 of two stages). Norms and reductions between GPUs are left out: they are of no family.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.experts.archives import Archive
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.sweeps.experts import ExpertPoint, make_expert_point
from verilocc_bench.backends.amdgpu.kernel import recovered_kernel
from verilocc_bench.backends.amdgpu.recovery.assembler import find_assembler
from verilocc_bench.backends.amdgpu.recovery.gates import GATE_OPTIONS
from verilocc_bench.backends.amdgpu.tools import find_llc, llc_version
from verilocc_bench.dataset import RawRow
from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import load_code_object
from verilocc_bench.verification import FastVerifier

AITER_ARCHIVE = Archive(
    "amd-aiter",
    "0.1.7.post2.dev18",
    "amd_aiter-0.1.7.post2.dev18-py3-none-any.whl",
    "fe139d74438217c35e87e3b961166bac8db2d381eadccb371da2e63615f05a31",
    40_189_929,
    ("aiter_meta/hsa/gfx942", "amd_aiter-0.1.7.post2.dev18.dist-info/LICENSE"),
    "amd_aiter-0.1.7.post2.dev18.dist-info/LICENSE",
)
_FOLDER = "aiter_meta/hsa/gfx942"
_KERNELS = (
    ("fmha_v3_fwd/", "aiter_attention_forward"),
    ("fmha_v3_bwd/", "aiter_attention_backward"),
    ("mla/", "aiter_latent_attention"),
    ("pa", "aiter_paged_attention"),
    ("bf16gemm/", "aiter_gemm_bf16"),
    ("i8gemm/", "aiter_gemm_int8"),
    ("gemm_a8w8", "aiter_gemm_int8"),
    ("flatmm", "aiter_gemm_fp8"),
    ("topksoftmax/", "aiter_top_k_softmax"),
    ("fmoe_2stages/", "aiter_moe_stages"),
    ("fmoe", "aiter_moe_fused"),
)
"""The kernel's name for each beginning of an object's path."""


@dataclass(frozen=True, slots=True)
class AiterLibrary(ExpertSource):
    """The package's code objects, and which of them are candidates."""

    def points(self) -> Sequence[ExpertPoint]:
        """The candidates, by name."""
        listed = files("dataset_builders.experts").joinpath("aiter_objects.txt").read_text()
        return tuple(
            make_expert_point("gfx942", aiter_kernel(name), {"object": name})
            for name in listed.split()
        )

    def build(self, point: ExpertPoint) -> BuiltKernel:
        """The row of one code object. Raises RejectedKernel, with the gate, if there is none."""
        started = time.perf_counter()
        name = str(point.parameters["object"])
        path = self.archive.folder() / _FOLDER / name
        if not path.is_file():
            raise InputError("the archive has no such code object", source=path)
        data = path.read_bytes()
        kernel, other_encodings = recovered_kernel(data, load_code_object(data).kernel(), name)
        problem, label = kernel.problem, kernel.label
        assert label is not None
        text = kernel.code.text
        used = FastVerifier(problem).verify(label).registers_used
        own = {
            "machine_ir_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "other_encodings": other_encodings,
        }
        row = self.row(point, problem, label, used, source=data, provenance=own)
        timings = Timings(own_seconds=time.perf_counter() - started)
        return BuiltKernel(row, RawRow(row.id, "mir", text), timings)

    def versions(self) -> dict[str, str]:
        """The versions of the library and of LLVM's tools."""
        return {self.library: self.archive.version, "llc": llc_version()}

    def flags(self) -> dict[str, tuple[str, ...]]:
        """The options of llc in the gates."""
        return dict(GATE_OPTIONS)

    def label_source(self, versions: Mapping[str, str]) -> str:
        """The library: its authors chose the registers."""
        return f"{self.library} {versions.get(self.library)}"

    def check(self, purpose: str) -> None:
        """Raises InputError or MissingExtraError if a tool or the archive is missing."""
        del purpose
        find_llc()
        find_assembler()
        self.archive.folder()


def aiter_kernel(name: str) -> str:
    """The column `kernel` for a code object. Raises InputError for an unknown one."""
    for start, kernel in _KERNELS:
        if name.startswith(start):
            return kernel
    raise InputError(f"unknown code object {name!r}")


AITER = AiterLibrary(
    "aiter", "MIT", "gfx942", AITER_ARCHIVE, ("source_sha256", "machine_ir_sha256")
)
