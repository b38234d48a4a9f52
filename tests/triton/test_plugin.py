"""Our registers in Triton's own compile: replaced, or the own code with a word."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton

import verilocc_bench as vb
from tests.triton import kernels
from verilocc_bench.allocators import linear_scan
from verilocc_bench.api.code_figures import CodeFigures, is_better
from verilocc_bench.machine.execution import load_kernel
from verilocc_bench.triton import TritonAllocator, allocator, plugin, stages
from verilocc_bench.triton.compile_only import CompileOnlyDriver, triton_target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("llc", "cuda", "cache")]

ONE_WAVE = {"num_warps": 1}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache of Triton's for this file, and code without line information."""
    folder = tmp_path_factory.mktemp("cache")
    with triton.knobs.cache.scope(), triton.knobs.compilation.scope():
        triton.knobs.cache.dir = str(folder)
        triton.knobs.compilation.disable_line_info = True
        yield folder


def compiled(source: Any, arch: str = "gfx942") -> Any:
    return triton.compile(source, target=triton_target(arch), options=ONE_WAVE)


def quick(words: list[str] | None = None, **settings: Any) -> TritonAllocator:
    told = [] if words is None else words
    return allocator("graph-coloring", tell=told.append, **settings)


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer counts as better."""
    monkeypatch.setattr(stages, "is_better", lambda *_: True)


def test_the_code_is_replaced_and_computes_the_same() -> None:
    own = compiled(kernels.product_source())
    with allocator("best", tell=lambda _: None) as registers:
        ours = compiled(kernels.product_source())
    (report,) = registers.report().kernels
    assert report.replaced
    assert report.own is not None
    assert report.ours is not None
    assert is_better(report.ours, report.own, registers._allocator.objective)
    assert ours.asm["amdgcn"] != own.asm["amdgcn"]
    assert ours.asm["llir"] == own.asm["llir"]
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((16, 64)).astype(np.float16) for _ in range(2))
    arguments = [a, b.T.copy(), np.zeros((16, 16), np.float16), 64, 64, 16, 16]
    typed = [each if isinstance(each, np.ndarray) else np.int32(each) for each in arguments]
    results = [
        load_kernel(code.asm["hsaco"], "product").run(typed, (1, 1, 1), asynchronous=True).buffers
        for code in (own, ours)
    ]
    for mine, theirs in zip(results[0], results[1], strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or theirs is None or mine.tobytes() == theirs.tobytes()
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    found = results[1][2]
    assert found is not None
    assert np.abs(found.reshape(16, 16) - wanted).max() < 0.05


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_cubin_runs_by_the_compilers_own_rules(arch: str) -> None:
    own = compiled(kernels.product_source(), arch)
    with quick(seed=2) as registers:
        ours = compiled(kernels.product_source(), arch)
    (report,) = registers.report().kernels
    assert report.arch == arch
    assert report.replaced == (ours.asm["cubin"] != own.asm["cubin"])
    assert report.replaced or report.reason == "not better by machine-code"
    assert len(ours.asm["cubin"]) == len(own.asm["cubin"])


STEPS = {
    ("gfx942", "the compiler's own code"): "figures_of_assembly",
    ("gfx942", "instruction selection"): "select_instructions",
    ("gfx942", "allocation"): "answer_module",
    ("gfx942", "lowering"): "run_llc",
    ("gfx942", "comparison"): "figures_of_assembly",
    ("sm_80", "the compiler's own code"): "read_kernel",
    ("sm_80", "lowering"): "write_answer",
    ("sm_80", "comparison"): "_cubin_figures",
}


def fails(*_: object, **__: object) -> None:
    raise ValueError("injected\nfailure")


@pytest.mark.usefixtures("accepted")
@pytest.mark.parametrize(("place", "function"), STEPS.items())
def test_a_failure_at_any_step_keeps_the_own_code(
    place: tuple[str, str], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch, step = place
    own = compiled(kernels.sum_source(), arch)
    if step == "comparison":  # the first call is for the own code
        calls = iter((getattr(stages, function), fails))

        def fails_later(*arguments: Any) -> Any:
            return next(calls)(*arguments)

        monkeypatch.setattr(stages, function, fails_later)
    else:
        monkeypatch.setattr(stages, function, fails)
    check_that_the_own_code_stays(own, arch, f"{step}: injected failure")


@pytest.mark.usefixtures("accepted")
@pytest.mark.parametrize("arch", ["gfx942", "sm_80"])
def test_a_failing_allocator_keeps_the_own_code(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = compiled(kernels.sum_source(), arch)
    from verilocc_bench.api.code_allocator import CodeAllocator

    def refuse(_self: object, _kernel: object) -> None:
        raise vb.AllocationFailed("injected failure")

    monkeypatch.setattr(CodeAllocator, "answer", refuse)
    check_that_the_own_code_stays(own, arch, "allocation: injected failure")


@pytest.mark.usefixtures("accepted")
def test_an_assembler_that_refuses_keeps_the_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.amd.compiler import HIPBackend

    own = compiled(kernels.sum_source())
    make = HIPBackend.make_hsaco

    def refuse(source: str, metadata: Any, options: Any) -> Any:
        if source != own.asm["amdgcn"]:
            raise RuntimeError("injected failure")
        return make(source, metadata, options)

    monkeypatch.setattr(HIPBackend, "make_hsaco", staticmethod(refuse))
    check_that_the_own_code_stays(own, "gfx942", "assembly: injected failure")


@pytest.mark.usefixtures("accepted")
def test_code_that_breaks_the_rules_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own = compiled(kernels.product_source(), "sm_80")
    lowered = SimpleNamespace(data=b"", register_count=1, runnable=False, reasons=("too close",))
    monkeypatch.setattr(stages, "write_answer", lambda *_: lowered)
    words: list[str] = []
    with quick(words) as registers:
        ours = compiled(kernels.product_source(), "sm_80")
    assert ours.asm["cubin"] == own.asm["cubin"]
    assert registers.report().kernels[0].reason == "the compiler's own rules: too close"


def check_that_the_own_code_stays(own: Any, arch: str, reason: str) -> None:
    words: list[str] = []
    with quick(words, seed=len(reason)) as registers, triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True
        ours = compiled(kernels.sum_source(), arch)
    binary = "cubin" if arch == "sm_80" else "hsaco"
    assert ours.asm[binary] == own.asm[binary]
    (report,) = registers.report().kernels
    assert not report.replaced
    assert report.reason == reason
    (word,) = words
    assert reason in word
    assert reason in repr(registers.report())
    assert repr(registers.report()).endswith("by the objective machine-code")


def test_a_wrong_answer_keeps_the_own_code() -> None:
    def everything_in_one(problem: Any, seed: int) -> Mapping[int, Any]:
        answer = linear_scan(problem)
        return dict.fromkeys(answer, next(iter(answer.values())))

    with allocator(everything_in_one, tell=lambda _: None) as registers:
        ours = compiled(kernels.sum_source())
    assert ours.asm["amdgcn"] == compiled(kernels.sum_source()).asm["amdgcn"]
    (report,) = registers.report().kernels
    assert report.reason is not None
    assert report.reason.startswith("allocation: ")


def test_what_is_not_better_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "is_better", lambda *_: False)
    words: list[str] = []
    with quick(words) as registers:
        compiled(kernels.sum_source(128))
    (report,) = registers.report().kernels
    assert report.reason == "not better by machine-code"
    assert report.ours is not None
    assert words == [f"scaled_sum, gfx942: {report.reason}: the own code stays"]


def test_triton_s_cache_tells_the_codes_apart() -> None:
    own = compiled(kernels.sum_source(512))
    with quick() as first:
        ours = compiled(kernels.sum_source(512))
        again = compiled(kernels.sum_source(512))
    with quick(seed=1) as other:
        compiled(kernels.sum_source(512))
    assert len({own.hash, ours.hash}) == 2
    assert again.hash == ours.hash
    assert [each.cached for each in first.report().kernels] == [False, True]
    assert first.report().kernels[0].to_json() == ours.metadata.verilocc_bench
    assert [each.cached for each in other.report().kernels] == [False]
    assert compiled(kernels.sum_source(512)).hash == own.hash


def test_calls_of_device_functions() -> None:
    signature = {"x": "*fp32", "out": "*fp32"}
    own = compiled(kernels.source(kernels.with_a_call, signature))
    with quick() as registers:
        ours = compiled(kernels.source(kernels.with_a_call, signature))
    (report,) = registers.report().kernels
    assert report.replaced or ours.asm["amdgcn"] == own.asm["amdgcn"]
    assert "squared" in own.asm["amdgcn"]


def test_other_targets_are_left_alone() -> None:
    from triton.backends.compiler import GPUTarget

    with quick() as registers:
        triton.compile(kernels.sum_source(), target=GPUTarget("hip", "gfx1100", 32))
    (report,) = registers.report().kernels
    assert report.reason is not None
    assert "gfx1100" in report.reason


def test_a_thread_uses_what_it_has_entered() -> None:
    entered = threading.Barrier(2)

    def one(block: int) -> list[str]:
        with quick(seed=block) as registers:
            entered.wait()
            compiled(kernels.sum_source(block))
            entered.wait()
        return [each.kernel for each in registers.report().kernels]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, (64, 1024))) == [["scaled_sum"], ["scaled_sum"]]
    # The workers of an executor have entered none.
    with quick(seed=7) as outer, ThreadPoolExecutor(2) as pool:
        list(pool.map(compiled, (kernels.sum_source(64), kernels.sum_source(1024))))
    assert len(outer.report().kernels) == 2
    assert plugin._active() is None


def test_other_hooks_stay() -> None:
    calls: list[int] = []

    def hook(*arguments: Any) -> Any:
        calls.append(len(arguments))
        return ("theirs", "theirs")

    runtime = triton.knobs.runtime
    with runtime.scope():
        runtime.add_stages_inspection_hook = hook
        with quick() as registers, quick(seed=3):
            assert plugin._hook()[0].startswith("theirs")  # type: ignore[index]
            compiled(kernels.sum_source(32))
        assert runtime.add_stages_inspection_hook is hook
    assert calls == [0, 0, 5]
    assert not registers.report().kernels  # the inner one served
    assert repr(registers.report()) == "no kernel was compiled"


def test_a_hook_that_calls_ours_does_no_harm() -> None:
    runtime = triton.knobs.runtime
    with runtime.scope():
        with quick():
            ours = runtime.add_stages_inspection_hook

            def theirs(*arguments: Any) -> Any:
                return ours(*arguments)

            runtime.add_stages_inspection_hook = theirs
        assert runtime.add_stages_inspection_hook is theirs
        with quick() as again:
            compiled(kernels.sum_source(16))
        assert len(again.report().kernels) == 1


def test_launches_and_autotuning_compile_with_our_registers() -> None:
    import torch

    tuned = triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"])(
        kernels.scaled_sum
    )
    x, y, out = (torch.zeros(256) for _ in range(3))
    active = triton.runtime.driver.active if triton.runtime.driver._active else None
    triton.runtime.driver.set_active(CompileOnlyDriver("gfx942"))
    try:
        with quick() as registers:
            tuned[(2,)](x, y, out, 256, 2.0)
            kernels.scaled_sum[(2,)](x, y, out, 256, 2.0, BLOCK=64)
            kernels.scaled_sum.warmup(x, y, out, 256, 2.0, BLOCK=32, grid=(8,))
    finally:
        triton.runtime.driver._active = active
    assert [each.kernel for each in registers.report().kernels] == ["scaled_sum"] * 4


def test_versions_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    monkeypatch.setattr(triton, "__version__", "9.1.0")
    with quick(words):
        pass
    assert words == [
        "Triton 9.1.0 is not tested, 3.7 is: where a stage differs, the compiler's own code stays"
    ]
    monkeypatch.setattr(triton, "knobs", SimpleNamespace(runtime=SimpleNamespace()))
    with pytest.raises(vb.InputError, match=r"Triton 9\.1\.0 has no knobs"), quick():
        pass


def test_without_llc_the_own_code_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_LLC", "/nowhere/llc")
    with quick() as registers:
        compiled(kernels.sum_source(2048))
    reason = registers.report().kernels[0].reason
    assert reason is not None
    assert "VERILOCC_BENCH_LLC" in reason


def test_unknown_settings_are_named() -> None:
    with pytest.raises(vb.InputError, match="colour"):
        allocator("best", colour="red")
    with pytest.raises(vb.InputError, match="no-such-model"):
        allocator("no-such-model")


@pytest.mark.parametrize(
    ("objective", "change", "better"),
    [
        ("registers", {"registers": 9}, True),
        ("registers", {"registers": 9, "waves": 7}, False),
        ("registers", {"bank_conflicts": 1}, True),
        ("registers", {}, False),
        ("bank-conflicts", {"registers": 11, "bank_conflicts": 1}, True),
        ("copies", {"registers": 11, "register_moves": 1}, True),
        ("combined", {"registers": 11, "register_moves": 1}, True),
        ("copies", {"register_moves": 1, "spill_code": 1}, False),
        ("machine-code", {"registers": 60, "loop_waits": 1}, True),
        ("machine-code", {"registers": 9, "loop_waits": 4}, False),
        ("machine-code", {"registers": 9, "waves": 7, "loop_waits": 1}, False),
        ("machine-code", {"registers": 9}, True),
        ("machine-code", {"registers": 9, "bank_conflicts": 3}, False),
        ("machine-code", {"registers": 14, "loop_waits": 2}, True),
        ("machine-code", {"loop_waits": 2, "register_moves": 3}, False),
        ("machine-code", {"loop_instructions": 70, "loop_wait_states": 0, "waves": 9}, True),
    ],
)
def test_what_better_means(objective: str, change: dict[str, int], better: bool) -> None:
    base = {
        "registers": 10, "waves": 8, "instructions": 50, "bank_conflicts": 2, "waits": 3,
        "loop_waits": 3, "spill_code": 0, "loop_instructions": 60, "loop_wait_states": 4,
        "register_moves": 2,
    }  # fmt: skip
    from verilocc_bench.settings.search import Objective

    own, ours = CodeFigures(**base), CodeFigures(**base | change)
    assert is_better(ours, own, Objective(objective)) is better
