"""Kernels in: whatever Triton compiles in a block becomes problems, without a GPU.

    with vb.capture("gfx942") as captured:
        kernel[grid](x, y, n, BLOCK=256)     # compiled, never run
    captured.problems

Triton gets a driver that has a target and no GPU (`compile_only`). Its listener tells of
every kernel that it compiles, or has in its cache, with the texts of all its stages. The
builders make rows of the LLVM IR or the PTX, with the compiler's own label.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dataset_builders.capturing.captured_rows import (
    CapturedCode,
    CapturedRows,
    RefusedKernel,
    captured_rows,
    write_captured,
)
from dataset_builders.compilers.triton_compiler import CompiledKernel
from dataset_builders.sweeps.captured import CapturedPoint
from dataset_builders.sweeps.point import Parameters
from verilocc_bench.api.problems import Problem
from verilocc_bench.backends import backend_of
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.triton.benchmarks import without_measuring
from verilocc_bench.triton.compile_only import CompileOnlyDriver, device_figures
from verilocc_bench.triton.plugin import import_triton
from verilocc_bench.triton.torch_devices import on_the_cpu

UNKNOWN_LICENSE = "NOASSERTION"
"""SPDX for a license that nobody has named."""

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
_SUFFIXES = (".llir", ".ptx")


class Capture:
    """The kernels that Triton compiles in a `with` block. Make it by `capture`.

    It can be entered again, for another architecture, and goes on.
    """

    def __init__(self, arch: str, license_name: str) -> None:
        get_target(arch)
        self.arch, self._license = arch, license_name
        self._codes: dict[str, CapturedCode] = {}
        self._rows: CapturedRows | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        triton = import_triton()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_driver(triton, CompileOnlyDriver(self.arch)))
            stack.enter_context(_compilation(triton, self._listen))
            stack.enter_context(_fresh_autotuners(triton))
            stack.enter_context(without_measuring(triton))
            stack.enter_context(on_the_cpu(device_figures(self.arch)))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    @property
    def count(self) -> int:
        """How many different kernels Triton has compiled."""
        return len(self._codes)

    @property
    def rows(self) -> CapturedRows:
        """The rows of the kernels, and the kernels without one. Made when first asked for."""
        if self._rows is None:
            self._rows = captured_rows(self._codes.values(), self._license)
        return self._rows

    @property
    def problems(self) -> list[Problem]:
        """One problem a kernel, with the compiler's label and its code."""
        return [_problem(each.row, each.raw) for each in self.rows.built]

    @property
    def refusals(self) -> tuple[RefusedKernel, ...]:
        """The kernels that cannot be problems here, with the reasons."""
        return self.rows.refusals

    def save(self, folder: str | Path) -> None:
        """Writes the problems as a dataset folder that every command reads.

        Raises InputError without kernels, or if the folder is not empty.
        """
        write_captured(self.rows, Path(folder))

    def __repr__(self) -> str:
        return f"<Capture of {self.count} kernels for {self.arch}>"

    def _listen(self, **facts: Any) -> None:
        code = _captured_code(facts["src"], facts["metadata"], facts["metadata_group"])
        known = self._codes.get(code.point.key)
        if known is not None and known.kernel != code.kernel:  # another function of that name
            text = code.kernel.llvm_ir + code.kernel.ptx
            named = {"text_sha256": hashlib.sha256(text.encode()).hexdigest()}
            parameters = Parameters.of({**code.point.parameters, **named})
            code = replace(code, point=replace(code.point, parameters=parameters))
        if code.point.key not in self._codes:
            self._codes[code.point.key] = code
            self._rows = None


def capture(arch: str, *, license: str = UNKNOWN_LICENSE) -> Capture:  # noqa: A002  SPDX's word
    """Makes problems of the kernels that Triton compiles in a `with` block, without a GPU.

    Kernels are compiled for `arch`, wherever the code asks for the current target:
    launches, `warmup`, autotuning. Launches run nothing. `triton.compile` with a target
    of its own is captured, too. torch's device `cuda` is the CPU inside the block.
    `license` is the SPDX name of the kernels' license. Raises InputError for an unknown
    architecture, and MissingExtraError without Triton.
    """
    return Capture(arch, license)


