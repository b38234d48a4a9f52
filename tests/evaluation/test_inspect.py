"""The Inspect task gives the numbers that the harness gives for the same words."""

from __future__ import annotations

import gc
import importlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.model.http_server import Asked, FakeServer, Say, chat_reply
from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.metrics import pass_at_k
from verilocc_bench.model.language_model import Completion, Finish
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.verification import Verifier

needs_inspect = pytest.mark.skipif(
    find_spec("inspect_ai") is None,
    reason="needs the package inspect-ai (extra: inspect)",
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # of the packages that it stands on
]

SAMPLES = 3


@pytest.fixture(autouse=True)
def streams_closed() -> Iterator[None]:
    """What Inspect leaves open goes here, not in the middle of another test."""
    yield
    gc.collect()


def words_of(row: Row, sample: int) -> str:
    """What the model says: the label, a wrong answer, or no answer, by row and sample."""
    assert row.label is not None
    match (int(row.id, 16) + sample) % 4:
        case 0 | 1:
            return f"```json\n{json.dumps(dict(row.label))}\n```"
        case 2:
            return json.dumps(dict(list(row.label.items())[1:]))
        case _:
            return "I cannot do that."


def evaluate_with_inspect(rows: list[Row], tmp_path: Path) -> Any:
    """By an endpoint, as Inspect reaches any server."""
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from verilocc_bench.cli.inspect_task import register_allocation

    samples: dict[str, int] = {}

    def answer(asked: Asked) -> Say:
        prompt = asked.body["messages"][-1]["content"]
        row = next(row for row in rows if prompt.startswith(row.normalized))
        # Inspect asks in an order of its own; what counts is how often a row was asked.
        sample = samples[row.id] = samples.get(row.id, -1) + 1
        return chat_reply(words_of(row, sample), created=0, model="m")

    with FakeServer(answer).running() as server:
        (log,) = inspect_eval(
            register_allocation(arch="gfx942", samples=SAMPLES, k=[1, 2]),
            model=get_model("openai-api/test/m", base_url=server.address, api_key="none"),
            sample_id=[row.id for row in rows],
            log_dir=str(tmp_path),
            display="none",
            max_connections=1,
        )
    assert log.status == "success", log.error
    assert {each.path for each in server.asked} == {"/v1/chat/completions"}
    assert len({each.body["seed"] for each in server.asked}) == len(server.asked)
    return log


def our_judgement(row: Row, sample: int) -> bool:
    """The same words through the prompt format and the verifier, without Inspect."""
    problem = AllocationProblem.from_text(row.normalized)
    episode = get_prompt_format("whole").episode(Request(problem, sample), LanguageModelSettings())
    next(episode)
    with pytest.raises(StopIteration) as end:
        episode.send(Completion(words_of(row, sample), Finish.STOP, 0, 0))
    return judge(Verifier(problem), end.value.value, sample).valid


@needs_inspect
def test_same_numbers_as_the_harness(tmp_path: Path) -> None:
    of_arch = [row for row in load_rows("mini").rows if row.arch == "gfx942"]
    rows = sorted(of_arch, key=lambda row: row.n_instructions)[:5]
    ours = {row.id: sum(our_judgement(row, s) for s in range(SAMPLES)) for row in rows}
    assert ours == {
        row.id: sum((int(row.id, 16) + s) % 4 < 2 for s in range(SAMPLES)) for row in rows
    }
    log = evaluate_with_inspect(rows, tmp_path)
    found: dict[str, int] = dict.fromkeys(ours, 0)
    for sample in log.samples:
        found[sample.id] += sample.scores["verdict"].value == "C"
    assert found == ours
    metrics = {
        score.reducer: score.metrics for score in log.results.scores if "accuracy" in score.metrics
    }
    for reducer, k in (("mean", 1), ("pass_at_2", 2)):
        chances = [pass_at_k(SAMPLES, valid, k) or 0.0 for valid in ours.values()]
        assert metrics[reducer]["accuracy"].value == pytest.approx(sum(chances) / len(chances))
    tasks = {row.id: f"{row.arch}/{row.family}" for row in rows}
    for task in sorted(set(tasks.values())):
        valid = [ours[row_id] for row_id, name in tasks.items() if name == task]
        expected = sum(valid) / SAMPLES / len(valid)
        assert metrics["mean"][task].value == pytest.approx(expected)
    kinds = {sample.scores["verdict"].metadata["failure"] for sample in log.samples}
    assert kinds == {None, "invalid", "unparsable"}


@needs_inspect
def test_bad_parameters_are_refused() -> None:
    from verilocc_bench.cli.inspect_task import register_allocation

    for parameters, expected in (
        ({"samples": 1, "k": 2}, "no k above samples"),
        ({"arch": "gfx1"}, "architectures"),
        ({"prompt_format": "none"}, "unknown prompt format"),
    ):
        with pytest.raises(InputError, match=re.escape(expected)):
            register_allocation(**parameters)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "verilocc_bench.cli.inspect_task", raising=False)
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[inspect\]"):
        importlib.import_module("verilocc_bench.cli.inspect_task")
