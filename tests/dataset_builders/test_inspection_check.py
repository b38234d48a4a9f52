"""The check of a dataset folder finds every fault that is planted, where it was planted."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from dataset_builders.inspection import check, lists_check
from dataset_builders.inspection.check import check_dataset
from dataset_builders.inspection.findings import CheckFinding
from dataset_builders.inspection.row_check import RowProblem
from tests.dataset_builders.inspection_folders import (
    SPLITS,
    Draft,
    card_configs,
    draft,
    kinds,
    read_lines,
    rehash,
    write_lines,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, read_parquet
from verilocc_bench.dataset.rows import BEST_COLUMNS
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.verification import FastVerifier, FindingKind
from verilocc_bench.views.chat import write_chat, wrong_conversation

pytestmark = pytest.mark.slow

REDUCE = "ff6a8c95c1702273"
"""Of gfx90a, in train and in a cluster with that of gfx942; it has an alternative,
and a better label of as many registers."""
REDUCE_942 = "283d953e61cef95c"
REDUCE_SM = "52dedc6393ee792f"
"""In train, alone in its cluster, with a better label, of fewer registers."""
BETTER = ("best_assignment", "best_source")
DECODE = "8a0c1350f3e3e019"
SPLIT_TRACK = "56e8316546c07a57"
TRAIN = "data/gfx90a/gemm/train-00000-of-00001.parquet"
TRAIN_SM = "data/sm_80/gemm/train-00000-of-00001.parquet"
TEST_SM = "data/sm_80/mha/test-00000-of-00001.parquet"
FIRST_SHARD = "data/sm_80/gemm/validation-00000-of-00002.parquet"


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    """The folder has splits of its own, where mini is all one.

    What is wrong with a row but its labels is kept: most tests ask about the same rows.
    """
    plain, known = check.row_problems, dict[Any, list[RowProblem]]()

    def row_problems(row: Row, *rest: Any, labels: bool) -> Iterable[RowProblem]:
        if labels:
            return plain(row, *rest, labels=True)
        asked = row, repr(rest)
        if asked not in known:
            known[asked] = [*plain(row, *rest, labels=False)]
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists_check, "split_of", lambda _, point: SPLITS[point.group])
        patch.setattr(check, "row_problems", row_problems)
        yield


@pytest.fixture(scope="module", name="good")
def _good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draft().write(tmp_path_factory.mktemp("good"))


@pytest.fixture(name="folder")
def _folder(good: Path, tmp_path: Path) -> Path:
    """A good folder of one's own."""
    return Path(shutil.copytree(good, tmp_path / "folder"))


def findings_of(folder: Path, *, labels: bool = False) -> tuple[CheckFinding, ...]:
    return check_dataset(folder, labels=labels, progress=False).findings


def only(
    folder: Path, kind: str, file: str, row: str = "", count: int = 1, *, labels: bool = False
) -> str:
    """The message of the one finding (or of the first of several) that there must be."""
    findings = findings_of(folder, labels=labels)
    assert [(f.kind.value, f.file, f.row) for f in findings] == [(kind, file, row)] * count
    return findings[0].message


def among(folder: Path, kind: str, file: str, row: str = "") -> str:
    """The messages of findings that must be there, as one fault shows in several ways."""
    findings = findings_of(folder)
    messages = [f.message for f in findings if (f.kind.value, f.file, f.row) == (kind, file, row)]
    assert messages, "\n".join(map(str, findings))
    return "\n".join(messages)


def row_of(found: Draft, identifier: str) -> Row:
    return next(row for row in found.rows if row.id == identifier)


def written(tmp_path: Path, identifier: str, *, alone: bool = False, **columns: Any) -> Path:
    """A folder that is right but for some columns of a row; it may be the only one."""
    found = draft(alone=identifier if alone else None)
    found.change(identifier, **columns)
    return found.write(tmp_path)


def edited_json(folder: Path, name: str, edit: Callable[[Any], None]) -> Path:
    document = json.loads((folder / name).read_text())
    edit(document)
    (folder / name).write_text(json.dumps(document))
    if name != "manifest.json":
        rehash(folder)
    return folder


