"""Our registers in Triton's own compile, through its public stage hook.

    with vb.triton.allocator("best") as registers:
        kernel[grid](...)            # compiled with our registers
    print(registers.report())

Triton asks the hook `knobs.runtime.add_stages_inspection_hook` twice: without arguments
for what belongs into its cache key, and with its stages for changes to them. One hook
serves all allocators of the process. A thread uses the allocator that it entered last;
a thread that has entered none, such as a worker of an executor, uses the one that was
entered last in the process.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from verilocc_bench.api.code_allocator import CodeAllocator
from verilocc_bench.api.models import AnyModel
from verilocc_bench.errors import InputError, MissingExtraError, VerilocError
from verilocc_bench.targets import get_target
from verilocc_bench.triton.report import KernelReport, Report
from verilocc_bench.triton.stages import STAGES, Compile, KeepsOwnCode

TESTED_TRITON = "3.7"
"""The release of Triton whose stages are known."""

_HOOK = "add_stages_inspection_hook"
_METADATA = "verilocc_bench"
_ARCHITECTURES = {"hip": "{}", "cuda": "sm_{}"}

_guard = threading.RLock()
_entered: list[TritonAllocator] = []
_of_thread: ContextVar[tuple[TritonAllocator, ...]] = ContextVar("entered", default=())
_before: dict[str, Any] = {}
_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""True while our hook runs: another hook, set after ours, may call ours again."""


