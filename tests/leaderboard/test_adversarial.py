"""Submissions that cheat or attack: each refused with its message, or made harmless."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from leaderboard.answer_lines import byte_limits
from leaderboard.comment import plain
from leaderboard.judging import judge_function
from leaderboard.revalidate import COMMENT, REVALIDATION
from tests.leaderboard.submissions import Arena, check, kinds, messages, submitted
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation import parse_prediction
from verilocc_bench.verification import Verifier

Spoil = Callable[[Path, Arena], None]
GIB = 1 << 30


def fields(**changes: Any) -> Spoil:
    """Other fields in submission.yaml; None leaves one out."""

    def spoil(folder: Path, _: Arena) -> None:
        path = folder / "submission.yaml"
        document = {**yaml.safe_load(path.read_text()), **changes}
        kept = {key: value for key, value in document.items() if value is not None}
        path.write_text(yaml.safe_dump(kept, allow_unicode=True, sort_keys=False))

    return spoil


def appended(text: str) -> Spoil:
    """More text in submission.yaml."""

    def spoil(folder: Path, _: Arena) -> None:
        with (folder / "submission.yaml").open("a", encoding="utf-8") as file:
            file.write(text)

    return spoil


def lines(change: Callable[[list[dict[str, Any]], Arena], list[dict[str, Any]]]) -> Spoil:
    """Other lines of answers."""

    def spoil(folder: Path, arena: Arena) -> None:
        path = folder / "answers.jsonl"
        found = change([json.loads(line) for line in path.read_text().splitlines()], arena)
        path.write_text("".join(json.dumps(line) + "\n" for line in found))

    return spoil


def first_line(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Spoil:
    """Another first line of answers."""
    return lines(lambda found, _: [change(found[0]), *found[1:]])


def raw(change: Callable[[str], str | bytes]) -> Spoil:
    """Another text of answers."""

    def spoil(folder: Path, _: Arena) -> None:
        path = folder / "answers.jsonl"
        text = change(path.read_text())
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    return spoil


def beside(name: str, data: bytes = b"x") -> Spoil:
    def spoil(folder: Path, _: Arena) -> None:
        (folder / name).write_bytes(data)

    return spoil


def packed(pack: Callable[[bytes], bytes]) -> Spoil:
    """The answers compressed, after a fashion."""

    def spoil(folder: Path, _: Arena) -> None:
        path = folder / "answers.jsonl"
        (folder / "answers.jsonl.gz").write_bytes(pack(path.read_bytes()))
        path.unlink()

    return spoil


def linked(name: str, target: str) -> Spoil:
    def spoil(folder: Path, _: Arena) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return spoil


def described(data: bytes) -> Spoil:
    """Another submission.yaml."""

    def spoil(folder: Path, _: Arena) -> None:
        (folder / "submission.yaml").write_bytes(data)

    return spoil


def fifo(folder: Path, _: Arena) -> None:
    (folder / "answers.jsonl").unlink()
    os.mkfifo(folder / "answers.jsonl")


def sub_folder(folder: Path, _: Arena) -> None:
    (folder / "answers.jsonl").unlink()
    (folder / "answers.jsonl").mkdir()


def of_training(found: list[dict[str, Any]], arena: Arena) -> list[dict[str, Any]]:
    return [*found, {"id": arena.trained.id, "assignment": arena.trained.label}]


BOMB = "\n".join(
    [
        "claims:",
        "  a: &a {x: 1}",
        *(
            f"  {b}: &{b} [{', '.join(['*' + a] * 9)}]"
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        ),
    ]
)

REFUSED: dict[str, tuple[Spoil, str, str]] = {
    # What the answers are to
    "another revision": (
        fields(dataset_hash="0" * 64),
        "format",
        "which no board has; boards: small",
    ),
    "another track": (fields(track="split"), "format", "answers of the split track"),
    "a training function": (lines(of_training), "unknown-function", "in the split 'train'"),
    "an unknown function": (
        lines(lambda found, _: [*found, {"id": "0" * 16, "assignment": {}}]),
        "unknown-function",
        "1 lines answer .* 0000000000000000, is no function of the dataset",
    ),
    "an architecture that is not named": (
        fields(architectures=["sm_80"]),
        "unknown-function",
        "which `architectures` does not name",
    ),
    "an architecture of other boards": (
        fields(architectures=["gfx90a", "sm_90"]),
        "submission",
        "architectures: the board small has no kernel for sm_90",
    ),
    "a function left out": (
        lines(lambda found, _: found[1:]),
        "missing-function",
        "1 of 6 kernels",
    ),
    # How many
    "more samples than are said": (lines(lambda found, _: found * 2), "sample-count", "has 2"),
    "more samples for what fails": (
        lines(lambda found, _: [*found, found[0]]),
        "sample-count",
        "the first, .* has 2",
    ),
    "more samples than are allowed": (fields(samples=101), "submission", "from 1 to 100"),
    "no number of tokens": (fields(prompt_tokens="9"), "submission", "prompt_tokens"),
    "a cost without end": (fields(cost=float("inf")), "submission", "cost"),
    "no verifier calls": (fields(verifier_calls=0), "submission", "from 1 to 100"),
    "calls without guidance": (fields(verifier_calls=9), "submission", "only guided decoding"),
    # The folder
    "a link for the answers": (linked("answers.jsonl", "/etc/passwd"), "format", "is a link"),
    "a link for the description": (
        linked("submission.yaml", "/etc/hostname"),
        "format",
        "is a link",
    ),
    "a link besides": (linked("README.md", "../../secret"), "format", "'README.md' is a link"),
    "a pipe": (fifo, "format", "is not a plain file"),
    "a folder for a file": (sub_folder, "format", "is not a plain file"),
    "code": (beside("allocator.py", b"import os"), "format", "'allocator.py' does not belong"),
    "a name that turns": (beside("answers\u202elnosj.py"), "format", "does not belong"),
    "two files of answers": (beside("answers.jsonl.gz"), "format", "expected one of answers.jsonl"),
    # Sizes
    "a long line": (
        raw(lambda text: text.replace("{", "{" + " " * 9_000_000, 1)),
        "answers",
        "bytes that answers",
    ),
    "a line longer than its function": (
        raw(lambda text: text.replace('"assignment": {', '"assignment": {' + " " * 40_000, 1)),
        "answers",
        "longer than the|more than the",
    ),
    "many lines": (raw(lambda text: text * 2_000), "answers", "more than the [0-9,]* bytes"),
    "a gzip bomb": (
        packed(lambda _: gzip.compress(bytes(20_000_000), 9)),
        "answers",
        "more than the [0-9,]* bytes",
    ),
    "a bomb of many members": (
        packed(lambda data: gzip.compress(data) + gzip.compress(b"\n" * 50_000) * 4),
        "answers",
        "expected nothing behind the compressed answers",
    ),
    "members without anything in them": (
        packed(lambda data: gzip.compress(data) + gzip.compress(b"") * 1_000_000),
        "answers",
        "more than the [0-9,]* bytes",
    ),
    "empty lines": (raw(lambda text: text + "\n" * 1_000), "answers", "expected a line that"),
    "half a file": (packed(lambda data: gzip.compress(data)[:-9]), "answers", "cannot be unpacked"),
    "no gzip at all": (packed(lambda data: data), "answers", "cannot be unpacked"),
    "rubbish behind it": (
        packed(lambda data: gzip.compress(data) + b"rubbish"),
        "answers",
        "expected nothing behind the compressed answers",
    ),
    "a description of megabytes": (
        appended("# " + "x" * 2_000_000),
        "format",
        "more than the 65,536",
    ),
    # YAML
    "anchors that explode": (appended(BOMB), "format", "anchors and aliases are not taken"),
    "a tag that runs code": (
        appended("base: !!python/object/apply:os.system ['touch /tmp/owned']"),
        "format",
        "tags are not taken",
    ),
    "a key twice": (appended("name: Another\n"), "format", "the key 'name' stands twice"),
    "nested without end": (
        appended("claims: " + "[" * 20_000),
        "format",
        "nested more than 8 deep",
    ),
    "a number without end": (
        appended("parameters: 0x" + "f" * 50_000),
        "format",
        "a number of 50,002 characters",
    ),
    "authors nobody sees": (fields(authors=["\ufe0f"]), "submission", "authors, 1: "),
    "authors of signs alone": (fields(authors=["--- !"]), "submission", "expected a letter"),
    "two documents": (appended("---\nname: x\n"), "format", "expected YAML"),
    "no mapping": (described(b"[1]"), "submission", "expected a mapping"),
    "no text": (described(b"\xff\xfe\x00"), "format", "expected UTF-8"),
    "keys that are no names": (appended('"\\ud800": 1\n'), "format", "expected a plain name"),
    "keys that are no texts": (appended("1: 2\n"), "format", "expected a plain name as a key"),
    "a contact that turns": (
        fields(contact="\u202eabc@example.org"),
        "submission",
        "contact: expected an e-mail",
    ),
    "lists in lists": (fields(architectures=[["gfx90a"]]), "submission", "architectures: exp"),
    "a version that is true": (fields(format=True), "submission", "format: expected 1"),
    "an author who is not there": (fields(authors=["\u3164"]), "submission", r"U\+3164"),
    "claims without end": (
        fields(claims={f"a/{number}": {} for number in range(200)}),
        "submission",
        "at most 50 tasks",
    ),
    "nothing at all": (described(b"{}"), "submission", "name: this field is missing"),
    "a field of its own": (fields(score=100), "submission", "score: there is no such field"),
    "no contact": (fields(contact=None), "submission", "contact: this field is missing"),
    "a licence of its own": (
        fields(licence="all rights reserved"),
        "submission",
        "expected one of",
    ),
    # Text that is not what it looks like
    "an id in other digits": (
        raw(lambda text: text.replace('"id": "', '"id": "\uff10', 1)),
        "answers",
        "begins with",
    ),
    "an id that does not come first": (
        lines(
            lambda found, _: [
                {"assignment": each["assignment"], "id": each["id"]} for each in found
            ]
        ),
        "answers",
        "line that begins with",
    ),
    "a name of look-alikes": (fields(name="Тhe compiler"), "submission", "name: expected up to 60"),
    "a name of the house's": (fields(name="B.est"), "submission", "name: B.est is an entry of"),
    "a letter for another": (fields(name="graph-coIoring"), "submission", "is an entry of the l"),
    "authors one by one": (fields(authors=["The verilocc-bench", "authors"]), "submission", "are"),
    "a day of old": (fields(date="0001-01-01"), "submission", "a day from 2020 on"),
    "its authors": (fields(authors=["The verilocc-bench аuthors"]), "submission", "authors: 'The"),
    "a day to come": (fields(date="2999-01-01"), "submission", "a day that has come"),
    "a name of markup": (fields(name="<b>best</b>"), "submission", "name: expected up to 60"),
    "a text that turns": (fields(hardware="H200\u202e002H"), "submission", r"U\+202E is not taken"),
    "a text without width": (fields(authors=["A\u200bda"]), "submission", r"U\+200B is not taken"),
    "marks on marks": (fields(authors=["A" + "\u0301" * 9]), "submission", "more than two marks"),
    "a break in a line": (
        fields(command="a\n\n## Accepted"),
        "submission",
        r"U\+000A is not taken",
    ),
    "a link that runs": (
        fields(links={"code": "javascript:alert(1)"}),
        "submission",
        "such as https",
    ),
    "a link with a user": (
        fields(links={"code": "https://huggingface.co@evil.example"}),
        "submission",
        "without a user",
    ),
    "a link that ends a quote": (
        fields(links={"code": 'https://example.org/"onload="x'}),
        "submission",
        "such as https",
    ),
    "a number for a text": (fields(hardware=7), "submission", "expected text, not a number"),
    "claims of infinities": (
        fields(claims={"overall": {"pass@1": float("inf")}}),
        "submission",
        "from 0",
    ),
    "a claim of a huge number": (
        fields(claims={"overall": {"pass@1": 10**30}}),
        "submission",
        "from 0",
    ),
}


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_told_why(name: str, arena: Arena, tmp_path: Path) -> None:
    spoil, kind, expected = REFUSED[name]
    (tmp_path / "secret").write_text("nobody's business")
    folder = submitted(arena).write(tmp_path / "deep" / "submission")
    spoil(folder, arena)
    output = tmp_path / "out"
    before = snapshot(tmp_path)
    document = check(folder, output)
    assert not document["accepted"]
    assert set(kinds(document)) == {kind}, messages(document)
    assert re.search(expected, messages(document)), messages(document)
    assert str(tmp_path) not in messages(document)
    assert document["results"] == {}
    # Nothing is touched but the folder of results, where nothing else is left.
    assert {path.name for path in output.iterdir()} == {REVALIDATION, COMMENT}
    after = snapshot(tmp_path)
    assert {key: after[key] for key in before} == before
    assert all(key.startswith("out") for key in after.keys() - before.keys())
    assert json.loads((output / REVALIDATION).read_text()) == document
    assert "nobody's business" not in (output / COMMENT).read_text()
    assert not Path("/tmp/owned").exists()


NEUTRALIZED: dict[str, Spoil] = {
    "an id in capitals": raw(lambda text: text.replace('{"id"', '{"id" ', 1)),
    "a second id": raw(
        lambda text: text.replace('"assignment"', '"id": "0000000000000000", "assignment"', 1)
    ),
    "an answer that is no mapping": first_line(lambda line: {**line, "assignment": []}),
    "numbers for names": first_line(lambda line: {**line, "assignment": {"%0": 1}}),
    "more keys": first_line(lambda line: {**line, "valid": True}),
    "no JSON": raw(lambda text: text.replace("}}\n", "}\n", 1)),
    "no UTF-8": raw(lambda text: text.encode().replace(b'"%0"', b'"%\xff0"', 1)),
    "an infrastructure failure": first_line(
        lambda line: {"id": line["id"], "failure": "infrastructure", "message": "no"}
    ),
    "JSON nested without end": raw(
        lambda text: text.replace('"assignment": {', '"assignment": ' + "[" * 3_000 + "{", 1)
    ),
    "registers of other digits": first_line(
        lambda line: {
            **line,
            "assignment": {k: v.replace("1", "\u0661") for k, v in line["assignment"].items()},
        }
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NEUTRALIZED)
def test_it_counts_as_a_wrong_answer(name: str, arena: Arena, tmp_path: Path) -> None:
    folder = submitted(arena).write(tmp_path / "submission")
    NEUTRALIZED[name](folder, arena)
    document = check(folder, tmp_path / "out")
    assert document["accepted"], messages(document)
    count = len(arena.rows)
    right = count if name == "an id in capitals" else count - 1
    assert [kernel["valid"] for kernel in document["kernels"]].count(1) == right
    assert document["results"]["overall"]["infrastructure_failures"] == 0
    assert document["results"]["overall"]["samples"] == count


def test_more_edits_than_an_answer_needs_are_not_judged(tmp_path: Path) -> None:
    """Nobody spends half a minute on each of a thousand answers that move one thing around."""
    row = min(load_rows("mini", track="split").rows, key=lambda row: row.n_instructions)
    edits = {"insert": [{"at": [0, 0], "move": [["%0", "%0"]]}] * (4 * row.n_instructions + 1)}
    path = tmp_path / "answers.jsonl"
    line = json.dumps({"id": row.id, "assignment": {}, "edits": edits})
    path.write_text(line + "\n")
    assert len(line) < byte_limits({row.id: row})[row.id]
    (sample,) = judge_function(row, path, [(0, len(line))]).samples
    assert sample.failure == "unparsable"
    assert sample.message is not None
    assert "edits, more than the" in sample.message


def test_edits_are_no_answer_where_every_register_is_to_keep_its_place(
    arena: Arena, tmp_path: Path
) -> None:
    """With spill code a function needs fewer registers than are live at once: below every bound."""
    found = submitted(arena)
    row, line = arena.rows[0], dict(found.lines[0])
    problem = AllocationProblem.from_text(row.normalized)
    new = f"%{row.n_virtual_registers}"
    line["assignment"] = {**line["assignment"], new: line["assignment"]["%0"]}
    line["edits"] = {"new": {new: problem.function.virtual_registers[0].name}}
    _, answer = parse_prediction(json.dumps(line), tmp_path)
    assert answer.has_edits
    assert Verifier(problem).verify(answer).valid
    empty = {**found.lines[1], "edits": {"new": {}, "insert": []}}
    found.lines = [line, empty, *found.lines[2:]]
    document = check(found.write(tmp_path / "submission"), tmp_path / "out")
    assert document["accepted"], messages(document)
    valid = {kernel["id"]: kernel["valid"] for kernel in document["kernels"]}
    assert valid == {each.id: int(each.id != row.id) for each in arena.rows}
    assert document["results"]["overall"]["findings"] == {"invalid_edit": 1}
    # Edits that are none hide no copy of the label.
    assert document["answers"]["compiler"] == len(arena.rows) - 1


def test_markup_in_texts_does_nothing(arena: Arena, tmp_path: Path) -> None:
    nasty = (
        "<script>a()</script> [x](javascript:1) @all #1 `code` **b** | ![](http://x) "
        "www.evil.example ada@evil.example https://evil.example ``x`"
    )
    name = "www.evil.example"
    claims = {"overall": {"pass@1": 0}}
    found = submitted(arena, name=name, hardware=nasty, claims=claims)
    document = check(found.write(tmp_path / "s"), tmp_path / "out")
    assert document["accepted"]
    from markdown_it import MarkdownIt

    # As the Hub and GitHub do it: addresses in plain text become links.
    render = MarkdownIt("gfm-like", {"html": False}).render
    assert "<a " in render(nasty)
    for text in (nasty, "`", "", " ` "):
        rendered = render(plain(text))
        assert rendered.startswith("<p><code>")
        assert rendered.endswith("</code></p>\n")
        assert rendered.count("<") == 4
    rendered = render((tmp_path / "out" / COMMENT).read_text())
    assert name in rendered
    assert "<a " not in rendered
    assert "<script" not in rendered


def test_a_comment_has_an_end(arena: Arena, tmp_path: Path) -> None:
    more = {f"www.evil.example/{number}": "x" * 100 for number in range(3_000)}
    found = submitted(arena, authors=["\u200b"] * 50, **more)
    document = check(found.write(tmp_path / "s"), tmp_path / "out")
    assert not document["accepted"]
    text = (tmp_path / "out" / COMMENT).read_text()
    assert len(text) < 10_000
    assert "- and 4" in text or "more" in text


@pytest.mark.slow
def test_memory_stays_small(arena: Arena, tmp_path: Path) -> None:
    """A bomb of 4 GiB, and a file of 2 GiB without a line break, in a process that has 1 GiB."""
    bomb = submitted(arena).write(tmp_path / "bomb")
    (bomb / "answers.jsonl").unlink()
    member = gzip.compress(bytes(64 << 20), 9)
    (bomb / "answers.jsonl.gz").write_bytes(member * 64)
    huge = submitted(arena).write(tmp_path / "huge")
    with (huge / "answers.jsonl").open("wb") as file:
        file.truncate(2 * GIB)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "out"), arena.board.hash]
    command += [str(arena.folder), str(bomb), str(huge)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    *found, peak = done.stdout.split()
    assert found == ["answers", "answers"]
    assert int(peak) < GIB // 1024


def test_a_file_that_is_too_large_is_not_read(arena: Arena, tmp_path: Path) -> None:
    folder = submitted(arena).write(tmp_path / "submission")
    with (folder / "answers.jsonl").open("wb") as file:
        file.truncate(10 * GIB)
    document = check(folder, tmp_path / "out")
    assert "bytes that answers to these functions can have" in messages(document)
    assert document["files"].keys() == {"submission.yaml"}


SCRIPT = """
import sys
from pathlib import Path
from leaderboard import examining, revalidate
from leaderboard.boards import Board
output, digest, copy, *folders = sys.argv[1:]
board = Board("small", copy, "assign", "test", 6, digest)
examining.boards = lambda: (board,)
for folder in folders:
    document = revalidate.revalidate(Path(folder), Path(output), dataset=copy)
    print(document["refusals"][0]["kind"])
# Not ru_maxrss: Linux carries that over from the process that started this one.
status = Path("/proc/self/status").read_text()
print(status.split("VmHWM:")[1].split()[0])
"""
