"""A publication that fails leaves the dataset as it was, says why in a line, and goes on later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.accounts import GUEST_TOKEN, OWNER_TOKEN
from tests.hub.clients import (
    NAME,
    publish,
    published,
    python,
    refused,
    start_publishing,
    write_files,
)
from tests.hub.look import edit, look
from tests.hub.server import COMMIT, UPLOAD, LocalHub

FILES = {
    "README.md": "---\nlicense: apache-2.0\n---\n# a\n",
    "manifest.json": "{}",
    **{f"data/gfx90a/gemm/test-0000{i}-of-00004.parquet": f"part {i}" for i in range(4)},
}
NOW = {"Retry-After": "0"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "dataset", FILES)


@pytest.fixture
def changed(hub: LocalHub, folder: Path, tmp_path: Path) -> Path:
    """A folder in which two files are other than on the Hub."""
    published(hub, tmp_path, folder)
    write_files(folder, dict.fromkeys(list(FILES)[2:4], "new"))
    hub.forget_requests()
    return folder


def test_killed_between_contents_and_commit(hub: LocalHub, changed: Path, tmp_path: Path) -> None:
    hub.fail(COMMIT, "hold")
    before = look(hub, NAME)
    client = start_publishing(hub, tmp_path, changed)
    hub.wait_for(COMMIT)
    client.kill()
    assert look(hub, NAME) == before
    assert len(hub.requests(UPLOAD)) == 2
    hub.forget_requests()
    published(hub, tmp_path, changed)
    assert (len(hub.requests(UPLOAD)), len(hub.requests(COMMIT))) == (0, 1)
    assert look(hub, NAME).texts == FILES | dict.fromkeys(list(FILES)[2:4], "new")


def test_interrupted_while_sending(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    hub.fail(UPLOAD, "hold", skip=2, times=9)
    client = start_publishing(hub, tmp_path, folder)
    hub.wait_for(f"{UPLOAD}.*", count=4)
    client.kill()
    assert look(hub, NAME).files == {}
    arrived = len(hub.requests(UPLOAD, answered=True))
    hub.calm()
    hub.forget_requests()
    published(hub, tmp_path, folder)
    assert (arrived, len(hub.requests(UPLOAD))) == (2, 2)
    assert look(hub, NAME).texts == FILES


def test_the_hub_is_busy_once(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    for kind in ("POST /api/repos/create", "GET /api/datasets/.*/refs", COMMIT, UPLOAD):
        hub.fail(kind, status=429, headers=NOW)
        hub.fail(kind, status=503, headers=NOW)
    published(hub, tmp_path, folder)
    found = look(hub, NAME)
    assert found.texts == FILES
    assert len(found.titles) == 2
    assert len(hub.requests(COMMIT)) == 3


@pytest.mark.parametrize(("how", "applied"), [("drop", True), ("cut", False), ("drop", False)])
def test_the_reply_to_the_commit_is_lost(
    hub: LocalHub, changed: Path, tmp_path: Path, how: str, applied: bool
) -> None:
    hub.fail(COMMIT, how, applied=applied)
    said = published(hub, tmp_path, changed)
    found = look(hub, NAME)
    assert f"commit: {found.head}\n" in said
    assert len(found.titles) == 3
    assert len(hub.requests(COMMIT)) == (1 if applied or how == "cut" else 2)


def test_somebody_else_commits_meanwhile(hub: LocalHub, changed: Path, tmp_path: Path) -> None:
    hub.fail(COMMIT, "hold")
    client = start_publishing(hub, tmp_path, changed)
    hub.wait_for(COMMIT)
    edit(hub, NAME, {"extra.txt": "theirs"})
    before = look(hub, NAME)
    hub.release()
    assert client.wait().returncode == 2
    assert look(hub, NAME) == before
    published(hub, tmp_path, changed)
    assert look(hub, NAME).texts["extra.txt"] == "theirs"


def test_one_line_says_why(hub: LocalHub, changed: Path, tmp_path: Path) -> None:
    before = look(hub, NAME)

    def line(*options: str, token: str | None = OWNER_TOKEN, name: str = NAME) -> str:
        return refused(hub, tmp_path, changed, *options, token=token, name=name)

    logged_out = f"{NAME}: no token: log in with `hf auth login`, or set HF_TOKEN"
    assert line(token=None) == logged_out
    assert line(token="hf_NobodyKnowsThisToken").startswith(
        f"{NAME}: the Hub does not accept the token: log in"
    )
    assert "it needs write access to 'verilocc' on the Hub" in line(token=GUEST_TOKEN)
    assert line(name="nowhere/it") == "nowhere/it: there is no owner 'nowhere' on the Hub"
    assert line(name="regalloc").startswith("expected an id as in owner/name, not 'regalloc'")
    hub.fail(COMMIT, status=500, times=9, headers=NOW)
    failed = line()
    assert failed.startswith(f"{NAME}: the Hub has an error of its own (500)")
    assert failed.endswith("nothing was published")
    assert look(hub, NAME) == before


def test_no_network(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    line = refused(hub, tmp_path, folder, HF_ENDPOINT=nowhere)
    assert line.startswith(f"{NAME}: the Hub cannot be reached at {nowhere}: ")
    line = refused(hub, tmp_path, folder, HF_HUB_OFFLINE="1")
    assert line.startswith(f"{NAME}: HF_HUB_OFFLINE is set")
    assert hub.requests() == []


@pytest.mark.parametrize("kind", ["GET /api/datasets/", "POST .*/preupload/", UPLOAD, COMMIT])
def test_a_token_is_never_printed(hub: LocalHub, changed: Path, tmp_path: Path, kind: str) -> None:
    echo = "you sent {authorization}"
    headers = {"X-Error-Message": echo, "X-HF-Warning": f"x; {echo}"}
    hub.fail(kind, status=418, body=echo, headers=headers, times=9)
    done = publish(hub, tmp_path, changed, "--create-pr")
    assert done.returncode == 2
    assert "the Hub answered 418" in done.stderr
    assert OWNER_TOKEN not in done.stdout + done.stderr
    assert kind == UPLOAD or "you sent Bearer …" in done.stderr


SHOW_ERROR = """
import pathlib, pickle, sys, traceback
from verilocc_bench.dataset.hub_requests import HubError
from dataset_builders.publishing.hub_dataset import HubDataset
try:
    HubDataset(sys.argv[1]).state("main")
except HubError as error:
    traceback.print_exc()
    while error is not None:
        print(error, vars(error))
        error = error.__cause__ or error.__context__
"""


def test_a_token_is_in_no_exception(hub: LocalHub, tmp_path: Path) -> None:
    hub.fail("GET", status=418, body="you sent {authorization}")
    done = python(hub, tmp_path, "-c", SHOW_ERROR, NAME)
    assert "the Hub answered 418: you sent Bearer …" in done.stdout
    assert done.stdout.count("\n") == 1
    assert OWNER_TOKEN not in done.stdout + done.stderr