def wrong_answer(row: Row) -> dict[str, str]:
    """The label with one register more in a place where another value lives."""
    assert row.label is not None
    verifier = FastVerifier(AllocationProblem.from_text(row.normalized))
    for name in row.label:
        for register in dict.fromkeys(row.label.values()):
            answer = {**row.label, name: register}
            found = {finding.kind for finding in verifier.verify(answer).findings}
            if found == {FindingKind.OVERLAP}:
                return answer
    raise AssertionError("no such answer")


def as_json(label: dict[str, Any]) -> str:
    return json.dumps(label, separators=(",", ":"))


def test_a_good_folder_has_no_findings(good: Path) -> None:
    report = check_dataset(good, progress=False)
    assert (report.findings, report.passed, report.rows) == ((), True, 7)
    assert report.files == sum(path.is_file() for path in good.rglob("*"))


# Files


def flip_a_byte(path: Path) -> None:
    """Flips one bit of a Parquet file, a bit that matters to its rows (some do not)."""
    data, rows = path.read_bytes(), read_parquet(path, Row)
    for place in range(len(data) // 5, len(data), 997):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        try:
            found = read_parquet(path, Row)
        except InputError:
            return
        if [row.normalized for row in found] != [row.normalized for row in rows]:
            return
    raise AssertionError("no byte matters")


@pytest.mark.parametrize("hashed", [False, True])
def test_a_flipped_byte(folder: Path, hashed: bool) -> None:
    flip_a_byte(folder / TRAIN)
    if hashed:
        rehash(folder)
    found = [finding for finding in findings_of(folder) if finding.file == TRAIN]
    assert found
    assert ("hash" in kinds(found)) == (not hashed)


def test_a_file_that_is_no_parquet(folder: Path) -> None:
    (folder / TRAIN).write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    rehash(folder)
    assert "expected a Parquet file" in among(folder, "parquet", TRAIN)


def test_a_stale_hash(folder: Path) -> None:
    edited_json(folder, "manifest.json", lambda m: m["files"].update({TRAIN: "0" * 64}))
    assert "0" * 64 in only(folder, "hash", TRAIN)


def test_an_extra_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / ".gitattributes").write_text("what the Hub adds")
    only(folder, "unlisted_file", "notes.txt")


def test_a_missing_file(folder: Path) -> None:
    (folder / "README.md").unlink()
    only(folder, "missing_file", "README.md")
    rehash(folder)
    only(folder, "missing_file", "README.md")


def test_a_missing_shard(folder: Path) -> None:
    (folder / FIRST_SHARD).unlink()
    rehash(folder)
    second = FIRST_SHARD.replace("-00000-", "-00001-")
    assert "there is no 0" in among(folder, "shards", second)


def test_conversations_of_all_rows_or_of_none(folder: Path) -> None:
    of_rows = [p for p in sorted(folder.glob("data/*/*/*")) if p.name.startswith(("train", "val"))]
    chats = [folder / "chat" / path.relative_to(folder / "data") for path in of_rows]
    for path, chat in zip(of_rows, chats, strict=True):
        chat.parent.mkdir(parents=True, exist_ok=True)
        write_chat(read_parquet(path, Row), chat)
    rehash(folder)
    assert "there is no config 'chat'" in only(folder, "card", "README.md")
    head, text = (folder / "README.md").read_text().removeprefix("---\n").split("---\n", 1)
    files = [{"split": s, "path": f"chat/*/*/{s}-*"} for s in ("train", "validation")]
    configs = [*yaml.safe_load(head)["configs"], {"config_name": "chat", "data_files": files}]
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n{text}")
    rehash(folder)
    assert findings_of(folder, labels=True) == ()

    def flip_an_answer(table: pa.Table) -> pa.Table:
        found = table.to_pylist()
        found[1]["messages"][-1]["content"] = found[0]["messages"][-1]["content"]
        return pa.Table.from_pylist(found, schema=table.schema)

    rewrite(chats[0], flip_an_answer, use_dictionary=False)
    rehash(folder)
    (found,) = findings_of(folder, labels=True)
    place = chats[0].relative_to(folder).as_posix()
    assert (found.kind, found.file, found.row) == ("conversation", place, REDUCE)
    assert found.message == "conversation 1 of the file is not what its row gives"
    rewrite(chats[0], lambda table: table.slice(0, 1), use_dictionary=False)
    assert wrong_conversation(folder, TRAIN) == (REDUCE, found.message)
    rewrite(chats[0], lambda table: table)
    assert wrong_conversation(folder, TRAIN) == ("", "the lists 'messages' have a dictionary")
    stray = chats[0].with_name("test-00000-of-00001.parquet")
    chats[0].rename(stray)
    rehash(folder)
    among(folder, "missing_file", place)
    among(folder, "layout", stray.relative_to(folder).as_posix())


