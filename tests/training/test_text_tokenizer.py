"""The tokenizer `text`: nothing that matters is lost, answers are exact, and a model speaks it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from verilocc_bench.allocators import (
    Request,
)
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.ir import FixedUnits, Function, VirtualLanes, parse_function
from verilocc_bench.model.allocator import language_model_allocator
from verilocc_bench.model.language_model import Message
from verilocc_bench.model.prompts.windows import cut_windows
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.targets import TARGETS
from verilocc_bench.training.network import begin, write_model
from verilocc_bench.training.recipe import ModelRecipe
from verilocc_bench.training.text_tokenizer import text_tokenizer
from verilocc_bench.training.tokenizers import TOKENIZERS
from verilocc_bench.verification import FastVerifier
from verilocc_bench.views import get_training_format
from verilocc_bench.views.rows import problem_of

ROWS = load_rows("mini").rows
SAMPLE = sorted(ROWS, key=lambda row: row.n_instructions)[:40:5]
"""Of all targets, and of both families; none of them very long."""

WINDOW = """\
window 2 of 3
registers v:16 a:0 s:102 vcc:2=vcc_lo,vcc_hi
reserved s15 s[100:101]
class V 1 v
class AV2 2 v/2 a/2
class V2.from2.to6 2 v[2-6]/2
place %100:V %101:AV2 %2047:V2.from2.to6
given %5=v4 %37:AV2=a2
beyond %101 %2047
free V v5 v7..v12 vcc_lo
free R R4 R14..R252 UR3..UR9
free AV2 none
%101 also a10..a12 vcc
free V2.from2.to6 v2..v4
bb7(v0,s[2:3])->bb1,bb123
%100=COPY v0
%101:AV2.0!=V_MFMA_F32_4X4X4F16 %5,%37.0-1~0
S_WAITCNT
%2047&=DS_READ_B32 %100!,+vcc_lo
%2047=V_MOV_B32
@!%5 GLOBAL_STORE_DWORD_SADDR %100,%5,%101.1
S_CBRANCH_SCC1
bb8 continued
%2047=HMMA.16816.F32 R4,%5
"""
WINDOW_WORDS = """
place %100 :V %101 :AV2 %20 47 :V2 .from 2 .to 6 given %5 v4 %37 :AV2 a2 beyond %101 %20 47
free :V v5 v7 .. v12 vcc_lo free :R R4 R14 .. R252 UR3 .. UR9
free :AV2 %101 also a10 .. a12 vcc free :V2 .from 2 .to 6 v2 .. v4 |
bb7 v0 s2 :3 -> bb1 bb1 23 |
%100 =copy v0 |
%101 :AV2 .0 ! =matrix %5 %37 .0-1 ~0 |
%20 47 & =load %100 ! vcc_lo |
%20 47 =nothing
@! %5 %100 %5 %101 .1 |
bb8 |
%20 47 =matrix R4 %5 |
"""


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return text_tokenizer()


@pytest.fixture(scope="module")
def codec(tokenizer: Any) -> TokenCodec:
    return TokenCodec(tokenizer, frozenset([tokenizer.eos_token_id]), None, "text")


def words(codec: TokenCodec, text: str) -> list[str]:
    """The words of a prompt with that text."""
    tokens = codec.prompt((Message("system", "You allocate %0."), Message("user", text)))
    found: list[str] = codec.tokenizer.convert_ids_to_tokens(tokens)
    return found


def answer_of(row: Row) -> dict[str, str]:
    assert row.assignment is not None
    answer: dict[str, str] = json.loads(row.assignment)
    return answer


def turns_of(form: str, rows: list[Row]) -> Iterator[Any]:
    for row in rows:
        yield from get_training_format(form).turns(problem_of(row), answer_of(row))


def test_words_of_a_window(codec: TokenCodec) -> None:
    assert [word.replace("\n", "|") for word in words(codec, WINDOW)] == WINDOW_WORDS.split()


def operands_of(function: Function) -> Iterator[str]:
    """What the operands of a function say, by the parser: names, lanes and marks in order."""
    for units in function.live_ins:
        yield from location_of(function, units)
    for _, _, instruction in function.instructions():
        if instruction.guard is not None:
            yield "@!" if instruction.guard.negated else "@"
            yield from location_of(function, instruction.guard.location)
        for operand in instruction.definitions + instruction.uses:
            yield from location_of(function, operand.location)
            yield from ["!"] * operand.undef + ["&"] * operand.early_clobber
            if operand.tied_to is not None:
                yield f"~{operand.tied_to}"


def location_of(function: Function, location: VirtualLanes | FixedUnits) -> Iterator[str]:
    last = location.first + location.count - 1
    if isinstance(location, VirtualLanes):
        yield f"%{location.register}"
        width = function.virtual_registers[location.register].width
        if location.count < width:
            yield f".{location.first}" + (f"-{last}" if location.count > 1 else "")
        return
    file = function.file(location.file)
    if file.unit_names and location.count > 1:
        yield file.name
        return
    yield file.unit_name(location.first)
    if location.count > 1:
        yield f":{last}"


def test_whole_prompts_lose_no_operand(codec: TokenCodec) -> None:
    atom = re.compile(r"@!?|[!&]|%\d+|~\d+|:\d+|\.\d+(?:-\d+)?|(?:v|a|s|R|UR|P|UP)\d+|vcc\w*")
    for row in SAMPLE:
        (turn,) = turns_of("whole", [row])
        found = words(codec, turn.messages[-1].content)
        assert "<unknown>" not in found
        text = " ".join(found[found.index("bb0") :])
        text = re.sub(r"(%\d{2,}) (?=\d\d )", r"\1", text)
        expected = list(operands_of(parse_function(row.normalized)))
        assert [word for word in text.split() if atom.fullmatch(word)] == expected


def test_window_prompts_say_what_to_place(codec: TokenCodec) -> None:
    for turn in turns_of("window", SAMPLE):
        found = words(codec, turn.messages[-1].content)
        assert "<unknown>" not in found
        ends = min(found.index(word) for word in ("given", "beyond", "free") if word in found)
        text = " ".join(found[found.index("place") : ends])
        text = re.sub(r"(%\d{2,}) (?=\d\d\b)", r"\1", text)
        assert re.findall(r"%\d+", text) == list(json.loads(turn.completion))


@pytest.mark.parametrize("form", ["whole", "window"])
def test_answers_are_exact(codec: TokenCodec, form: str) -> None:
    archs = set()
    for row in SAMPLE:
        archs.add(row.arch)
        for turn in turns_of(form, [row]):
            tokens = [token for piece in turn.pieces for token in codec.piece(piece)]
            assert codec.decode(tokens) == turn.completion
            # Text that is encoded as a whole is cut in the same way.
            assert list(codec.tokenizer(turn.completion)["input_ids"]) == tokens
            # `{"`, `%0`, `": "`, `v4`, `"`; `, "` from the second on; `}`.
            assert len(tokens) <= 6 * turn.completion.count(": ") + 1
    assert archs == set(TARGETS)


def test_every_name_can_be_said(codec: TokenCodec) -> None:
    names = [
        name
        for target in TARGETS.values()
        for file in target.files
        for name in (
            [file.name, *file.unit_names]
            if file.unit_names
            else [f"{file.name}{number}" for number in range(file.count)]
        )
    ]
    assert all(len(codec.piece(name)) == 1 for name in names)
    for number in (0, 99, 100, 999, 1999):
        assert len(codec.piece(f"%{number}")) == 1
    for number in (2000, 2007, 9999, 12005):
        piece = f', "%{number}": "'
        assert codec.decode(codec.piece(piece)) == piece


def test_the_vocabulary_is_closed(tokenizer: Any) -> None:
    assert TOKENIZERS["text"]().backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert len(tokenizer) < 5_000


def test_a_model_speaks_it(tmp_path: Path) -> None:
    """A random model, constrained, through the harness: prompts, cuts and answers fit together."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    configuration = {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 2048,
        "initializer_range": 0.3,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_model(*begin(ModelRecipe(configuration, tokenizer="text")), tmp_path, "window", 4)
    options = LocalModelSettings(dtype="float32", device="cpu", decoding=Decoding.CONSTRAINED)
    allocator = language_model_allocator(str(tmp_path), options)
    row = min(ROWS, key=lambda row: row.n_virtual_registers)
    problem = problem_of(row)
    ((_, response),) = allocator.respond([Request(problem, sample=0, seed=0)])
    assert response.failure is None, response
    assert FastVerifier(problem).verify(response.answer).valid
    asks = sum(1 for window in cut_windows(problem, 4) if window.new)
    assert response.details["asks"] == asks
    assert response.details["prompt_tokens"] < 1_000 * asks
