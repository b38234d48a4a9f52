"""A taskset of the package `verifiers`: a task is a kernel, its reward the score of the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import verifiers.v1 as vf

from verilocc_bench.api.environment import prompts, reward_function
from verilocc_bench.api.problems import load_problems

__all__ = ["KernelTaskset"]


class KernelData(vf.TaskData):
    """What is sent with a task: the id of its kernel, and from where it is."""

    kernel: str
    dataset: str
    split: str
    prompt_format: str


class KernelTask(vf.Task[KernelData]):
    """One kernel. The answer is the last thing that the model says."""

    @property
    def key(self) -> str:
        """The kernel's id."""
        return self.data.kernel

    @vf.reward
    async def register_score(self, trace: Any) -> float:
        """0 unless the answer is valid, 0.5 at the compiler's registers, 1 at the proved bound."""
        said = trace.last_message.content
        words = said if isinstance(said, str) else "".join(part.text for part in said or [])
        data = self.data
        reward = _rewards(data.dataset, data.split, data.prompt_format)
        return reward([words], [data.kernel])[0]


@cache
def _rewards(dataset: str, split: str, prompt_format: str) -> Callable[..., list[float]]:
    return reward_function(dataset, split=split, prompt_format=prompt_format)


class KernelConfig(vf.TasksetConfig):
    """Which kernels, and how they are shown: `whole` shows a kernel at once.

    `mini` has the split `test` alone. Of other datasets `train` is for learning.
    """

    dataset: str = "mini"
    split: str = "test"
    arch: str | None = None
    limit: int | None = None
    prompt_format: str = "whole"


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    """The kernels of a dataset."""

    def load(self) -> Iterator[KernelTask]:
        """A task a kernel."""
        config = self.config
        kernels = load_problems(
            config.dataset, split=config.split, arch=config.arch, limit=config.limit
        )
        for row in prompts(kernels, prompt_format=config.prompt_format):
            data = KernelData(
                id=row["kernel"], prompt=row["prompt"], kernel=row["kernel"],
                dataset=config.dataset, split=config.split, prompt_format=config.prompt_format,
            )  # fmt: skip
            yield KernelTask(data, config.task)