def test_shards_of_two_totals(folder: Path) -> None:
    (folder / FIRST_SHARD).rename(folder / FIRST_SHARD.replace("-00002", "-00003"))
    rehash(folder)
    among(folder, "shards", FIRST_SHARD.replace("-00000-of-00002", "-00000-of-00003"))


def test_an_unknown_split(tmp_path: Path) -> None:
    found = draft()
    found.splits[DECODE] = "testing"
    file = TEST_SM.replace("test-", "testing-")
    assert "unknown split 'testing'" in among(found.write(tmp_path), "layout", file)


def test_a_manifest_of_another_form(folder: Path) -> None:
    edited_json(folder, "manifest.json", lambda m: m.pop("versions"))
    assert "'versions' is a required property" in only(folder, "manifest", "manifest.json")
    (folder / "manifest.json").write_text("{")
    among(folder, "manifest", "manifest.json")


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset"):
        check_dataset(tmp_path)


# Columns


def rewrite(path: Path, edit: Callable[[pa.Table], pa.Table], **options: bool) -> None:
    parquet.write_table(edit(parquet.ParquetFile(path).read()), path, **options)


def test_nulls_where_none_may_be(folder: Path) -> None:
    def without_group(table: pa.Table) -> pa.Table:
        place = table.column_names.index("group")
        nulls = pa.array([None] * len(table), pa.string())
        return table.set_column(place, pa.field("group", pa.string()), nulls)

    rewrite(folder / TRAIN, without_group)
    rehash(folder)
    assert "'group' is null" in among(folder, "nulls", TRAIN, REDUCE)
    assert "'group' is string, expected string not null" in among(folder, "schema", TRAIN)


def as_type(table: pa.Table, column: str, kind: pa.DataType) -> pa.Table:
    field = pa.field(column, kind, nullable=False)
    return table.set_column(table.column_names.index(column), field, table[column].cast(kind))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda table: table.drop_columns(["cluster"]), "'cluster' is missing"),
        (lambda table: table.append_column("more", table["id"]), "'more' does not belong to Row"),
        (
            lambda table: as_type(table, "n_blocks", pa.int32()),
            "'n_blocks' is int32 not null, expected int64 not null",
        ),
        (
            lambda table: as_type(table, "group", pa.json_()),
            "'group' is extension<arrow.json> not null, expected string not null",
        ),
        (lambda table: table.select(table.column_names[::-1]), "not in the order"),
    ],
)
def test_another_schema(folder: Path, edit: Callable[[pa.Table], pa.Table], message: str) -> None:
    rewrite(folder / TRAIN, edit)
    rehash(folder)
    assert message in among(folder, "schema", TRAIN)


def test_rows_of_an_earlier_version_are_read(folder: Path) -> None:
    later = {"best_certificate", "best_bank_conflicts", "bank_conflicts"}
    rows = read_parquet(folder / TRAIN_SM, Row)
    assert all(getattr(row, name) is not None for row in rows for name in later)
    rewrite(folder / TRAIN_SM, lambda table: table.drop_columns(sorted(later)))
    rehash(folder)
    nulls: dict[str, Any] = dict.fromkeys(later)
    assert read_parquet(folder / TRAIN_SM, Row) == [replace(row, **nulls) for row in rows]
    messages = among(folder, "schema", TRAIN_SM)
    assert all(f"'{name}' is missing" in messages for name in later)


