"""The taskset for `verifiers`, with a stand-in for that package, which wants another openai."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, TypeVar

import pytest

import verilocc_bench as vb

FILE = Path(__file__).parents[2] / "examples" / "verifiers" / "verilocc_regalloc.py"


Kind = TypeVar("Kind")
Other = TypeVar("Other")


def stand_in() -> Any:
    class Task(Generic[Kind]):
        def __init__(self, data: Any, config: Any) -> None:
            self.data, self.config = data, config

    class Taskset(Generic[Kind, Other]):
        def __init__(self, config: Any) -> None:
            self.config = config

    module: Any = ModuleType("verifiers.v1")
    module.TaskData, module.TasksetConfig = SimpleNamespace, SimpleNamespace
    module.Task, module.Taskset, module.reward = Task, Taskset, lambda function: function
    return module


def test_a_task_is_a_kernel_and_its_reward_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = ModuleType("verifiers")
    package.v1 = stand_in()
    monkeypatch.setitem(sys.modules, "verifiers", package)
    monkeypatch.setitem(sys.modules, "verifiers.v1", package.v1)
    made = runpy.run_path(str(FILE))
    assert made["__all__"] == ["KernelTaskset"]
    config = SimpleNamespace(
        dataset="mini", split="test", arch="gfx90a", limit=2, prompt_format="whole", task=None
    )
    task, other = made["KernelTaskset"](config).load()
    problems = vb.load_problems("mini", arch="gfx90a", limit=2)
    assert [task.key, other.key] == [problem.id for problem in problems]
    assert task.data.prompt[-1]["role"] == "user"

    def reward(words: str) -> float:
        trace = SimpleNamespace(last_message=SimpleNamespace(content=words))
        found: float = asyncio.run(task.register_score(trace))
        return found

    label = problems[0].label
    assert label is not None
    answer = json.dumps({name: str(register) for name, register in label.items()})
    assert reward(f"Here it is: {answer}") >= 0.5
    assert reward("I do not know.") == 0
