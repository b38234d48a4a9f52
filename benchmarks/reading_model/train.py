"""Trains a change of SmolLM2 to allocate registers while it reads, under a budget of minutes.

It needs torch, numpy and safetensors alone, on one GPU or, to try it, on a CPU. It reads data from
the folder in which it is started, and the base from there and the folder that --base names:

    python -m benchmarks.reading_model.train --plan 8192/1.2,40960/2.6 --base BASE --out OUT

Each part of the plan is LENGTH/MINUTES: minutes of training on rows of this length. It begins from
start.safetensors, and keeps adapter.safetensors, in the form that ships, after each part. Then it
speaks freely, about whole functions, until the time ends: first greedily, then by chance. `--tiny`
begins from a small network drawn by chance.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.reading_model import adapter
from benchmarks.reading_model.data import MEASURED, Feeder, held_out, held_out_made_up, load
from benchmarks.reading_model.learning import Learner, RunJournal, Settings, share_of_rate
from benchmarks.reading_model.measuring import NO_TIME, allocate_freely, spelled, wrong_words
from benchmarks.reading_model.network import (
    HERE,
    SHAPES,
    VOCABULARY,
    Reader,
    choose_attention,
    compiled_block,
    layer_of_rows,
)
from verilocc_bench.model.reading.conversation import NAME_COUNT, WORDS

Function = Mapping[str, Any]
PATIENCE = 20.0
"""Seconds for a function at first; who needs more is asked again when all others were asked."""
SAMPLES, TEMPERATURE = 10, 0.7
ROUNDED = 0.35
"""Of the last part's time it learns in full precision, then in the form that ships."""


def train(  # noqa: PLR0917
    learner: Learner,
    length: int,
    minutes: float,
    feeder: Feeder,
    functions: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
    *,
    last: bool,
) -> None:
    """One part of the plan."""
    rows = max(1, int(settings.rows * 4096 / length))
    name, reader = str(length), learner.reader
    feeder.turn_to(length)
    brief = held_out(functions, min(length, MEASURED), 3)
    counts = wrong_words(reader, brief, 1)
    journal.say(f"{name} begins: wrong {spelled(counts)}", name=name, tokens=0, wrong=counts)
    losses = [_first_step(name, learner, feeder.batch(rows), journal)]
    begin = last_log = last_measure = time.time()
    end = min(begin + 60 * minutes, settings.end)
    tokens = own_tokens = step = tokens_before = 0
    while (now := time.time()) < end:
        batch = feeder.batch(rows)
        done = (now - begin) / max(1e-9, end - begin)
        learner.rounding = last and done > ROUNDED
        share = share_of_rate(step, done, last=last)
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
                raise ArithmeticError(f"the loss is {loss}")
        if now - last_measure > settings.measure_seconds:
            counts = wrong_words(reader, brief, 1)
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
        measures[title] = wrong_words(reader, held, 1)
        journal.say(f"{name} end {tokens / 1e6:.2f}M wrong on {title} {spelled(measures[title])}")
    journal.say(f"{name} end", name=name, end=measures)


def _step(learner: Learner, batch: tuple[np.ndarray, np.ndarray], share: float) -> Tensor:
    words, own = torch.from_numpy(batch[0]), torch.from_numpy(batch[1] > 0)
    device = learner.masters["words"].device
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
        loss = _step(learner, batch, 0.01)
    except Exception:  # noqa: BLE001  a run of few minutes goes on, slower
        journal.say(f"{name} plainly: {traceback.format_exc()[-500:]}")
        learner.reader.run = partial(layer_of_rows, learner.reader.shape)
        loss = _step(learner, batch, 0.01)
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