def test_a_wrong_id(tmp_path: Path) -> None:
    found = draft()
    found.change(DECODE, id="0" * 16, cluster="0" * 16)
    found.raws = [replace(raw, id=raw.id.replace(DECODE, "0" * 16)) for raw in found.raws]
    found.splits["0" * 16] = "test"
    assert DECODE in only(found.write(tmp_path), "id", TEST_SM, "0" * 16)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("n_instructions", "size"),
        ("n_blocks", "size"),
        ("n_virtual_registers", "size"),
        ("occupancy", "registers"),
        ("pressure", "pressure"),
        ("registers_used", "registers"),
    ],
)
def test_a_wrong_number(tmp_path: Path, column: str, kind: str) -> None:
    value: Any = getattr(row_of(draft(), REDUCE), column)
    if isinstance(value, str):
        counts = json.loads(value)
        value = as_json({**counts, "vector": counts["vector"] + 1})
    else:
        value += 1
    folder = written(tmp_path, REDUCE, alone=True, **{column: value})
    assert repr(column) in only(folder, kind, TRAIN, REDUCE, labels=True)


def test_json_that_is_not_canonical(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE)
    only(written(tmp_path / "a", REDUCE, pressure=row.pressure + " "), "json", TRAIN, REDUCE)
    turned = as_json(dict(reversed((row.label or {}).items())))
    assert "order" in only(
        written(tmp_path / "b", REDUCE, assignment=turned), "json", TRAIN, REDUCE
    )
    broken = written(tmp_path / "c", REDUCE, alternatives='{"a":{},"a":{}}')
    assert "twice" in only(broken, "json", TRAIN, REDUCE)


def test_a_row_under_another_path(folder: Path) -> None:
    name = "data/gfx90a/mha/train-00000-of-00001.parquet"
    for base in ("", "raw/"):
        (folder / base / name).parent.mkdir()
        (folder / base / TRAIN).rename(folder / base / name)
    rehash(folder)
    assert "'family' is 'gemm'" in among(folder, "column", name, REDUCE)


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("kernel", "no_kernel", "point"),
        ("group", "gemm/plain/f16/16x16x64", "point"),
        ("license", "mine", "column"),
        ("label_source", "llvm-greedy 1.0", "column"),
    ],
)
def test_a_column_of_another_row(tmp_path: Path, column: str, value: str, kind: str) -> None:
    among(written(tmp_path, REDUCE, **{column: value}), kind, TRAIN, REDUCE)


def test_a_provenance_of_another_point(tmp_path: Path) -> None:
    found = draft()
    provenance = json.loads(row_of(found, REDUCE).provenance)
    other = json.loads(row_of(found, REDUCE_942).provenance)["point"]
    found.change(REDUCE, provenance=json.dumps({**provenance, "point": other}, sort_keys=True))
    assert other in among(found.write(tmp_path), "provenance", TRAIN, REDUCE)


def test_a_provenance_of_another_compiler(tmp_path: Path) -> None:
    provenance = json.loads(row_of(draft(), REDUCE).provenance)
    provenance["versions"]["triton"] = "1.0"
    provenance["source_sha256"] = "0" * 64
    text = json.dumps(provenance, sort_keys=True, separators=(",", ":"))
    message = only(written(tmp_path, REDUCE, provenance=text), "provenance", TRAIN, REDUCE, 2)
    assert "gemm" in message


# Labels


def test_a_wrong_label(tmp_path: Path) -> None:
    label = as_json(wrong_answer(row_of(draft(), REDUCE)))
    folder = written(tmp_path, REDUCE, alone=True, assignment=label)
    both = findings_of(folder, labels=True)
    assert [(f.kind.value, f.file, f.row) for f in both] == [("label", TRAIN, REDUCE)] * 2
    assert {"fast", "independent"} == {f.message.split(" to the ")[1].split()[0] for f in both}
    assert not findings_of(folder)


