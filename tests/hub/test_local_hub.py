"""The local Hub answers the real client as the Hub does, where that matters here."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.hub.accounts import GUEST_TOKEN, READER_TOKEN
from tests.hub.clients import script
from tests.hub.server import LocalHub

PREPARE = """
import sys
from pathlib import Path
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import *
guest_token, reader_token = sys.argv[1:]
owner, guest, reader = HfApi(), HfApi(token=guest_token), HfApi(token=reader_token)
nobody = HfApi(token=False)
NAME, KIND = "verilocc/thing", dict(repo_type="dataset")
def add(path, content):
    return CommitOperationAdd(path, content.encode())
def commit(api, *operations, **more):
    return api.create_commit(NAME, operations, commit_message="change", **KIND, **more)
def status(request, *arguments, **more):
    try:
        request(*arguments, **more)
    except HfHubHTTPError as error:
        return error.response.status_code, type(error).__name__
def read(revision=None, path="a.txt"):
    return Path(owner.hf_hub_download(NAME, path, revision=revision, **KIND)).read_text()
owner.create_repo(NAME, **KIND)
first = commit(owner, add("a.txt", "one"), add("b.parquet", "large"))
"""


def run(hub: LocalHub, home: Path, text: str) -> str:
    return script(hub, home, PREPARE + text, GUEST_TOKEN, READER_TOKEN)


def test_pull_requests(hub: LocalHub, tmp_path: Path) -> None:
    text = """
proposed = commit(guest, add("a.txt", "two"), add("c.parquet", "new"), create_pr=True)
assert proposed.pr_revision == "refs/pr/1" and proposed.pr_url.endswith("/discussions/1")
assert (read(), read("refs/pr/1"), read("refs/pr/1", "c.parquet")) == ("one", "two", "new")
commit(guest, add("d.txt", "more"), revision="refs/pr/1")
guest.comment_discussion(NAME, 1, "please look", **KIND)
details = owner.get_discussion_details(NAME, 1, **KIND)
assert [event.type for event in details.events] == ["comment", "commit", "commit", "comment"]
assert details.author == "guest" and details.is_pull_request and not details.conflicting_files
assert [d.num for d in owner.get_repo_discussions(NAME, **KIND)] == [1]
assert status(guest.merge_pull_request, NAME, 1, **KIND)[0] == 403
commit(owner, add("e.txt", "meanwhile"))
owner.merge_pull_request(NAME, 1, comment="thanks", **KIND)
assert (read(), read(None, "d.txt"), read(None, "e.txt")) == ("two", "more", "meanwhile")
assert owner.get_discussion_details(NAME, 1, **KIND).status == "merged"
commit(guest, add("a.txt", "three"), create_pr=True)
commit(owner, add("a.txt", "four"))
assert owner.get_discussion_details(NAME, 2, **KIND).conflicting_files == ["a.txt"]
assert status(owner.merge_pull_request, NAME, 2, **KIND)[0] == 409
owner.change_discussion_status(NAME, 2, "closed", **KIND)
assert owner.get_discussion_details(NAME, 2, **KIND).status == "closed"
"""
    run(hub, tmp_path, text)


def test_who_may_do_what(hub: LocalHub, tmp_path: Path) -> None:
    text = """
assert owner.whoami()["name"] == "owner" and owner.whoami()["orgs"][0]["name"] == "verilocc"
for api in (guest, reader):
    assert status(commit, api, add("x.txt", "x")) == (403, "HfHubHTTPError")
    assert status(commit, api, add("x.parquet", "x")) == (403, "HfHubHTTPError")
assert status(commit, nobody, add("x.txt", "x"))[0] == 401
assert status(HfApi(token="hf_wrong").dataset_info, NAME)[0] == 401
assert status(guest.create_repo, "verilocc/other", **KIND)[0] == 403
assert status(owner.create_repo, "nowhere/other", **KIND)[0] == 404
assert status(owner.create_repo, NAME, **KIND)[0] == 409
owner.create_repo("verilocc/secret", private=True, **KIND)
for api in (guest, nobody):
    assert status(api.dataset_info, "verilocc/secret")[1] == "RepositoryNotFoundError"
assert reader.dataset_info("verilocc/secret").private
owner.update_repo_settings("verilocc/secret", private=False, **KIND)
assert not guest.dataset_info("verilocc/secret").private
owner.delete_repo("verilocc/secret", **KIND)
assert status(owner.dataset_info, "verilocc/secret")[1] == "RepositoryNotFoundError"
"""
    run(hub, tmp_path, text)


def test_revisions_and_commits(hub: LocalHub, tmp_path: Path) -> None:
    text = """
second = commit(owner, add("a.txt", "two"), CommitOperationDelete("b.parquet"),
                parent_commit=first.oid)
