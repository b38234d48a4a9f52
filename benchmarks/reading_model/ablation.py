"""What each choice is worth, in small: four networks hear the same conversations on a CPU.

They have the shape of SmolLM2-135M, and all weights learn:

- `chosen`: begins from SmolLM2's weights, with words of its own, and says its lists aloud;
- `from scratch`: begins from weights drawn by chance;
- `plain words`: spells the same words in SmolLM2's own vocabulary;
- `silent`: says registers alone, and no lists.

    python -m benchmarks.reading_model.ablation WORK OUT.jsonl ARM [--words N]

WORK has the functions that `extract` writes. Measured is the share of wrong answers, the right
words before; an answer is wrong if any of its words is.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from torch import Tensor, nn

from benchmarks.reading_model.data import load, made_up, one_conversation, until
from verilocc_bench.model.reading.conversation import NAME_COUNT, WORDS, FreshNames, register_of
from verilocc_bench.model.reading.teaching import taught
from verilocc_bench.model.transformers_model.loading import load_parts

ARMS = ("chosen", "from scratch", "plain words", "silent")
HELD_OUT, LONGEST, LINES = 8_000, 4096, 60
SHARES = {"forward": 0.3, "loop": 0.17, "backward": 0.47, "opening": 0.06}
RATE, WARM, BATCH = 4e-4, 10, 2


class SpokenTurn(NamedTuple):
    """What is said in one turn, and what the answer is."""

    kind: str
    shown: list[str]
    answer: list[str]


def conversations(functions: Sequence[Any], count: int, seed: int) -> Iterator[list[SpokenTurn]]:
    """Conversations about the first lines of functions, with `count` words in all."""
    rng = random.Random(seed)
    while count > 0:
        text = rng.choice(functions) if rng.random() < 0.6 or seed else made_up(rng, LINES)
        text = until(text, rng.randrange(10, LINES))
        kind = rng.choices(list(SHARES), list(SHARES.values()))[0]
        spoken = one_conversation(text, kind, rng, FreshNames(rng))
        parts = [SpokenTurn("shown", list(spoken.opening), [])]
        for turn, words in zip(spoken.turns, taught(spoken)[1], strict=False):
            answer = [WORDS[word] for word in words]
            name = {"place": "known" if len(answer) == 1 else "new"}.get(turn.ask, turn.ask)
            parts.append(SpokenTurn(name, list(turn.shown), answer))
        count -= sum(len(part.shown) + len(part.answer) for part in parts)
        yield parts


def silenced(part: SpokenTurn) -> SpokenTurn:
    """The turn without lists: a register in answer to a name, and else nothing."""
    if part.kind == "new":
        return part._replace(answer=[register_of(part.answer)])
    return part._replace(answer=[]) if part.kind in {"free", "opening"} else part


class Arm:
    """A network, and how it spells words."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.module, tokens = load_parts("smollm2")
        self.module.float()
        self.spelling = [
            tokens(" " + word, add_special_tokens=False)["input_ids"] for word in WORDS
        ]
        self.silent = name == "silent"
        if name != "plain words":
            table = self.module.get_input_embeddings().weight
            made = torch.stack([table[ids].mean(0) for ids in self.spelling]).detach()
            self.module.resize_token_embeddings(len(WORDS))
            self.module.get_input_embeddings().weight.data.copy_(made)
            self.module.tie_weights()
            self.spelling = [[index] for index in range(len(WORDS))]
        if name == "from scratch":
            self.module.apply(self.module._init_weights)
        self.index = {word: number for number, word in enumerate(WORDS)}

    def spelled(self, parts: Sequence[SpokenTurn]) -> tuple[Tensor, Tensor, list[str]]:
        """Tokens; for each the number of its answer, or -1; the kinds of the answers."""
        tokens: list[int] = []
        owners: list[int] = []
        kinds: list[str] = []
        for part in map(silenced, parts) if self.silent else parts:
            for words, owner in ((part.shown, -1), (part.answer, len(kinds))):
                for word in words:
                    tokens += self.spelling[self.index[word]]
                    owners += [owner] * (len(tokens) - len(owners))
            kinds += [part.kind] * bool(part.answer)
        return torch.tensor(tokens[:LONGEST]), torch.tensor(owners[:LONGEST]), kinds

    def scores(self, tokens: Tensor) -> Tensor:
        """The scores of the next token at each position but the last."""
        with torch.autocast("cpu", torch.bfloat16):
            scores: Tensor = self.module(tokens[None, :-1]).logits[0]
        return scores.float()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def wrong(self, held_out: Sequence[Sequence[SpokenTurn]]) -> dict[str, list[int]]:
        """By kind: wrong answers and all."""
        wrong, all_of = Counter[str](), Counter[str]()
        for parts in held_out:
            tokens, owners, kinds = self.spelled(parts)
            missed = (self.scores(tokens).argmax(-1) != tokens[1:]) & (owners[1:] >= 0)
            bad = set(owners[1:][missed].tolist())
            heard = set(owners.tolist()) - {-1}
            wrong.update(kinds[owner] for owner in bad)
            all_of.update(kinds[owner] for owner in heard)
        return {kind: [wrong[kind], count] for kind, count in sorted(all_of.items())}


def learn(arm: Arm, heard: Sequence[Sequence[SpokenTurn]]) -> Iterator[tuple[int, int]]:
    """Learns; says how many words it has heard, and tokens, after each step."""
    optimizer = torch.optim.AdamW(arm.module.parameters(), lr=RATE, betas=(0.9, 0.95))
    steps = -(-len(heard) // BATCH)
    words = tokens_read = 0
    for step in range(steps):
        share = min(1.0, (step + 1) / WARM) * min(1.0, 2 * (1 - step / steps))
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        batch = heard[step * BATCH : (step + 1) * BATCH]
        rows = [arm.spelled(parts) for parts in batch]
        own = max(1, sum(int((owners >= 0).sum()) for _, owners, _ in rows))
        for tokens, owners, _ in rows:
            targets = torch.where(owners[1:] >= 0, tokens[1:], -100)
            (F.cross_entropy(arm.scores(tokens), targets, reduction="sum") / own).backward()
            tokens_read += len(tokens)
        nn.utils.clip_grad_norm_(arm.module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        words += sum(len(part.shown) + len(part.answer) for parts in batch for part in parts)
        yield words, tokens_read


def main() -> None:
    """Learns one arm, and measures it as it goes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("arm", choices=ARMS)
    parser.add_argument("--words", type=int, default=200_000)
    arguments = parser.parse_args()
    functions = [f for f in load(arguments.work / "train.jsonl.gz") if f["names"] <= NAME_COUNT]
    heard = list(conversations(functions, arguments.words, 0))
    held_out = list(conversations(load(arguments.work / "mini.jsonl.gz"), HELD_OUT, 1))
    arm = Arm(arguments.arm)
    begin, due = time.time(), 0.0
    for words, tokens in learn(arm, heard):
        if words >= due or words >= arguments.words:
            due = words + arguments.words / 4
            said = {"arm": arguments.arm, "words": words, "tokens": tokens}
            said |= {"seconds": round(time.time() - begin), "wrong": arm.wrong(held_out)}
            with arguments.out.open("a") as stream:
                stream.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
