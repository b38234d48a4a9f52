"""Trains language models to allocate registers while they read, under a budget of minutes.

It needs torch, numpy and safetensors alone, on one GPU or, to try it, on a CPU. It reads data and
weights from the folder in which it is started:

    python -m benchmarks.reading_model.train --plan small/links/4608/1/9 --base 500000 --out OUT

Each part of the plan is MODEL/FORMAT/LENGTH/MINUTES/SECONDS: minutes of training on rows of this
length, then seconds of free conversations. `smol` begins from SmolLM2-135M, whose 4-bit blocks lie
in weights_0.safetensors to weights_2.safetensors; `scratch` has the same shape and random weights;
`small` is a network of 25 million weights. `best` goes on with the weights of its format that had
the fewest wrong words so far (`best/any`: whatever the format), `kept`, or `best` where there are
none, with those of kept_0 to kept_3 in this folder. speed/MODEL/LENGTH measures attention and
compiled layers.
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

import torch
from safetensors import safe_open
from torch import Tensor

from benchmarks.reading_model.conversation import WORDS
from benchmarks.reading_model.data import Feeder, held_out, held_out_made_up, load
from benchmarks.reading_model.learning import (
    LEARNING_RATES,
    Learner,
    RunJournal,
    Settings,
    choose_speed,
    share_of_rate,
)
from benchmarks.reading_model.measuring import converse_freely, spelled, wrong_words
from benchmarks.reading_model.network import (
    HERE,
    ROPE_BASE,
    SHAPES,
    Reader,
    compiled_block,
)
from benchmarks.reading_model.stored import keep, kept, pretrained

Function = Mapping[str, Any]


def train(  # noqa: PLR0917
    name: str,
    reader: Reader,
    model: str,
    form: str,
    length: int,
    minutes: float,
    feeder: Feeder,
    functions: Sequence[Function],
    settings: Settings,
    journal: RunJournal,
    rate_factor: float,
) -> dict[str, Any]:
    """One part of the plan. Returns its last measures."""
    device = settings.device
    rows = max(1, int(settings.rows * 4096 / length))
    feeder.turn_to(form, length)
    brief = held_out(functions, form, length, max(4, rows * 2))
    learner = Learner(reader, LEARNING_RATES[model] * rate_factor)
    total = sum(w.numel() for w in learner.weights)
    journal.say(
        f"{name}: {total / 1e6:.1f} M weights, rows of {length}, {rows} a step, {minutes} minutes"
    )
    begin = last_log = last_measure = time.time()
    end = settings.end
    tokens = own_tokens = step = tokens_before = 0
    losses: list[Tensor] = []
    while (now := time.time()) < end:
        batch = feeder.batch(rows)
        words = torch.from_numpy(batch[0])
        own = torch.from_numpy(batch[1] > 0)
        own_tokens += int(own.sum())
        if device == "cuda":
            words, own = words.pin_memory(), own.pin_memory()
        words, own = words.to(device, non_blocking=True).long(), own.to(device, non_blocking=True)
        share = share_of_rate(step, (now - begin) / max(1e-9, end - begin))
        losses.append(learner.learn(words, own, share))
        step += 1
        tokens += batch[0].size
        if step == 1:  # the first step compiles
            loss = losses[-1].item()
            journal.say(f"{name} first step {time.time() - begin:.1f} s, loss {loss:.3f}")
            begin = last_log = last_measure = time.time()
            end = min(begin + 60 * minutes, settings.end)
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
            journal.say(
                text,
                name=name,
                step=step,
                tokens=tokens,
                speed=speed,
                loss=loss,
            )
            if not math.isfinite(loss):
                break
        if now - last_measure > settings.measure_seconds:
            counts = wrong_words(reader, brief, rows)
            last_measure = time.time()
            journal.say(
                f"{name} at {tokens / 1e6:.2f}M wrong {spelled(counts)}",
                name=name,
                form=form,
                tokens=tokens,
                own=own_tokens,
                minutes=(now - begin) / 60,
                wrong=counts,
            )
    return _last_measures(
        reader, form, length, rows, functions, journal, name=name, tokens=tokens, own=own_tokens
    )


def _last_measures(  # noqa: PLR0917
    reader: Reader,
    form: str,
    length: int,
    rows: int,
    functions: Sequence[Function],
    journal: RunJournal,
    *,
    name: str,
    tokens: int,
    own: int,
) -> dict[str, Any]:
    measures: dict[str, Any] = {"tokens": tokens, "own": own}
    full = held_out(functions, form, length, max(4, rows * 8), seed=11)
    measures["mini"] = wrong_words(reader, full, rows)
    measures["made_up"] = wrong_words(
        reader, held_out_made_up(form, length, max(4, rows * 2)), rows
    )
    journal.say(
        f"{name} end {tokens / 1e6:.2f}M wrong on mini {spelled(measures['mini'])}",
        name=name,
        form=form,
        end=measures,
    )
    journal.say(f"{name} end {tokens / 1e6:.2f}M wrong on made-up {spelled(measures['made_up'])}")
    return measures


def asked(functions: Sequence[Function], length: int) -> list[tuple[Function, int]]:
    """Functions and renamings, the most telling first: a run that is cut short loses the last.

    First the functions of the small dataset and then the others, each once; then those for which
    the teacher finds no register or not enough words; then the small dataset renamed.
    """
    fitting = [f for f in functions if f["whole"] and f["spoken"] <= length]
    small = sorted((f for f in fitting if f["split"] == "mini"), key=lambda f: -int(f["spoken"]))
    others = [f for f in fitting if f["split"] != "mini"]
    rest = [f for f in functions if f not in fitting and f["split"] == "mini"]
    renamed = [(f, seed) for seed in range(1, 4) for f in small]
    return [*((f, 0) for f in (*small, *others, *rest)), *renamed]


def speak_freely(  # noqa: PLR0917
    name: str,
    reader: Reader,
    form: str,
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
    words = refused = 0
    for function, seed in asked(functions, length):
        if time.time() > end:
            break
        # A function of more words than the rows is tried with as much room as it needs.
        room = max(length, function["spoken"] + 64)
        result = converse_freely(reader, form, function, seed, length=room, end=end)
        with gzip.open(settings.out / "generations.jsonl.gz", "at") as stream:
            stream.write(json.dumps({"part": name, "split": function["split"], **result}) + "\n")
        within = function["whole"] and function["spoken"] <= length
        title = f"{function['split']}{'' if within else ' beyond'}{' renamed' if seed else ''}"
        counts = tally.setdefault(title, [0, 0])
        counts[0] += result["fits"]
        counts[1] += 1
        words += result["count"]
        refused += result["refused"]
        if not result["fits"] or function["split"] == "mini":
            text = f"{title} {function['id'][:6]} of {function['spoken']} words:"
            text += f" {result['fits']} {result['why']} after {result['count']}"
            journal.say(f"{text}, {result['refused']} other words")
    took = time.time() - begin
    text = ", ".join(f"{title} {good} of {count}" for title, (good, count) in tally.items())
    journal.say(
        f"{name} freely: {text}; {words} words in {took:.1f} s, {refused} not the teacher's",
        name=name,
        form=form,
        freely=tally,
        words=words,
        refused=refused,
    )


def make(model: str, device: str, compiled: bool, base: float) -> Reader:
    """A reader with the weights that it begins from."""
    torch.manual_seed(0)
    reader = Reader(SHAPES[model], base)
    if model == "smol":
        reader.load_state_dict(pretrained(HERE))
    reader.to(device, torch.bfloat16 if device == "cuda" else torch.float32)
    if compiled:
        reader.run = partial(compiled_block(), SHAPES[model])
    return reader


class Standing:
    """The best weights of each format so far, also of earlier runs in this folder."""

    def __init__(self) -> None:
        self.path = HERE / "best.json"
        self.best: dict[str, tuple[float, str, str]] = {}
        if self.path.exists():
            self.best = {
                form: tuple(value) for form, value in json.loads(self.path.read_text()).items()
            }

    def of(self, form: str) -> str | None:
        """The format itself, or for `any` the one with the fewest wrong words a name."""
        forms = [f for f in self.best if form in ("any", f)]
        return min(forms, key=self.best.__getitem__) if forms else None

    def enter(self, form: str, wrong: float, model: str, state: Path) -> bool:
        """Enters weights; whether they are the best of their format."""
        if form in self.best and self.best[form][0] <= wrong:
            return False
        self.best[form] = (wrong, model, str(state))
        self.path.write_text(json.dumps(self.best))
        return True


def one_part(  # noqa: PLR0917
    index: int,
    part: Sequence[str],
    feeder: Feeder,
    functions: Sequence[Function],
    tests: Sequence[Function],
    settings: Settings,
    standing: Standing,
    journal: RunJournal,
) -> None:
    """One part of the plan: trains, measures, keeps, speaks."""
    model, form, length, (minutes, seconds) = part[0], part[1], int(part[2]), map(float, part[3:])
    begins_from: dict[str, Tensor] | None = None
    chosen = standing.of(form) if model == "best" else None
    if chosen is not None:
        form = chosen
        _, model, path = standing.best[form]
        begins_from = torch.load(path, map_location=settings.device)
    elif model in ("best", "kept"):
        with safe_open(HERE / "kept_0.safetensors", "pt") as file:
            model = file.metadata()["model"]
        begins_from = kept(HERE, pretrained(HERE) if model == "smol" else None)
    compiled = choose_speed(settings, journal, model, length)
    reader = make(model, settings.device, compiled, settings.base)
    if begins_from is not None:
        reader.load_state_dict(begins_from)
    name = f"{index}.{model}.{form}.{length}" + ("" if begins_from is None else "+")
    measures = train(
        name, reader, model, form, length, minutes, feeder, functions, settings, journal,
        1.0 if begins_from is None else settings.rate,
    )  # fmt: skip
    names = measures["mini"]["recall"][1] or 1
    wrong = sum(pair[0] for meaning, pair in measures["mini"].items() if meaning != "shown") / names
    journal.say(
        f"{name}: {1000 * wrong:.2f} wrong words a thousand names", name=name, per_name=wrong
    )
    state = HERE / f"state_{form}_{model}_{int(time.time())}.pt"
    torch.save(reader.state_dict(), state)
    if standing.enter(form, wrong, model, state) or begins_from is not None:
        base = pretrained(HERE) if model == "smol" else None
        keep(model, reader.state_dict(), base, settings.out)
        journal.say(f"{name}: kept", name=name, kept=[model, form, settings.base])
        reader.load_state_dict(kept(settings.out, base))
        rows = held_out(functions, form, length, 8, seed=11)
        counts = wrong_words(reader, rows, max(1, int(settings.rows * 4096 / length)))
        journal.say(f"{name} as kept: wrong {spelled(counts)}", name=name, as_kept=counts)
    speak_freely(name, reader, form, length, seconds, (*functions, *tests), settings, journal)


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
    parser.add_argument("--rate", type=float, default=0.6, help="of learning on, to the first rate")
    parser.add_argument("--log-seconds", type=float, default=5.0)
    parser.add_argument("--measure-seconds", type=float, default=12.0)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    journal = RunJournal(arguments.out)
    functions = load(HERE / "mini.jsonl.gz")
    training = load(HERE / "train.jsonl.gz")
    tests = load(HERE / "test.jsonl.gz")
    parts = [part.split("/") for part in arguments.plan.split(",")]
    feeder = Feeder(training, arguments.workers, 1, seed=int(time.time()))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = Settings(
        arguments.out, device, arguments.rows, arguments.log_seconds, arguments.measure_seconds,
        arguments.compile and device == "cuda", journal.begin + 60 * arguments.minutes,
        arguments.base, arguments.rate,
    )  # fmt: skip
    journal.say(f"{device}, torch {torch.__version__}, {len(WORDS)} words, plan {arguments.plan}")
    journal.say(f"{len(training)} functions to learn from, {len(functions) + len(tests)} held out")
    if device == "cuda":
        journal.say(torch.cuda.get_device_name())
    standing = Standing()
    for index, part in enumerate(parts):
        try:
            if part[0] == "speed":
                choose_speed(settings, journal, part[1], int(part[2]))
                continue
            one_part(index, part, feeder, functions, tests, settings, standing, journal)
        except Exception:  # noqa: BLE001  the next part goes on
            journal.say(f"{index}: failed: {traceback.format_exc()[-1500:]}")
        if device == "cuda":
            torch.cuda.empty_cache()
    feeder.close()
    journal.say("end")


if __name__ == "__main__":
    main()