class TritonAllocator:
    """Puts an allocator's registers into what Triton compiles. A context manager.

    Make it by `allocator`. It can be entered again, and its report goes on.
    """

    def __init__(self, code_allocator: CodeAllocator, tell: Callable[[str], None]) -> None:
        self._allocator, self._tell = code_allocator, tell
        self._kernels: list[KernelReport] = []
        self._versions: dict[str, str] = {}

    def __enter__(self) -> Self:
        triton = import_triton()
        if not str(triton.__version__).startswith(TESTED_TRITON + "."):
            self._tell(
                f"Triton {triton.__version__} is not tested, {TESTED_TRITON} is: "
                "where a stage differs, the compiler's own code stays"
            )
        with _guard:
            if not _entered:
                knobs = triton.knobs
                _before["hook"] = knobs.runtime.add_stages_inspection_hook
                _before["listener"] = knobs.compilation.listener
                knobs.runtime.add_stages_inspection_hook = _hook
                knobs.compilation.listener = _listener
            _entered.append(self)
        _of_thread.set((*_of_thread.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _guard:
            _remove_last(_entered, self)
            if not _entered:
                knobs = import_triton().knobs
                # Somebody else's hook, set since then, stays.
                if knobs.runtime.add_stages_inspection_hook is _hook:
                    knobs.runtime.add_stages_inspection_hook = _before["hook"]
                if knobs.compilation.listener is _listener:
                    knobs.compilation.listener = _before["listener"]
        own = list(_of_thread.get())
        if self in own:
            _remove_last(own, self)
            _of_thread.set(tuple(own))

    def report(self) -> Report:
        """What was done to each kernel so far."""
        with _guard:
            return Report(tuple(self._kernels), self._allocator.objective)

    def close(self) -> None:
        """Ends what the allocator has started, such as a process."""
        self._allocator.close()

    @property
    def cache_key(self) -> str:
        """What belongs into Triton's cache key: the allocator, its settings, our tools."""
        versions = " ".join(self._version(name) for name in sorted(STAGES))
        return f"-{_METADATA}-{self._allocator.key}-{versions}"

    def _version(self, backend: str) -> str:
        """The versions of a stage's tools, or `none` without them."""
        if backend not in self._versions:
            try:
                self._versions[backend] = STAGES[backend].version()
            except VerilocError:
                return "none"
        return self._versions[backend]

    def change_stages(self, backend: Any, stages: dict[str, Any], options: Any) -> None:
        """Puts our code behind Triton's own stage that ends with registers."""
        target = backend.target
        arch = _ARCHITECTURES.get(target.backend, "{}").format(target.arch)
        stage = STAGES.get(target.backend)
        if stage is None or stage.name not in stages:
            self._tell(f"{arch}: Triton has no stage that is known here: its own code stays")
            return
        compile_own, assemble = stages[stage.name], stages.get("hsaco")

        def run(source: Any, metadata: dict[str, Any]) -> Any:
            started = time.perf_counter()
            own = compile_own(source, metadata)
            compiled = time.perf_counter()
            found, reason, figures, ours = own, None, None, None
            try:
                get_target(arch)
                improved = stage.improve(
                    Compile(
                        arch,
                        source,
                        own,
                        metadata,
                        options,
                        lambda text: assemble(text, metadata) if assemble else None,
                        self._allocator,
                    )
                )
                found = improved.code
                figures, ours = improved.own, improved.ours
            except KeepsOwnCode as kept:
                reason, figures, ours = str(kept), kept.own, kept.ours
            except InputError as error:
                reason = error.message
            report = KernelReport(
                kernel=str(metadata.get("name", "kernel")),
                arch=arch,
                hash=str(metadata.get("hash", "")),
                replaced=reason is None,
                reason=reason,
                own=figures,
                ours=ours,
                compiler_seconds=compiled - started,
                seconds=time.perf_counter() - compiled,
            )
            metadata[_METADATA] = report.to_json()
            self._add(report)
            return found

        stages[stage.name] = run

    def _add(self, report: KernelReport) -> None:
        with _guard:
            self._kernels.append(report)
        if report.reason is not None:
            self._tell(f"{report.kernel}, {report.arch}: {report.reason}: the own code stays")

    def add_cached(self, document: Any) -> None:
        """Adds a kernel that Triton's cache had, by what its metadata say."""
        with contextlib.suppress(TypeError, KeyError), _guard:
            self._kernels.append(KernelReport.from_json(document, cached=True))


def allocator(
    model: AnyModel = "best",
    *,
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> TritonAllocator:
    """Puts an allocator's registers into what Triton compiles, in a `with` block.

    `model` and `settings` are as for `verilocc_bench.allocate`; `objective` says what
    better means. Works for gfx90a and gfx942 (llc of LLVM 22) and for cubins (nvdisasm),
    with or without a GPU. Wherever something is refused or fails, or our code is not
    better than the compiler's own by the objective, the own code stays, and `tell` gets
    a line about it (by default on standard error). Raises InputError for an unknown model
    or setting, and MissingExtraError without Triton.
    """
    return TritonAllocator(CodeAllocator(model, settings, seed), tell or _tell)


def import_triton() -> Any:
    """Triton's module. Raises MissingExtraError without it, InputError without its stage hook."""
    try:
        triton = importlib.import_module("triton")
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError("triton", "build", "compiling kernels") from None
    runtime = getattr(getattr(triton, "knobs", None), "runtime", None)
    if not hasattr(runtime, _HOOK):
        raise InputError(
            f"Triton {getattr(triton, '__version__', '')} has no knobs.runtime.{_HOOK}; "
            f"expected Triton {TESTED_TRITON}"
        )
    return triton


def _tell(line: str) -> None:
    print(f"verilocc-bench: {line}", file=sys.stderr)


def _remove_last(allocators: list[TritonAllocator], one: TritonAllocator) -> None:
    for index in range(len(allocators) - 1, -1, -1):
        if allocators[index] is one:
            del allocators[index]
            return


def _active() -> TritonAllocator | None:
    """The allocator that serves this thread."""
    with _guard:
        for one in reversed(_of_thread.get()):
            if any(one is each for each in _entered):
                return one
        return _entered[-1] if _entered else None


def _hook(*arguments: Any) -> tuple[str, str] | None:
    """Triton's hook: the cache key without arguments, else changes to the stages."""
    if _inside.get():
        return None if arguments else ("", "")
    token = _inside.set(True)
    try:
        return _hook_once(*arguments)
    finally:
        _inside.reset(token)


def _hook_once(*arguments: Any) -> tuple[str, str] | None:
    active, earlier = _active(), _before.get("hook")
    if not arguments:
        key, digest = earlier() if earlier is not None else ("", "")
        if active is not None:
            key, digest = f"{key}{active.cache_key}", f"{digest}{active.cache_key!r}"
        return key, digest
    if earlier is not None:
        earlier(*arguments)
    if active is not None:
        backend, stages, options = arguments[:3]
        active.change_stages(backend, stages, options)
    return None


def _listener(**facts: Any) -> None:
    """Triton's listener: kernels that its cache had are reported, too."""
    if _inside.get():
        return
    active, earlier = _active(), _before.get("listener")
    if earlier is not None:
        token = _inside.set(True)
        try:
            earlier(**facts)
        finally:
            _inside.reset(token)
    document = facts.get("metadata", {}).get(_METADATA)
    if active is not None and facts.get("cache_hit") and document is not None:
        active.add_cached(document)
