"""On real divergent code no sleeping thread misses a place where something could be inserted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import find_llc
from tests.edits.exec_simulation import Simulation, machine_ir
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.edits import VectorPlaces
from verilocc_bench.targets import get_target

KERNELS = 12
RUNS = 40


@pytest.fixture(scope="module", name="tools")
def _tools() -> tuple[str, str]:
    llc = find_llc()
    opt = shutil.which("opt-22") or (llc and shutil.which("opt", path=str(Path(llc).parent)))
    if llc is None or not opt:
        reason = "needs opt and llc of LLVM 22 (Debian: llvm-22)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return opt, llc


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_no_sleeping_thread_misses_an_insertion(tools: tuple[str, str], arch: str) -> None:
    wakes = places = 0
    for seed in range(arch == "gfx942", KERNELS, 2):  # they take turns
        text = machine_ir(seed, *tools, arch)
        module = parse_mir(text)
        function = normalize_machine_function(
            module.functions[0], module, get_target(arch)
        ).function
        simulation = Simulation(text, module.functions[0], function)
        for run in range(RUNS):
            assert not list(simulation.missed(run)), (seed, run)
        wakes += simulation.wakes
        places += sum(map(sum, simulation.allowed))
    assert wakes > 100
    assert places > 100


def test_a_rule_without_objections_is_found_out(
    tools: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VectorPlaces, "objections", lambda *_: iter(()))
    found = 0
    for seed in range(4):
        text = machine_ir(seed, *tools, "gfx942")
        module = parse_mir(text)
        function = normalize_machine_function(
            module.functions[0], module, get_target("gfx942")
        ).function
        simulation = Simulation(text, module.functions[0], function)
        found += sum(bool(list(simulation.missed(run))) for run in range(RUNS))
    assert found