def test_a_wrong_alternative(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE)
    (source,) = row.other_labels
    text = as_json({source: wrong_answer(row)})
    folder = written(tmp_path, REDUCE, alone=True, alternatives=text)
    assert source in only(folder, "alternative", TRAIN, REDUCE, 2, labels=True)


def test_a_label_that_is_no_answer(tmp_path: Path) -> None:
    folder = written(tmp_path, REDUCE, alone=True, assignment='{"%0":1}')
    only(folder, "json", TRAIN, REDUCE, labels=True)


def best_findings(tmp_path: Path, row: Row, change: dict[str, Any]) -> list[str]:
    """The kinds and messages that a folder of one row has where only some columns are changed."""
    place = f"data/{row.arch}/{row.family}/train-00000-of-00001.parquet"
    found = draft(alone=row.id)
    found.change(row.id, **change)
    findings = findings_of(found.write(tmp_path), labels=True)
    assert {(f.file, f.row) for f in findings} == {(place, row.id)}
    return [f"{finding.kind.value}: {finding.message}" for finding in findings]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: {"best_assignment": as_json(wrong_answer(row))}, "best: .* is wrong to"),
        (lambda row: {"best_assignment": row.assignment}, "best: .*the assignment uses"),
        (lambda row: {"best_registers_used": 31}, "best: .* is 31, the assignment uses 30"),
        (lambda row: {"best_registers_used": 31}, "best: .* said to be optimal"),
        (lambda row: {"best_registers_used": 29}, "best: .* is above"),
        (lambda row: {"best_is_optimal": False}, "best: .*said to be not optimal"),
        (lambda row: {"best_lower_bound": 31}, "best: .*yet the column 'best_assignment' uses 30"),
        (lambda row: {"best_lower_bound": 29}, "certificate: .* is about 30 registers"),
        (lambda row: {"best_bank_conflicts": 7}, "bank_conflicts: .*'best_bank_.* is 7, .* has 0"),
        (lambda row: {"bank_conflicts": 7}, "bank_conflicts: .*'bank_conflicts' is 7, .* has 0"),
        (lambda row: {"best_source": None}, "nulls: .*'best_source' is null, the other"),
        (lambda row: {"best_assignment": None}, "nulls: .*'best_assignment' is null, the other"),
        (lambda row: dict.fromkeys(BETTER), "best: .* is 30, the assignment uses 34"),
        *(
            (lambda row, name=name: {name: None}, f"nulls: .*'{name}' is null")
            for name in (*sorted({*BEST_COLUMNS} - {*BETTER}), "bank_conflicts")
        ),
    ],
)
def test_a_wrong_best_label(
    tmp_path: Path, change: Callable[[Row], dict[str, Any]], message: str
) -> None:
    row = row_of(draft(), REDUCE_SM)
    assert (row.best_registers_used, row.best_lower_bound) == (30, 30)
    findings = best_findings(tmp_path, row, change(row))
    assert any(re.match(message, finding) for finding in findings), findings


def test_a_best_label_that_is_not_better(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE)
    assert row.best_registers_used == json.loads(row.registers_used or "")["vector"]
    same = {"best_assignment": row.assignment, "best_bank_conflicts": row.bank_conflicts}
    (finding,) = best_findings(tmp_path / "same", row, same)
    assert "combined cost" in finding
    swapped = {
        "assignment": row.best_assignment,
        "bank_conflicts": row.best_bank_conflicts,
        "best_assignment": row.assignment,
        "best_bank_conflicts": row.bank_conflicts,
    }
    findings = best_findings(tmp_path / "swapped", row, swapped)
    assert any("combined cost" in finding for finding in findings)


def test_a_best_label_of_more_registers(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE_SM)
    swapped = {"assignment": row.best_assignment, "best_assignment": row.assignment}
    findings = best_findings(tmp_path, row, swapped)
    assert "best: the best assignment uses 34 registers, the label 30" in findings