def speak_freely(
    reader: Reader, functions: Sequence[Function], settings: Settings, journal: RunJournal
) -> None:
    """Whole functions, greedily, and then by chance; written beside the log as they come."""
    begin = time.time()
    tally: dict[str, list[int]] = {}
    late: list[Function] = []
    by_split: dict[str, list[Function]] = {}

    def ask(function: Function, seed: int, end: float) -> bool:
        temperature = TEMPERATURE if seed else 0.0
        result = allocate_freely(
            reader, function, seed, length=settings.longest, end=end, temperature=temperature
        )
        if result["why"] == NO_TIME:
            return False
        with gzip.open(settings.out / "generations.jsonl.gz", "at") as stream:
            stream.write(json.dumps({"part": "shipped", **result}) + "\n")
        counts = tally.setdefault(f"{function['split']}{' by chance' * bool(seed)}", [0, 0])
        counts[0] += result["fits"]
        counts[1] += 1
        text = f"{function['split']} {function['id'][:6]} {seed} of {function['spoken']} words:"
        text += f" {result['fits']} {result['why']} after {result['count']}"
        journal.say(f"{text}, other words {result['refused']}")
        return True

    greedy_end = settings.end - settings.sample_seconds
    for function in functions:
        by_split.setdefault(function["split"], []).append(function)
        if time.time() > greedy_end:
            break
        if not ask(function, 0, min(greedy_end, time.time() + PATIENCE)):
            late.append(function)
            journal.say(f"{function['split']} {function['id'][:6]} is asked again later")
    journal.say(f"greedily: {tally}", name="shipped", freely=tally)
    chosen = [found[len(found) * i // 3] for found in by_split.values() for i in range(3)]
    for seed in range(1, 1 + SAMPLES):
        for function in chosen:
            if time.time() < settings.end - 5:
                ask(function, seed, min(settings.end, time.time() + PATIENCE))
    for function in late:
        ask(function, 0, settings.end)
    journal.say(f"freely: {tally} in {time.time() - begin:.1f} s", name="shipped", freely=tally)


def keep(learner: Learner, out: Path) -> None:
    """The form that ships, and what another run goes on from."""
    adapter.save(learner.masters, out / "adapter.safetensors")
    names = [("qkv", "o"), ("gate_up",), ("down", "words", "norms")]
    for index, kinds in enumerate(names):
        part = {n: m for n, m in learner.masters.items() if n.split(".")[0] in kinds}
        part = {n: m.detach().to(torch.bfloat16).cpu().contiguous() for n, m in part.items()}
        save_file(part, out / f"state_{index}.safetensors")


def begin(tiny: bool, base_folder: Path) -> tuple[str, dict[str, Tensor], adapter.Masters]:
    """The shape's name, the base, the masters."""
    torch.manual_seed(0)
    if tiny:
        base = adapter.random_base(SHAPES["tiny"])
        return "tiny", base, adapter.random_masters(base, VOCABULARY)
    files = [*sorted(base_folder.glob("base_*")), *sorted(HERE.glob("base_*"))]
    return "smol", adapter.pretrained(files), adapter.load(HERE / "start.safetensors")


def _as_kept(
    reader: Reader,
    base: Mapping[str, Tensor],
    functions: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
) -> None:
    """Turns to the weights of the file that ships, and measures them."""
    shipped = adapter.load(settings.out / "adapter.safetensors")
    shipped = {name: master.to(reader.words.device) for name, master in shipped.items()}
    reader.load_state_dict(adapter.merged(base, shipped))
    counts = wrong_words(reader, held_out(functions, min(MEASURED, settings.longest), 3), 1)
    journal.say(f"as kept: wrong {spelled(counts)}", name="shipped", as_kept=counts)


def main() -> None:
    """Reads the plan and goes through it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--plan", required=True)
    parser.add_argument("--minutes", type=float, default=7, help="all in all")
    parser.add_argument("--base", type=Path, default=HERE)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--rows", type=float, default=10, help="rows of 4,096 words a step")
    parser.add_argument("--rate", type=float, default=6e-4, help="of learning")
    parser.add_argument("--longest", type=int, default=40960, help="words of a conversation")
    parser.add_argument("--sample-seconds", type=float, default=35, help="left for pass@10")
    parser.add_argument("--log-seconds", type=float, default=5.0)
    parser.add_argument("--measure-seconds", type=float, default=20.0)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    journal = RunJournal(arguments.out)
    functions, tests = load(HERE / "mini.jsonl.gz"), load(HERE / "test.jsonl.gz")
    training = [f for f in load(HERE / "train.jsonl.gz") if f["names"] <= NAME_COUNT]
    feeder = Feeder(training, arguments.workers, seed=int(time.time()))
    plan = [part.split("/") for part in arguments.plan.split(",")]
    feeder.turn_to(int(plan[0][0]))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    attention = choose_attention(device)
    settings = Settings(
        arguments.out, arguments.rows, arguments.log_seconds, arguments.measure_seconds,
        journal.begin + 60 * arguments.minutes, arguments.longest, arguments.sample_seconds,
    )  # fmt: skip
    model, base, masters = begin(arguments.tiny, arguments.base)
    base = {name: matrix.to(device) for name, matrix in base.items()}
    masters = {name: m.float().to(device).requires_grad_() for name, m in masters.items()}
    reader = Reader(SHAPES[model])
    reader.to(device, torch.bfloat16 if device == "cuda" else torch.float32)
    if device == "cuda":
        reader.run = partial(compiled_block(), SHAPES[model])
        journal.say(f"{torch.cuda.get_device_name()}, attention by {attention}")
    learner = Learner(reader, base, masters, arguments.rate)
    total = sum(m.numel() for m in masters.values())
    journal.say(f"torch {torch.__version__}, {len(WORDS)} words, plan {arguments.plan}")
    journal.say(f"{total / 1e6:.1f} M weights, {len(training)} functions to learn from")
    for index, (length, minutes) in enumerate(plan):
        try:
            train(
                learner, int(length), float(minutes), feeder, functions, settings, journal,
                last=index == len(plan) - 1,
            )  # fmt: skip
        except Exception:  # noqa: BLE001  the next part goes on
            journal.say(f"{length}: failed: {traceback.format_exc()[-1500:]}")
        if all(m.isfinite().all() for m in masters.values()):
            keep(learner, arguments.out)
            journal.say(f"{length}: kept")
    feeder.close()
    _as_kept(reader, base, functions, settings, journal)
    speak_freely(reader, asked([*functions, *tests], settings.longest), settings, journal)
    journal.say("end")


if __name__ == "__main__":
    main()
