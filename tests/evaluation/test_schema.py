"""The published schema, and what reading results refuses."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.command_line import CommandLine
from tests.report.documents import make_document
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.schema import check_results, read_results, results_schema
from verilocc_bench.settings.allocator import Decoding


def test_the_schema_is_one_and_knows_every_decoding() -> None:
    Draft202012Validator.check_schema(results_schema())
    known = results_schema()["$defs"]["decoding"]["enum"]
    assert sorted(known) == sorted(decoding.value for decoding in Decoding)


@pytest.mark.parametrize(
    "document",
    [
        make_document(),
        make_document(samples=10, k=(1, 10), chance=0.0),
        make_document(track="split", assistance="state"),
        make_document(decoding="guided", samples=3, kernels=6),
    ],
)
def test_what_evaluate_writes_is_accepted(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document))
    Draft202012Validator(results_schema()).validate(document)
    assert read_results(path) == document


def test_an_earlier_run_of_a_model_that_keeps_notes_has_assistance_intervals(
    tmp_path: Path,
) -> None:
    path = tmp_path / "results.json"
    for name, expected in (("text-notes", "intervals"), ("whole", "text")):
        document = make_document()
        document["config"]["prompt"]["format"] = name
        path.write_text(json.dumps(document))
        found = read_results(path)
        assert found["config"]["assistance"] == expected
        records = [found["results"], *found["groups"].values()]
        assert {each["assistance"] for some in records for each in some.values()} == {expected}
        check_results(found, path)


@pytest.mark.slow
def test_every_key_is_required_but_further_pass_at_k() -> None:
    """Leaving out any key of any record is found, with its name."""
    validator = Draft202012Validator(results_schema())
    right = make_document(decoding="guided", kernels=1)
    assert validator.is_valid(right)
    record = ["results", "overall"]
    inner = ([key] for key in ("config", "dataset", "timing", "groups"))
    for path in ([], record, ["kernels", 0], *inner):
        for key in list(_at(right, path)):
            if path == [] or "/" not in key:
                wrong = copy.deepcopy(right)
                del _at(wrong, path)[key]
                assert not validator.is_valid(wrong), (path, key)
                with pytest.raises(InputError, match=f"{key!r}"):
                    check_results(wrong, "results.json")


def _at(document: Any, path: list[Any]) -> Any:
    for part in path:
        document = document[part]
    return document


def change(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        _at(document, list(path[:-1]))[path[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            change("results", "overall", "pass@1", value="1"),
            'at /results/overall/pass@1: expected a number or null, not "1"',
        ),
        (change("results", "overall", "pass@1", value=1.5), "expected 1 or less, not 1.5"),
        (change("results", "overall", "n", value=-1), "expected 0 or more, not -1"),
        (change("results", "overall", "n", value=10**400), "expected 9007199254740991 or less"),
        (change("results", "overall", "speed", value=1), "the key 'speed' is unknown"),
        (change("results", "overall", "pass@01", value=0.5), "'pass@01' is unknown"),
        (change("results", "gfx942", value={}), "at /results: the key 'gfx942' is"),
        (change("config", "track", value="both"), "expected one of assign, split, not"),
        (change("config", "k", value=[]), "at /config/k: expected something that is not empty"),
        (change("config", "k", value=[1, 1]), "items that are all different"),
        (change("kernels", 3, "id", value="x" * 9999), "at /kernels/3/id: expected text like"),
        (change("kernels", 3, "samples", value=True), "expected a whole number, not true"),
        (change("kernels", 3, "valid", value=99), "at /kernels/3: more valid samples than"),
        (change("kernels", 3, "registers", value=None), "at /kernels/3/registers: expected a"),
        (lambda made: made["kernels"].append(made["kernels"][0]), " is there twice"),
        (change("results", "overall", "pass@1", value=0.5), "/pass@1: expected 1, the mean over"),
        (change("config", "k", value=[1, 10]), "the key 'pass@10' is missing"),
        (change("config", "decoding", value="guided"), "/decoding: expected 'guided', as in"),
        (change("dataset", value=[]), "at /dataset: expected an object, not []"),
    ],
)
def test_wrong_documents_are_refused(
    break_it: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = make_document(chance=1.0)
    break_it(document)
    with pytest.raises(InputError) as error:
        check_results(document, "results.json")
    assert message in str(error.value)
    assert str(error.value).startswith("results.json: at /")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("document", [None, [], "", 3, {}, {"results": {}}])
def test_other_json_is_refused(document: Any) -> None:
    with pytest.raises(InputError, match=r"results.json: at /: "):
        check_results(document, "results.json")


def test_older_results_are_told_so() -> None:
    document = make_document()
    older = {key: document[key] for key in ("results", "config", "versions", "dataset", "seed")}
    with pytest.raises(InputError, match="have an older form, without 'groups': run evaluate"):
        check_results(older, "results.json")


@pytest.mark.parametrize("text", ["", "{", "NaN", "\xff", '{"results": 1, "results": 2}'])
def test_files_that_are_no_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as error:
        read_results(path)
    assert str(path) in str(error.value)


STOCHASTIC = "python:tests.evaluation.allocators_for_tests:stochastic"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--model", "compiler"),
        ("--model", "compiler", "--track", "split"),
        ("--model", "spill-everywhere", "--track", "split", "--family", "gemm"),
        ("--model", STOCHASTIC, "--samples", "3", "--k", "1,3"),
        ("--model", STOCHASTIC, "--decoding", "guided", "--verifier-calls", "2"),
        ("--model", "command:/bin/false", "--arch", "sm_80"),
    ],
)
def test_real_results_meet_the_schema(
    options: tuple[str, ...], tmp_path: Path, run: CommandLine
) -> None:
    run("evaluate", *options, "--limit", "1", "--output-path", tmp_path)
    document = read_results(tmp_path / "results.json")
    assert document["results"]["overall"]["n"] == len(document["kernels"])
    run("report", tmp_path, "-o", tmp_path / "report.md")