def test_a_best_label_of_lower_occupancy(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE_942)
    verifier = FastVerifier(AllocationProblem.from_text(row.normalized))
    for name, register in (row.best_label or {}).items():
        answer = {**(row.best_label or {}), name: "s99"}
        if register.startswith("s") and verifier.verify(answer).valid:
            break
    else:
        raise AssertionError("no scalar register can be s99")
    findings = best_findings(tmp_path, row, {"best_assignment": as_json(answer)})
    assert any("occupancy is 7, the label's 8" in finding for finding in findings), findings


def _claimed(row: Row, edit: Callable[[Any], object]) -> dict[str, Any]:
    """The columns of a row with an edited certificate, and a bound that agrees with it."""
    document = json.loads(row.best_certificate or "")
    edit(document)
    return {"best_certificate": as_json(document), "best_lower_bound": document["value"]}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(value=31), "certificate: .*no refutation covers"),
        (lambda d: d.update(value=29), "best: .*said to be optimal"),
        (lambda d: d["cliques"][0]["lanes"].popitem(), "certificate: .*fit within"),
        (
            lambda d: d.update(refutations=[], kind="pressure"),
            "certificate: .*no refutation covers",
        ),
        (lambda d: d["refutations"][0].update(shapes=[{"R": 28}]), "certificate: .*no refutation"),
        (lambda d: d["cliques"][0].update(at=[99, 0]), r"certificate: .*no point \[99, 0\]"),
        (lambda d: d.update(group="R"), "certificate: .* is about 30 registers of 'R'"),
        (lambda d: d.update(kind="placement"), "certificate: .*its kind is placement"),
        (lambda d: d.update(note="trust me"), "certificate: .* has more than a bound"),
    ],
)
def test_a_wrong_certificate(tmp_path: Path, edit: Callable[[Any], object], message: str) -> None:
    row = row_of(draft(), REDUCE_SM)
    findings = best_findings(tmp_path, row, _claimed(row, edit))
    assert any(re.match(message, finding) for finding in findings), findings


def test_a_certificate_of_another_function(tmp_path: Path) -> None:
    row, other = (row_of(draft(), name) for name in (REDUCE_SM, DECODE))
    change = {"best_certificate": other.best_certificate, "best_lower_bound": 60}
    findings = best_findings(tmp_path, row, change)
    assert any(finding.startswith("certificate: ") for finding in findings), findings


def test_a_certificate_that_is_not_canonical(tmp_path: Path) -> None:
    row = row_of(draft(), REDUCE_SM)
    spaced = json.dumps(json.loads(row.best_certificate or ""))
    (finding,) = best_findings(tmp_path / "a", row, {"best_certificate": spaced})
    assert finding.startswith("json: ")
    (finding,) = best_findings(tmp_path / "b", row, {"best_certificate": "[]"})
    assert "must hold a JSON object" in finding


def test_proofs_by_a_solver_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools", reason="the extra 'exact' is not installed")

    def by_solver(document: Any) -> None:
        document["kind"] = document["refutations"][0]["kind"] = "residue_schedule"

    row = row_of(draft(), REDUCE_SM)
    folder = written(tmp_path, row.id, alone=True, **_claimed(row, by_solver))
    assert not findings_of(folder, labels=True)
    monkeypatch.setitem(sys.modules, "ortools", None)
    assert not findings_of(folder)
    with pytest.raises(MissingExtraError, match=r"'ortools'.*exact"):
        findings_of(folder, labels=True)


def test_labels_by_track(tmp_path: Path) -> None:
    among(written(tmp_path / "a", REDUCE, assignment=None), "nulls", TRAIN, REDUCE)
    file = "split/sm_80/gemm/test-00000-of-00001.parquet"
    only(written(tmp_path / "b", SPLIT_TRACK, assignment="{}"), "nulls", file, SPLIT_TRACK)
    row = row_of(draft(), SPLIT_TRACK)
    used = json.loads(row.registers_used or "")
    text = json.dumps(used | {"vector": 1}, sort_keys=True, separators=(",", ":"))
    only(written(tmp_path / "c", SPLIT_TRACK, registers_used=text), "registers", file, SPLIT_TRACK)
    among(written(tmp_path / "d", SPLIT_TRACK, occupancy=None), "nulls", file, SPLIT_TRACK)


