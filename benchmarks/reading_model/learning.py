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

from benchmarks.reading_model.adapter import MATRICES, Masters, merged, rounded
from benchmarks.reading_model.network import Reader


@dataclass(slots=True)
class Settings:
    """What all parts of a plan share."""

    out: Path
    rows: float
    log_seconds: float
    measure_seconds: float
    end: float
    longest: int
    sample_seconds: float


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
    """Learns masters in full precision; `rounding`: through the form that ships."""

    def __init__(
        self, reader: Reader, base: Mapping[str, Tensor], masters: Masters, rate: float
    ) -> None:
        self.reader, self.base, self.masters = reader, base, masters
        self.rounding = False
        self.weights = dict(reader.named_parameters())
        rates = {name: rate * (1.0 if "." in name else 0.6) for name in masters}
        self.optimizer = torch.optim.AdamW(
            [{"params": [masters[name]], "rate": rates[name]} for name in masters],
            lr=rate,
            betas=(0.9, 0.95),
            weight_decay=0.0,
            fused=masters["words"].is_cuda,
        )
        self.write()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def write(self) -> None:
        """The reader's weights anew."""
        plain = {name: master.detach() for name, master in self.masters.items()}
        self.shipped = rounded(plain) if self.rounding else plain
        state = merged(self.base, self.shipped)
        torch._foreach_copy_(list(self.weights.values()), [state[name] for name in self.weights])

    def learn(self, words: Tensor, own: Tensor, share: float) -> Tensor:
        """One step; `share` of the highest learning rate. Returns the loss, unread."""
        scores = self.reader(words[:, :-1])
        targets = torch.where(own[:, 1:], words[:, 1:], -100)
        loss = F.cross_entropy(scores.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)
        loss.backward()
        with torch.no_grad():
            self._pass_on()
        torch.nn.utils.clip_grad_norm_(list(self.masters.values()), 1.0, foreach=True)
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * share
        self.optimizer.step()
        self.write()
        for weight in self.weights.values():
            weight.grad = None
        return loss.detach()

    def _pass_on(self) -> None:
        """Gradients of the weights become gradients of the masters."""
        layers = range(self.reader.shape.layers)
        grads = {name: weight.grad for name, weight in self.weights.items()}
        for kind in MATRICES:
            whole = torch.stack([grads[f"layers.{index}.{kind}"] for index in layers]).float()
            out, into = self.masters[kind + ".out"], self.masters[kind + ".in"]
            out.grad = torch.bmm(whole, self.shipped[kind + ".in"])
            into.grad = torch.bmm(whole.mT, self.shipped[kind + ".out"])
        norms = [grads[f"layers.{index}.norm{norm}"] for index in layers for norm in (1, 2)]
        self.masters["norms"].grad = torch.stack([*norms, grads["norm"]]).float()
        self.masters["words"].grad = grads["words"].float()


def share_of_rate(step: int, done: float, warm: int = 40, *, last: bool = True) -> float:
    """Rises over the first steps, stays, and falls over the last half of the last part's time."""
    fall = max(0.02, (1 - done) / 0.5) if last else 1.0
    return min(1.0, (step + 1) / warm) * min(1.0, fall)