@contextlib.contextmanager
def _driver(triton: Any, driver: CompileOnlyDriver) -> Iterator[None]:
    config = triton.runtime.driver
    before = config._active  # reading `active` would look for a GPU
    config.set_active(driver)
    try:
        yield
    finally:
        config._active = before


@contextlib.contextmanager
def _compilation(triton: Any, listen: Any) -> Iterator[None]:
    """Triton's texts go to `listen`, without line information and without the user's changes."""
    with triton.knobs.compilation.scope():
        knobs = triton.knobs.compilation
        earlier = knobs.listener

        def listener(**facts: Any) -> None:
            if earlier is not None:
                earlier(**facts)
            listen(**facts)

        knobs.listener = listener
        knobs.disable_line_info = True
        knobs.store_binary_only = False
        yield


@contextlib.contextmanager
def _fresh_autotuners(triton: Any) -> Iterator[None]:
    """Autotuners forget the configurations that they have chosen, so that all are compiled."""
    kind = triton.runtime.autotuner.Autotuner
    known = [(each, each.cache) for each in gc.get_objects() if issubclass(type(each), kind)]
    for tuner, _ in known:
        tuner.cache = {}
    try:
        yield
    finally:
        for tuner, cache in known:
            tuner.cache = cache


def _captured_code(
    source: Any, metadata: Mapping[str, Any], files: Mapping[str, str]
) -> CapturedCode:
    """A compiled kernel."""
    texts = {
        suffix: Path(path).read_text()
        for path in files.values()
        for suffix in _SUFFIXES
        if path.endswith(suffix)
    }
    target = metadata["target"]
    backend, arch = (
        (target["backend"], target["arch"])
        if isinstance(target, Mapping)
        else (target.backend, target.arch)
    )
    name = f"sm_{arch}" if backend == "cuda" else str(arch)
    kernel = str(metadata["name"])
    function = getattr(source, "fn", None)
    source_text = str(getattr(function, "src", None) or getattr(source, "src", ""))
    return CapturedCode(
        CapturedPoint(name, kernel, _parameters(source, metadata, name)),
        CompiledKernel(
            llvm_ir=texts.get(".llir", ""),
            num_warps=int(metadata["num_warps"]),
            shared_memory_bytes=int(metadata["shared"]),
            triton_version=str(metadata["triton_version"]),
            source_hash=hashlib.sha256(source_text.encode()).hexdigest(),
            ptx=texts.get(".ptx", ""),
        ),
    )


def _parameters(source: Any, metadata: Mapping[str, Any], arch: str) -> Parameters:
    """Argument types, constants and options by name; all but numbers are texts."""
    found: dict[str, Any] = {}
    function = getattr(source, "fn", None)
    names = list(getattr(function, "arg_names", ()))
    for key, kind in dict(getattr(source, "signature", {})).items():
        name = str(key)
        if kind != "constexpr":
            place = (names.index(name),) if name in names else ()
            known = getattr(source, "attrs", {}).get(place) or []
            found[name] = ":".join([str(kind), *(_attribute_words(*each) for each in known)])
    for key, value in dict(getattr(source, "constants", {})).items():
        places = key if isinstance(key, tuple) else (key,)
        first = names[places[0]] if names and isinstance(places[0], int) else str(places[0])
        name = ".".join([first, *map(str, places[1:])])
        found[name] = value if isinstance(value, bool | int | str) else str(value)
    found |= {name: metadata[name] for name in _OPTIONS if metadata.get(name) is not None}
    if arch.startswith("sm_"):
        found |= {"maxnreg": metadata.get("maxnreg") or 0, "asked_maxnreg": 0}
    return Parameters.of(found)


def _attribute_words(name: str, value: Any) -> str:
    """What Triton knows of an argument: `16` where it is divisible by 16, `range32` of a buffer."""
    short = {"tt.divisibility": "", "tt.pointer_range": "range"}.get(name, f"{name}=")
    return f"{short}{value}"


def _problem(row: Any, raw: Any) -> Problem:
    problem = Problem(
        parse_function(row.normalized, f"row {row.id}"),
        row.normalized,
        title=f"{row.kernel} {row.id}",
        label=row.label,
        label_source=row.label_source,
        alternatives=row.other_labels,
        row=row,
    )
    kernel = backend_of(problem.target).read_raw(raw.content, problem, f"row {row.id}")
    problem._kernel = kernel
    return problem