# Rows and each other


def test_a_row_in_two_splits(folder: Path) -> None:
    copy = TRAIN.replace("train-", "validation-")
    for base in ("", "raw/"):
        shutil.copy(folder / base / TRAIN, folder / base / copy)
    rehash(folder)
    assert TRAIN in among(folder, "duplicate", copy, REDUCE)
    assert f"raw/{TRAIN}" in among(folder, "duplicate", f"raw/{copy}", REDUCE)
    assert "'train'" in among(folder, "group", copy, REDUCE)


def test_a_group_in_two_splits(tmp_path: Path) -> None:
    found = draft()
    found.splits[REDUCE_SM] = "validation"
    file = next(
        finding.file
        for finding in findings_of(found.write(tmp_path))
        if finding.kind.value == "group"
    )
    assert file.startswith("data/sm_80/gemm/validation-")
    assert "gemm/reduce/f16/16x64" in among(tmp_path, "group", file, REDUCE_SM)
    assert "belongs to 'train'" in among(tmp_path, "sweep", file, REDUCE_SM)


def test_a_cluster_across_splits(tmp_path: Path) -> None:
    folder = written(tmp_path, DECODE, cluster=REDUCE_SM)
    assert "whole in one split" in only(folder, "cluster", TEST_SM, DECODE)


def test_a_cluster_without_its_name(tmp_path: Path) -> None:
    assert "f" * 16 in only(
        written(tmp_path / "a", DECODE, cluster="f" * 16), "cluster", TEST_SM, DECODE
    )
    found = draft()
    found.change(REDUCE, cluster=REDUCE_SM)  # which is in a cluster of another name
    found.change(REDUCE_SM, cluster=REDUCE)
    assert kinds(findings_of(found.write(tmp_path / "b"))) == {"cluster": 3}


def test_a_missing_raw_row(tmp_path: Path) -> None:
    found = draft()
    found.raws = [raw for raw in found.raws if raw.id != DECODE]
    only(found.write(tmp_path), "raw", TEST_SM, DECODE)


@pytest.mark.parametrize(
    "change",
    [
        {"content": base64.b64encode(b"another cubin").decode()},
        {"content": "no base64"},
        {"format": "mir"},
    ],
)
def test_another_raw_row(tmp_path: Path, change: dict[str, str]) -> None:
    found = draft()
    found.raws = [replace(raw, **change) if raw.id == DECODE else raw for raw in found.raws]
    only(found.write(tmp_path), "raw", f"raw/{TEST_SM}", DECODE)


# Lists


def test_a_line_of_another_row(folder: Path) -> None:
    lines = read_lines(folder / "rows.jsonl")
    lines[0]["row_sha256"] = lines[1]["row_sha256"]
    lines[2]["point"] = lines[3]["point"]
    write_lines(folder / "rows.jsonl", lines)
    rehash(folder)
    findings = findings_of(folder)
    assert {f.row for f in findings} == {lines[0]["id"], lines[2]["id"]}
    assert [f.file for f in findings] == ["rows.jsonl"] * 2


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: lines.pop(), "no line has this row"),
        (lambda lines: lines.append(lines[0]), "earlier line"),
        (lambda lines: lines.reverse(), "file and place"),
        (lambda lines: lines[0].pop("track"), "required property"),
        (lambda lines: lines[0].update(id="a"), "there is no such row"),
    ],
)
def test_another_list_of_rows(
    folder: Path, edit: Callable[[list[dict[str, Any]]], Any], message: str
) -> None:
    lines = read_lines(folder / "rows.jsonl")
    edit(lines)
    write_lines(folder / "rows.jsonl", lines)
    rehash(folder)
    findings = findings_of(folder)
    assert set(kinds(findings)) == {"row_list"}
    assert any(message in finding.message for finding in findings)


