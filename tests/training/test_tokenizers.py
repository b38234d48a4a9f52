"""The tokenizer `decisions` says all that the prompts of decisions say, in few tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests.training.small import generated
from verilocc_bench.dataset import load_rows
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.targets import TARGETS
from verilocc_bench.training.teacher import Policy, demonstrate
from verilocc_bench.training.tokenizers import decisions_tokenizer
from verilocc_bench.views import get_training_format, problem_of
from verilocc_bench.views.training_turns import TrainingTurn

LONGEST = 256
FORMATS = ("state", "candidates")


@cache
def tokenizer() -> Any:
    return decisions_tokenizer()


@cache
def codec() -> TokenCodec:
    return TokenCodec(tokenizer(), frozenset({tokenizer().eos_token_id}), None, "here")


@cache
def turns(arch: str) -> list[TrainingTurn]:
    """Some decisions of a small kernel of each family in both formats, and of a middling one."""
    found = []
    for family in ("gemm", "mha"):
        rows = [r for r in load_rows("mini").rows if (r.arch, r.family) == (arch, family)]
        rows.sort(key=lambda row: row.n_virtual_registers)
        for name, row in (
            *zip(FORMATS, rows[:1] * 2, strict=True),
            ("state", rows[len(rows) // 2]),
        ):
            style = get_training_format(name)
            policy = Policy(conflicts=1.0, detours=0.2)
            run = demonstrate(problem_of(row), style.style, policy, 1, every=8)
            found += [style.turn(turn) for turn in run.turns]
    return found


def words(text: str) -> str:
    """What must not get lost: all but spaces, colons, dots, and the register's name and class."""
    head, *lines = text.split("\n")
    kept = "\n".join([" ".join(head.split()[2:]), *lines])
    return kept.replace(" ", "").replace(":", "").replace("..", "")


@pytest.mark.parametrize("arch", TARGETS)
def test_no_word_is_unknown_or_lost(arch: str) -> None:
    for turn in turns(arch):
        prompt = codec().prompt(turn.messages)
        assert tokenizer().unk_token_id not in prompt, turn.messages[-1].content
        said = tokenizer().decode(prompt)
        assert said.replace(" ", "") == words(turn.messages[-1].content)
        assert len(prompt) + len(turn.pieces) < LONGEST
    assert len(turns(arch)) > 60


@pytest.mark.parametrize("arch", TARGETS)
def test_answers_are_two_tokens(arch: str) -> None:
    for turn in turns(arch):
        name, end = turn.pieces
        assert end == "\n"
        assert len(codec().piece(name)) == len(codec().piece(end)) == 1


@pytest.mark.parametrize("arch", TARGETS)
def test_every_register_is_one_token_of_its_own(arch: str) -> None:
    seen: dict[tuple[int, ...], str] = {}
    for file in TARGETS[arch].files:
        names = file.unit_names or [f"{file.name}{n}" for n in range(file.count)]
        for name in names:
            tokens = codec().piece(name)
            assert len(tokens) == 1
            assert tokenizer().decode(list(tokens)) == name
            assert seen.setdefault(tokens, name) == name


def test_other_prompts_lose_no_more_than_they_must() -> None:
    # Generated functions have files and widths that no kernel has.
    style = get_training_format("candidates")
    for row in generated(6):
        for turn in demonstrate(problem_of(row), style.style, Policy(), 0).turns:
            prompt = codec().prompt(style.turn(turn).messages)
            assert tokenizer().unk_token_id not in prompt


def test_the_system_message_is_left_out() -> None:
    (turn, *_) = turns("gfx90a")
    assert codec().prompt(turn.messages) == codec().prompt(turn.messages[1:])


def test_saved_and_loaded_it_gives_the_same(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer().save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    other = TokenCodec(again, frozenset({again.eos_token_id}), None, "there")
    assert again.pad_token_id == tokenizer().pad_token_id
    for turn in turns("sm_80")[:40]:
        assert other.prompt(turn.messages) == codec().prompt(turn.messages)
        for piece in turn.pieces:
            assert other.piece(piece) == codec().piece(piece)


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    code = (
        "import sys; from verilocc_bench.training.tokenizers import decisions_tokenizer;"
        "decisions_tokenizer().save_pretrained(sys.argv[1])"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")],
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
    )
    decisions_tokenizer().save_pretrained(tmp_path / "here")
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / place).iterdir()}
        for place in ("here", "there")
    )
    assert first == second
    assert "tokenizer.json" in first
