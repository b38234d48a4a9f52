"""Trains language models to allocate registers while they read, under a budget of minutes.

It needs torch, numpy and safetensors alone, on one GPU or, to try it, on a CPU. It reads data and
weights from the folder in which it is started:

    python -m benchmarks.reading_model.train --plan start/8192/1.5/0,on/28672/2.4/150 --out OUT

Each part of the plan is MODEL/LENGTH/MINUTES/SECONDS: minutes of training on rows of this length,
then seconds of free conversations. `start` begins from start.safetensors, weights of SmolLM2-135M
that were trained before; `small` and `tiny` are networks of 28 and 1 million random weights. `on`
goes on with the weights of the part before, also with those that an earlier run has left in
state.pt, or in kept_0 to kept_3 in this folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from benchmarks.reading_model.conversation import NAME_COUNT, WORDS
from benchmarks.reading_model.data import MEASURED, Feeder, held_out, held_out_made_up, load
from benchmarks.reading_model.learning import (
    LEARNING_RATES,
    Learner,
    RunJournal,
    Settings,
    share_of_rate,
)
from benchmarks.reading_model.measuring import NO_TIME, allocate_freely, spelled, wrong_words
from benchmarks.reading_model.network import (
    HERE,
    ROPE_BASE,
    SHAPES,
    Reader,
    choose_attention,
    compiled_block,
    layer_of_rows,
)
from benchmarks.reading_model.stored import keep, kept, squeezed

Function = Mapping[str, Any]


def train(  # noqa: PLR0917
    name: str,
    reader: Reader,
    model: str,
    length: int,
    minutes: float,
    feeder: Feeder,
    functions: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
) -> None:
    """One part of the plan."""
    rows = max(1, int(settings.rows * 4096 / length))
    feeder.turn_to(length)
    brief = held_out(functions, min(length, MEASURED), 3)
    counts = wrong_words(reader, brief, rows)
    journal.say(f"{name} begins: wrong {spelled(counts)}", name=name, tokens=0, wrong=counts)
    learner = Learner(reader, LEARNING_RATES[model] * settings.rate)
    total = sum(w.numel() for w in learner.weights)
    journal.say(
        f"{name}: {total / 1e6:.1f} M weights, rows of {length}, {rows} a step, {minutes} minutes"
    )
    batch = feeder.batch(rows)
    losses = [_first_step(name, learner, batch, journal)]
    begin = last_log = last_measure = time.time()
    end = min(begin + 60 * minutes, settings.end)
    tokens, own_tokens, step, tokens_before = batch[0].size, int((batch[1] > 0).sum()), 1, 0
    while (now := time.time()) < end:
        batch = feeder.batch(rows)
        share = share_of_rate(step, (now - begin) / max(1e-9, end - begin))
        losses.append(_step(learner, batch, share))
        step += 1
        tokens += batch[0].size
        own_tokens += int((batch[1] > 0).sum())
        if step % 20 == 0:
            losses[-1].item()
        if now - last_log > settings.log_seconds:
            loss = torch.stack(losses).mean().item()
            losses.clear()
            passed = time.time() - last_log
            speed = (tokens - tokens_before) / passed
            last_log, tokens_before = time.time(), tokens
            text = f"{name} step {step} tokens {tokens / 1e6:.2f}M {speed:.0f}/s"
            text += f" loss {loss:.4f} rate {share:.2f} waited {feeder.waited}"
            journal.say(text, name=name, step=step, tokens=tokens, speed=speed, loss=loss)
            if not math.isfinite(loss):
                break
        if now - last_measure > settings.measure_seconds:
            counts = wrong_words(reader, brief, rows)
            last_measure = time.time()
            journal.say(
                f"{name} at {tokens / 1e6:.2f}M wrong {spelled(counts)}",
                name=name,
                tokens=tokens,
                own=own_tokens,
                minutes=(now - begin) / 60,
                wrong=counts,
            )
    length = min(length, MEASURED)
    measures: dict[str, Any] = {"tokens": tokens, "own": own_tokens}
    found = {
        "mini": held_out(functions, length, 9, seed=11),
        "made_up": held_out_made_up(length, 4),
    }
    for title, held in found.items():
        measures[title] = wrong_words(reader, held, rows)
        journal.say(f"{name} end {tokens / 1e6:.2f}M wrong on {title} {spelled(measures[title])}")
    journal.say(f"{name} end", name=name, end=measures)


def _step(learner: Learner, batch: tuple[np.ndarray, np.ndarray], share: float) -> Tensor:
    words, own = torch.from_numpy(batch[0]), torch.from_numpy(batch[1] > 0)
    device = learner.weights[0].device
    if device.type == "cuda":
        words, own = words.pin_memory(), own.pin_memory()
    words, own = words.to(device, non_blocking=True).long(), own.to(device, non_blocking=True)
    return learner.learn(words, own, share)


def _first_step(
    name: str, learner: Learner, batch: tuple[np.ndarray, np.ndarray], journal: RunJournal
) -> Tensor:
    """The step that compiles; without compiled layers if that fails."""
    begin = time.time()
    try:
        loss = _step(learner, batch, 0.03)
    except Exception:  # noqa: BLE001  a run of few minutes goes on, slower
        journal.say(f"{name} plainly: {traceback.format_exc()[-500:]}")
        learner.reader.run = partial(layer_of_rows, learner.reader.shape)
        loss = _step(learner, batch, 0.03)
    journal.say(f"{name} first step {time.time() - begin:.1f} s, loss {loss.item():.3f}")
    return loss


def asked(functions: Sequence[Function], length: int) -> list[Function]:
    """Functions, the most telling first: a run that is cut short loses the last.

    First the small dataset, AMD and then sm_80 and sm_90, the shortest before the others. Left out
    are those for which the teacher finds no register or not enough words.
    """
    fitting = [f for f in functions if f["whole"] and f["longest"] <= length]
    small = [f for f in fitting if not f["split"].startswith("test")]
    small.sort(key=lambda f: (f["split"], f["spoken"]))
    return small + [f for f in fitting if f["split"].startswith("test")]


def speak_freely(  # noqa: PLR0917
    name: str,
    reader: Reader,
    length: int,
    seconds: float,
    functions: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
) -> None:
    """Whole functions, written beside the log as they come."""
    begin = time.time()
    end = min(begin + seconds, settings.end)
    tally: dict[str, list[int]] = {}
    words = 0
    for function in asked(functions, length):
        result = allocate_freely(reader, function, 0, length=length, end=end)
        if result["why"] == NO_TIME:
            break
        with gzip.open(settings.out / "generations.jsonl.gz", "at") as stream:
            stream.write(json.dumps({"part": name, **result}) + "\n")
        counts = tally.setdefault(function["split"], [0, 0])
        counts[0] += result["fits"]
        counts[1] += 1
        words += result["count"]
        text = f"{function['split']} {function['id'][:6]} of {function['spoken']} words:"
        text += f" {result['fits']} {result['why']} after {result['count']}"
        journal.say(f"{text}, other words {result['refused']}")
    took = time.time() - begin
    text = ", ".join(f"{title} {good} of {count}" for title, (good, count) in tally.items())
    journal.say(f"{name} freely: {text}; {words} words in {took:.1f} s", name=name, freely=tally)


@cache
def _start_weights() -> dict[str, Tensor]:
    return squeezed(HERE / "start.safetensors")


def make(model: str, settings: Settings) -> tuple[str, Reader, dict[str, Tensor] | None]:
    """The shape's name, a reader with the weights that it begins from, and the base of changes."""
    state: dict[str, Tensor] | None = None
    if model == "start":
        model, state = "smol", _start_weights()
    elif model == "on" and (HERE / "state.pt").exists():
        model, state = torch.load(HERE / "state.pt", weights_only=True)
    elif model == "on":
        with safe_open(HERE / "kept_0.safetensors", "pt") as file:
            model = file.metadata()["model"]
        state = kept(HERE, _start_weights() if model == "smol" else None)
    torch.manual_seed(0)
    reader = Reader(SHAPES[model], settings.base)
    if state is not None:
        reader.load_state_dict(state)
    device = settings.device
    reader.to(device, torch.bfloat16 if device == "cuda" else torch.float32)
    if settings.compiled:
        reader.run = partial(compiled_block(), SHAPES[model])
    return model, reader, _start_weights() if model == "smol" else None