def rejection(found: Draft) -> dict[str, str]:
    """The row DECODE as a rejection."""
    row = row_of(found, DECODE)
    columns = {name: getattr(row, name) for name in ("family", "arch", "kernel", "params")}
    point = json.loads(row.provenance)["point"]
    return {**columns, "point": point, "kind": "label-alignment", "reason": "planted"}


def test_rejections(tmp_path: Path) -> None:
    found = draft()
    entry = rejection(found)
    found.rejected = [entry]
    folder = found.write(tmp_path / "a")
    assert "stands elsewhere too" in among(folder, "rejected", "rejected.jsonl")
    assert "'points'" in among(folder, "manifest", "manifest.json")
    found.rows = [row for row in found.rows if row.id != DECODE]
    found.raws = [raw for raw in found.raws if raw.id != DECODE]
    assert "'rejected' is {}" in only(found.write(tmp_path / "b"), "manifest", "manifest.json")
    found.manifest["rejected"] = {"label-alignment": 1}
    assert findings_of(found.write(tmp_path / "c")) == ()
    entry["params"] = "{}"
    assert "'point' is" in among(found.write(tmp_path / "d"), "rejected", "rejected.jsonl")


def test_a_point_of_the_sweep_that_is_nowhere(tmp_path: Path) -> None:
    found = draft()
    found.manifest["points"] = 69  # all that mini has
    folder = found.write(tmp_path)
    assert kinds(findings_of(folder))["sweep"] == 69 - len(found.rows)
    assert "'points' is 69, expected 7" in among(folder, "manifest", "manifest.json")


def test_a_point_of_another_sweep(tmp_path: Path) -> None:
    found = draft()
    found.manifest["archs"] = ["sm_80"]
    assert "has no point" in among(found.write(tmp_path), "sweep", "manifest.json")


# Card and leakage


@pytest.mark.parametrize("pattern", [False, True])
def test_a_config_that_misses_a_split(folder: Path, pattern: bool) -> None:
    configs = card_configs(folder)
    default = next(config for config in configs if config["config_name"] == "default")
    files = default["data_files"]
    if pattern:  # takes all files where one architecture's are meant
        sm_80 = next(config for config in configs if config["config_name"] == "sm_80")
        sm_80["data_files"][0]["path"] = f"data/*/*/{sm_80['data_files'][0]['split']}-*.parquet"
    else:
        files.remove(next(entry for entry in files if entry["split"] == "validation"))
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n")
    rehash(folder)
    message = among(folder, "card", "README.md")
    assert set(kinds(findings_of(folder))) == {"card"}
    assert ("config 'sm_80'" if pattern else "'default', split 'validation'") in message


@pytest.mark.parametrize("text", ["no head", "---\nconfigs: 1\n---\n", "---\n: : [\n---\n"])
def test_a_card_without_configs(folder: Path, text: str) -> None:
    (folder / "README.md").write_text(text)
    rehash(folder)
    only(folder, "card", "README.md")


@pytest.mark.parametrize(
    ("edit", "row", "message"),
    [
        (lambda d: d["rows"].remove(of_decode(d)), DECODE, "is missing"),
        (lambda d: of_decode(d).update(distance=0.5), DECODE, "computed"),
        (lambda d: of_decode(d).update(nearest=DECODE), DECODE, "not of 'train'"),
        (lambda d: d["summary"]["test"].update(median_distance=1.0), "", "median_distance is 1.0"),
    ],
)
def test_leakage(folder: Path, edit: Callable[[Any], object], row: str, message: str) -> None:
    edited_json(folder, "leakage.json", edit)
    assert message in among(folder, "leakage", "leakage.json", row)


def of_decode(document: Any) -> Any:
    return next(row for row in document["rows"] if row["id"] == DECODE)


# Processes


def test_many_processes_find_the_same(tmp_path: Path) -> None:
    found = draft()
    found.change(REDUCE, n_blocks=77)
    found.change(DECODE, occupancy=1)
    folder = found.write(tmp_path)
    here = check_dataset(folder, progress=False)
    assert kinds(here.findings) == {"size": 1, "registers": 1}
    assert check_dataset(folder, jobs=2, progress=False) == here