assert status(commit, owner, add("a.txt", "three"), parent_commit=first.oid)[0] == 412
assert status(commit, owner, CommitOperationDelete("zz.txt"))[1] == "RemoteEntryNotFoundError"
owner.create_tag(NAME, tag="v1", revision=first.oid, **KIND)
owner.create_branch(NAME, branch="next/one", **KIND)
commit(owner, add("a.txt", "next"), revision="next/one")
assert [read(at) for at in (None, "v1", "next/one", first.oid)] == ["two", "one", "next", "one"]
assert status(owner.create_tag, NAME, tag="v1", **KIND)[0] == 409
assert status(read, "v2")[1] == "RevisionNotFoundError"
assert status(read, None, "b.parquet")[1] == "RemoteEntryNotFoundError"
refs = owner.list_repo_refs(NAME, **KIND)
assert [b.name for b in refs.branches] == ["main", "next/one"] and refs.tags[0].name == "v1"
titles = [c.commit_id for c in owner.list_repo_commits(NAME, **KIND)]
assert titles[:2] == [second.oid, first.oid] and len(titles) == 3
commit(owner, *(add(f"many/{i % 3}/{i}.txt", str(i)) for i in range(50)))
paths = {entry.path for entry in owner.list_repo_tree(NAME, recursive=True, **KIND)}
folders = ["many/0", "many/1", "many/2"]
assert paths >= {".gitattributes", "a.txt", "many", *folders} and len(paths) == 50 + 6, paths
assert [e.path for e in owner.list_repo_tree(NAME, "many", **KIND)] == folders
assert status(lambda: list(owner.list_repo_tree(NAME, "none", **KIND)))[0] == 404
assert [e.path for e in owner.get_paths_info(NAME, ["a.txt", "many", "none"], **KIND)] == [
    "a.txt", "many"]
owner.delete_tag(NAME, tag="v1", **KIND)
assert status(read, "v1")[1] == "RevisionNotFoundError"
"""
    run(hub, tmp_path, text)


def test_models_and_spaces(hub: LocalHub, tmp_path: Path) -> None:
    text = """
owner.create_repo("verilocc/model")
files = {"model.safetensors": b"weights", "config.json": b"{}"}
for path, content in files.items():
    owner.upload_file(path_or_fileobj=content, path_in_repo=path, repo_id="verilocc/model")
found = Path(owner.snapshot_download("verilocc/model"))
assert (found / "model.safetensors").read_bytes() == b"weights"
assert owner.model_info("verilocc/model").id == "verilocc/model"
owner.create_repo("verilocc/page", repo_type="space", space_sdk="static")
owner.upload_file(path_or_fileobj=b"page", path_in_repo="index.html", repo_id="verilocc/page",
                  repo_type="space")
assert owner.file_exists("verilocc/page", "index.html", repo_type="space")
"""
    run(hub, tmp_path, text)
    batches = hub.requests(r"objects/batch")
    uploads = hub.requests("PUT /_lfs/")
    assert len(batches) == len(uploads) == 2  # b.parquet and model.safetensors


def test_large_files_are_asked_for_once(hub: LocalHub, tmp_path: Path) -> None:
    text = """
assert first.oid
commit(owner, CommitOperationDelete("b.parquet"))
commit(owner, add("again.parquet", "large"))
assert read(None, "again.parquet") == "large"
"""
    run(hub, tmp_path, text)
    assert len(hub.requests("objects/batch")) == 2
    assert len(hub.requests("PUT /_lfs/")) == 1


def _get(address: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def test_ranges(hub: LocalHub, tmp_path: Path) -> None:
    run(hub, tmp_path, "")
    address = f"{hub.address}/datasets/verilocc/thing/resolve/main/b.parquet"
    assert _get(address) == (200, b"large")
    assert _get(address, Range="bytes=1-2") == (206, b"ar")
    assert _get(address, Range="bytes=3-") == (206, b"ge")
    assert _get(address, Range="bytes=-2") == (206, b"ge")
    assert _get(address, Range="bytes=9-") == (416, b"")


def test_faults(hub: LocalHub) -> None:
    hub.fail("GET /api/whoami", status=429, skip=1, times=1, headers={"Retry-After": "0"})
    hub.fail("GET /api/whoami", "drop", skip=1)
    address = f"{hub.address}/api/whoami-v2"
    assert [_get(address)[0], _get(address)[0]] == [401, 429]
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        _get(address)
    assert _get(address)[0] == 401
    assert len(hub.requests("whoami")) == 4
    assert len(hub.requests("whoami", answered=True)) == 2


def test_a_reply_that_breaks_off(hub: LocalHub, tmp_path: Path) -> None:
    run(hub, tmp_path, "")
    hub.fail("GET .*/resolve/", "cut")
    address = f"{hub.address}/datasets/verilocc/thing/resolve/main/b.parquet"
    with pytest.raises(http.client.IncompleteRead, match="2 bytes read"):
        _get(address)
    assert _get(address) == (200, b"large")
