"""The examples of training run as their README shows them."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "training"


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[str], str]]:
    """What a command of the README prints without a network; `trained` is in another folder."""

    def printed(command: str) -> str:
        assert f"\n{command}\n" in (FOLDER / "README.md").read_text()
        program, *arguments = shlex.split(command)
        assert program == "python"
        arguments = [str(tmp_path / a) if a == "trained" else a for a in arguments]
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(str(FOLDER / arguments[0]), run_name="__main__")
        return capsys.readouterr().out

    monkeypatch.setattr("socket.socket.connect", None)
    monkeypatch.setattr("socket.getaddrinfo", None)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield printed
    sys.modules.pop("loading", None)


def losses(printed: str) -> list[float]:
    return [float(text) for text in re.findall(r"^step \d+: loss (\S+)$", printed, re.M)]


def test_a_language_model_is_trained_and_can_be_loaded(
    run: Callable[[str], str], tmp_path: Path
) -> None:
    printed = run("python tokenized.py --dataset mini --split test --steps 4 --output trained")
    found = losses(printed)
    assert len(found) == 4
    assert found[-1] < found[0] - 0.5
    assert re.search(r"^examples made: [\d,]+ whole", printed, re.M)
    from tests.model.tiny_models import load

    assert load(tmp_path / "trained").revision


@pytest.mark.exhaustive
def test_a_graph_network_gives_valid_answers(run: Callable[[str], str]) -> None:
    printed = run("python graph.py --dataset mini --split test")
    assert losses(printed)
    lines = re.findall(r"^[0-9a-f]{16} .*$", printed, re.M)
    assert lines
    assert "wrong" not in printed
    networks = [re.split(r"  +", line)[1] for line in lines]
    assert any(text.isdigit() for text in networks)
    labels = [int(line.split()[-1]) for line in lines]
    assert all(0 < label <= 512 for label in labels)