def one_part(  # noqa: PLR0917
    index: int,
    part: Sequence[str],
    feeder: Feeder,
    functions: Sequence[Function],
    tests: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
) -> None:
    """One part of the plan: trains, measures, keeps, speaks."""
    length, (minutes, seconds) = int(part[1]), map(float, part[2:])
    model, reader, base = make(part[0], settings)
    name = f"{index}.{model}.{length}" + ("+" if part[0] in ("on", "start") else "")
    if minutes:
        train(name, reader, model, length, minutes, feeder, functions, settings, journal)
        torch.save((model, reader.state_dict()), HERE / "state.pt")
        keep(model, reader.state_dict(), base, settings.out)
        journal.say(f"{name}: kept", name=name, kept=[model, settings.base])
        reader.load_state_dict(kept(settings.out, base))
        counts = wrong_words(reader, held_out(functions, min(length, MEASURED), 3), 1)
        journal.say(f"{name} as kept: wrong {spelled(counts)}", name=name, as_kept=counts)
    if seconds:
        chosen = (*functions, *tests)
        speak_freely(name, reader, length, seconds, chosen, settings, journal)


def main() -> None:
    """Reads the plan and goes through it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--plan", required=True)
    parser.add_argument("--minutes", type=float, default=9.5, help="all in all")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=13)
    parser.add_argument("--rows", type=float, default=8, help="rows of 4,096 words a step")
    parser.add_argument("--base", type=float, default=ROPE_BASE, help="of the positions' angles")
    parser.add_argument("--rate", type=float, default=0.6, help="of learning, to a first rate")
    parser.add_argument("--log-seconds", type=float, default=5.0)
    parser.add_argument("--measure-seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    journal = RunJournal(arguments.out)
    functions, tests = load(HERE / "mini.jsonl.gz"), load(HERE / "test.jsonl.gz")
    training = [f for f in load(HERE / "train.jsonl.gz") if f["names"] <= NAME_COUNT]
    feeder = Feeder(training, arguments.workers, 1, seed=int(time.time()))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    attention = choose_attention(device)
    settings = Settings(
        arguments.out, device, arguments.rows, arguments.log_seconds, arguments.measure_seconds,
        device == "cuda", journal.begin + 60 * arguments.minutes, arguments.base, arguments.rate,
    )  # fmt: skip
    journal.say(f"{device}, torch {torch.__version__}, {len(WORDS)} words, plan {arguments.plan}")
    journal.say(f"{len(training)} functions to learn from, {len(functions) + len(tests)} held out")
    if device == "cuda":
        journal.say(f"{torch.cuda.get_device_name()}, attention by {attention}")
    for index, part in enumerate(arguments.plan.split(",")):
        try:
            one_part(index, part.split("/"), feeder, functions, tests, settings, journal)
        except Exception:  # noqa: BLE001  the next part goes on
            journal.say(f"{index}: failed: {traceback.format_exc()[-1500:]}")
        if device == "cuda":
            torch.cuda.empty_cache()
    feeder.close()
    journal.say("end")


if __name__ == "__main__":
    main()
