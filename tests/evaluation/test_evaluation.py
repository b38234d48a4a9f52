"""A run as a function: what is asked, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from verilocc_bench.allocators import BUILT_IN, Allocator, LabelUse
from verilocc_bench.dataset import BudgetChoice
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import RunConfiguration, resolve_model, settings_kind
from verilocc_bench.evaluation.models.python_code import ForeignAllocator
from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.language_model import (
    EndpointSettings,
    LocalModelSettings,
    SamplingStrategy,
)
from verilocc_bench.settings.program import ProgramSettings
from verilocc_bench.settings.search import PlacementSettings, SearchSettings

SMALL = RunConfiguration("linear-scan", archs=("sm_80",), limit=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"track": "split", "budget": BudgetChoice.BOUND}, "--budget is for the assign track"),
        ({"ks": (1, 10), "samples": 3}, "pass@10 needs --samples 10 or more"),
        ({"archs": ("sm_1",)}, "sm_1"),
    ],
)
def test_what_cannot_be_asked_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunConfiguration("compiler", **changes)


def test_what_a_configuration_says() -> None:
    found = RunConfiguration("compiler", samples=10, ks=(10, 5, 10))
    assert found.ks == (1, 5, 10)
    assert replace(found, dataset="owner/name").dataset_name == "owner/name"
    model = LocalModelSettings()
    several = RunConfiguration("m", model, samples=2).asked_settings()
    assert several == replace(model, strategy=SamplingStrategy.RANDOM)
    assert RunConfiguration("m", model).asked_settings() is model


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("compiler", AllocatorSettings),
        ("linear-scan", PlacementSettings),
        ("tabu-search", SearchSettings),
        ("command:cat", ProgramSettings),
        ("python:a:b", AllocatorSettings),
        ("predictions:a.jsonl", AllocatorSettings),
        ("reference-llm", LocalModelSettings),
        ("owner/name", LocalModelSettings),
        ("https://localhost/v1", EndpointSettings),
        ("nothing", AllocatorSettings),
    ],
)
def test_each_model_has_a_kind_of_settings(model: str, kind: type[AllocatorSettings]) -> None:
    assert settings_kind(model) is kind


def test_every_allocator_says_what_the_protocol_asks() -> None:
    members = [name for name in vars(Allocator) if not name.startswith("_")]
    assert len(members) >= 13
    found = [*map(resolve_model, BUILT_IN), resolve_model("command:cat")]
    found.append(ForeignAllocator("f", lambda _: None, "r", AllocatorSettings()))
    for allocator in found:
        assert [name for name in members if not hasattr(allocator, name)] == []
    sees = {each.name for each in found if each.label_use is not LabelUse.NONE}
    assert sees == {"compiler", "llvm-basic", "best", "best-or-compiler"}
