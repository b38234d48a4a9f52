"""`verilocc-bench publish`: what arrives on the Hub, in how many commits, and what does not."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from dataset_builders.release.card_examples import usage
from tests.hub.accounts import GUEST_TOKEN
from tests.hub.clients import NAME, command, published, python, refused, write_files
from tests.hub.look import edit, look, merge
from tests.hub.server import COMMIT, UPLOAD, LocalHub
from verilocc_bench.dataset import embedded_path

FILES = {
    "README.md": "---\nlicense: apache-2.0\n---\n# a\n",
    "manifest.json": "{}",
    "rejected.jsonl": "",
    "data/gfx90a/gemm/test-00000-of-00001.parquet": "one",
    "data/gfx90a/mha/test-00000-of-00001.parquet": "two",
    "raw/data/gfx90a/gemm/test-00000-of-00001.parquet": "raw one",
    "plots/sizes.png": "picture",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "dataset", FILES)


def test_everything_arrives_in_one_commit(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    write_files(folder, {"notes.txt": "mine", "data/.hidden": "x", ".journal/a": "x"})
    said = published(hub, tmp_path, folder, "--message", "first", "--tag", "v1")
    found = look(hub, NAME)
    assert found.texts == FILES
    assert found.titles == ["first", "initial commit"]
    assert found.tags == {"v1": found.head}
    assert said.splitlines() == [
        f"published: {hub.address}/datasets/{NAME} "
        "(files: 7 new, 0 changed, 0 deleted, 0 unchanged)",
        f"commit: {found.head}",
        "tag: v1",
    ]


def test_only_what_changed_is_sent(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, folder)
    hub.forget_requests()
    said = published(hub, tmp_path, folder)
    assert said.startswith(f"nothing to publish: {hub.address}/datasets/{NAME} holds these 7 ")
    assert hub.requests("^(PUT|POST|DELETE)") == []
    theirs = dict.fromkeys(("extra.txt", "data.txt", "eval.yaml"), "theirs")
    edit(hub, NAME, {**theirs, "data/old.parquet": "old"})
    (folder / "data/gfx90a/mha/test-00000-of-00001.parquet").write_text("2")
    (folder / "README.md").write_text("# b\n")
    (folder / "plots/sizes.png").unlink()
    hub.forget_requests()
    expected = FILES | theirs
    expected |= {"data/gfx90a/mha/test-00000-of-00001.parquet": "2", "README.md": "# b\n"}
    del expected["plots/sizes.png"]
    dry = published(hub, tmp_path, folder, "--dry-run").splitlines()
    assert hub.requests("^(PUT|POST|DELETE)") == []
    assert dry == [
        "change  README.md  4 bytes",
        "change  data/gfx90a/mha/test-00000-of-00001.parquet  1 bytes",
        "delete  data/old.parquet",
        "delete  plots/sizes.png",
        "files: 0 new, 2 changed, 2 deleted, 4 unchanged; 5 bytes to send; "
        "nothing was sent (--dry-run)",
    ]
    published(hub, tmp_path, folder)
    assert len(hub.requests(UPLOAD)) == len(hub.requests(COMMIT)) == 1
    found = look(hub, NAME)
    assert found.texts == expected
    assert found.titles[:2] == ["Publish the dataset", "edit"]


def test_a_dry_run_of_what_is_not_there(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    for token in (None, GUEST_TOKEN):
        lines = published(hub, tmp_path, folder, "--dry-run", token=token).splitlines()
        assert lines[0] == f"create  {hub.address}/datasets/{NAME}"
        assert lines[1] == "add     README.md  32 bytes"
        assert len(lines) == 9
    assert hub.requests("^(PUT|POST|DELETE)") == []


def test_the_card_names_the_repository(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    name = "verilocc/open"
    counts = {("data", "gfx90a", "gemm", split): 1 for split in ("train", "test")}
    card, expected = (
        f"---\nlicense: apache-2.0\n---\n{usage(counts, 'default', each)}" for each in (NAME, name)
    )
    assert NAME not in expected
    assert expected.count(name) >= 4
    manifest = {"rows": 1, "files": {"README.md": sha256(card.encode()).hexdigest(), "x": "y"}}
    there = {"README.md": card, "manifest.json": json.dumps(manifest)}
    write_files(folder, there)
    published(hub, tmp_path, folder)
    assert look(hub, NAME).texts == FILES | there
    dry = published(hub, tmp_path, folder, "--dry-run", name=name)
    assert f"add     README.md  {len(expected.encode())} bytes\n" in dry
    published(hub, tmp_path, folder, name=name)
    found = look(hub, name).texts
    assert found["README.md"] == expected
    manifest["files"]["README.md"] = sha256(expected.encode()).hexdigest()
    assert json.loads(found["manifest.json"]) == manifest
    assert {**found, **there} == FILES | there
    assert (folder / "README.md").read_text() == card
    assert "nothing to publish" in published(hub, tmp_path, folder, name=name)
    # What was downloaded from there goes to a third place as well.
    write_files(folder, found)
    published(hub, tmp_path, folder)
    assert look(hub, NAME).texts["README.md"] == card


def test_private_and_public(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, folder, "--private")
    published(hub, tmp_path, folder, name="verilocc/open")
    assert look(hub, NAME).private
    (folder / "README.md").write_text("# b\n")
    published(hub, tmp_path, folder)
    assert look(hub, NAME).private
    line = refused(hub, tmp_path, folder, "--private", name="verilocc/open")
    assert line.startswith("verilocc/open: it is public on the Hub, and publishing never changes")
    line = refused(hub, tmp_path, folder, token=GUEST_TOKEN)
    assert "this token may not make datasets of 'verilocc'" in line
    found = look(hub, "verilocc/open")
    assert found.texts["README.md"] == FILES["README.md"]
    assert not found.private


def test_pull_requests(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, folder)
    before = look(hub, NAME)
    (folder / "README.md").write_text("# b\n")
    (folder / "data/gfx90a/gemm/test-00000-of-00001.parquet").write_text("three")
    said = published(hub, tmp_path, folder, "--create-pr", token=GUEST_TOKEN)
    assert f"pull request: {hub.address}/datasets/{NAME}/discussions/1\n" in said
    assert look(hub, NAME) == before
    (folder / "README.md").write_text("# c\n")
    published(hub, tmp_path, folder, "--revision", "refs/pr/1", token=GUEST_TOKEN)
    merge(hub, NAME, 1)
    found = look(hub, NAME)
    assert found.texts["README.md"] == "# c\n"
    assert "nothing to publish" in published(hub, tmp_path, folder, "--create-pr")


def test_branches_and_tags(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, folder, "--tag", "v1")
    assert published(hub, tmp_path, folder, "--tag", "v1").endswith("tag: v1\n")
    (folder / "README.md").write_text("# b\n")
    line = refused(hub, tmp_path, folder, "--tag", "v1")
    assert line.startswith(f"{NAME}: the tag 'v1' names another commit already")
    published(hub, tmp_path, folder, "--revision", "next")
    assert look(hub, NAME).texts == FILES
    assert look(hub, NAME, "next").texts == FILES | {"README.md": "# b\n"}
    assert "'v1' is a tag" in refused(hub, tmp_path, folder, "--revision", "v1")
    assert "is not there" in refused(hub, tmp_path, folder, "--revision", "refs/pr/7")


@pytest.mark.parametrize(
    "name", ["mini-expert", pytest.param("mini", marks=pytest.mark.exhaustive)]
)
def test_the_embedded_dataset_passes_its_check(hub: LocalHub, tmp_path: Path, name: str) -> None:
    folder = embedded_path().with_name(name)
    said = command(hub, tmp_path, "publish", str(folder), "--repo-id", NAME, "--jobs", "1")
    assert said.startswith("published: ")
    assert look(hub, NAME).files == {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_that_does_not_pass(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    arguments = ["-m", "verilocc_bench", "publish", str(folder), "--repo-id", NAME]
    done = python(hub, tmp_path, *arguments)
    assert done.returncode == 2
    assert str(folder) in done.stderr
    assert hub.requests("^(PUT|POST)") == []
