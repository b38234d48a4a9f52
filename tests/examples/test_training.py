"""The examples of training run as their README shows them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "training"


def run(command: str, outputs: Path) -> str:
    """What a command of the README prints, run offline; `trained` is in another folder."""
    assert f"\n{command}\n" in (FOLDER / "README.md").read_text()
    program, *arguments = shlex.split(command)
    assert program == "python"
    arguments = [str(outputs / "trained") if a == "trained" else a for a in arguments]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(outputs / "cache"),
            "OMP_NUM_THREADS": "1",
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def losses(printed: str) -> list[float]:
    return [float(text) for text in re.findall(r"^step \d+: loss (\S+)$", printed, re.M)]


def test_a_language_model_is_trained_and_can_be_loaded(tmp_path: Path) -> None:
    printed = run(
        "python tokenized.py --dataset mini --split test --steps 8 --output trained",
        tmp_path,
    )
    found = losses(printed)
    assert len(found) == 8
    assert found[-1] < found[0] - 0.5
    assert re.search(r"^examples made: [\d,]+ whole", printed, re.M)
    from tests.model.tiny_models import load

    assert load(tmp_path / "trained").revision


@pytest.mark.exhaustive
def test_a_graph_network_gives_valid_answers(tmp_path: Path) -> None:
    printed = run("python graph.py --dataset mini --split test", tmp_path)
    assert losses(printed)
    lines = re.findall(r"^[0-9a-f]{16} .*$", printed, re.M)
    assert lines
    assert "wrong" not in printed
    networks = [re.split(r"  +", line)[1] for line in lines]
    assert any(text.isdigit() for text in networks)
    labels = [int(line.split()[-1]) for line in lines]
    assert all(0 < label <= 512 for label in labels)
