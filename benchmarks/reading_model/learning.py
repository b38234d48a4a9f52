"""One step of learning, and the journal of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from torch import Tensor

from benchmarks.reading_model.network import Reader

LEARNING_RATES: Mapping[str, float] = {"smol": 6e-4, "small": 1.5e-3, "tiny": 3e-3}


@dataclass(slots=True)
class Settings:
    """What all parts of a plan share."""

    out: Path
    device: str
    rows: float
    log_seconds: float
    measure_seconds: float
    compiled: bool
    end: float
    base: float
    rate: float


class RunJournal:
    """Lines for people, and the same as JSON lines."""

    def __init__(self, out: Path) -> None:
        self.begin = time.time()
        self.out = out
        (out / "train.log").touch()

    def say(self, text: str, **values: Any) -> None:
        """Adds a line to both."""
        seconds = round(time.time() - self.begin, 1)
        line = f"{seconds:7.1f} {text}"
        print(line, flush=True)
        with (self.out / "train.log").open("a") as stream:
            stream.write(line + "\n")
        if values:
            with (self.out / "results.jsonl").open("a") as stream:
                stream.write(json.dumps({"seconds": seconds, "text": text, **values}) + "\n")


class Learner:
    """A reader with its optimizer: full-precision weights behind those that it reads with."""

    def __init__(self, reader: Reader, peak: float) -> None:
        self.reader = reader
        self.peak = peak
        self.weights = list(reader.parameters())
        self.masters = [w.detach().float().clone().requires_grad_() for w in self.weights]
        matrices = [m for m in self.masters if m.dim() > 1]
        vectors = [m for m in self.masters if m.dim() == 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
            lr=peak,
            betas=(0.9, 0.95),
            fused=self.weights[0].is_cuda,
        )

    def learn(self, words: Tensor, own: Tensor, share: float) -> Tensor:
        """One step; `share` of the highest learning rate. Returns the loss, unread."""
        scores = self.reader(words[:, :-1])
        targets = torch.where(own[:, 1:], words[:, 1:], -100)
        loss = F.cross_entropy(scores.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)
        loss.backward()
        grads = [w.grad for w in self.weights]
        assert all(g is not None for g in grads)
        for master, grad in zip(self.masters, grads, strict=True):
            master.grad = grad.float() if grad is not None else None
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * share
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.masters)
        for weight in self.weights:
            weight.grad = None
        return loss.detach()


def share_of_rate(step: int, done: float, warm: int = 40) -> float:
    """Rises over the first steps, stays, and falls over the last third of the time."""
    return min(1.0, (step + 1) / warm) * min(1.0, max(0.03, (1 - done) / 0.35))
