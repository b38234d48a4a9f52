"""Results in the form that the Hugging Face Hub reads.

A model's repository holds `.eval_results/verilocc-bench.yaml`: one entry for
each task id. The Hub keeps one number for an id, so an id names all that makes
results differ:

    {architecture}_{family}_{assistance}_{decoding}_pass@1
    overall_{assistance}_{decoding}_pass@1

with `split_` before them on the split track. A value is pass@1, a share from 0
to 1.

Results go to the dataset that was evaluated: the one that the run names, or
one on the Hub whose rows have the run's hash. No other dataset is accepted.

The dataset's repository has no `eval.yaml`: that format names Inspect's own
scorers, which do not verify assignments. The task of
`cli/inspect_task.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from verilocc_bench.dataset import Row, rows_hash
from verilocc_bench.dataset.hub import read_hub
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.table import allocator_label

OVERALL = "overall"
_HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)

Document = Mapping[str, Any]
Documents = Mapping[str, Document]
"""Results documents by the folder that they are from."""


class Source(NamedTuple):
    """A page that shows results."""

    name: str
    url: str


class _Result(NamedTuple):
    """One figure and its run."""

    task_id: str
    value: float
    dataset_id: str
    document: Document


def task_id(config: Mapping[str, Any], task: str) -> str:
    """The id of a task under a run's `config`."""
    track = "" if config["track"] == "assign" else f"{config['track']}_"
    name = task.replace("/", "_")
    return f"{track}{name}_{config['assistance']}_{config['decoding']}_pass@1"


def eval_results_yaml(
    documents: Documents, dataset_id: str | None, source: Source | None = None
) -> str:
    """`.eval_results/verilocc-bench.yaml` for the model of all these runs.

    `dataset_id` is the dataset's id on the Hub, where the runs read it from a
    folder; `source` is the page that shows these results. Raises InputError
    for runs of another dataset, of part of one, of several models, or two of
    one kind.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = [
        EvalResultEntry(
            dataset_id=result.dataset_id,
            task_id=result.task_id,
            value=result.value,
            dataset_revision=result.document["dataset"]["revision"],
            date=result.document["date"],
            notes=_notes(result.document),
            source_url=None if source is None else source.url,
            source_name=None if source is None else source.name,
        )
        for result in _results(documents, dataset_id)
    ]
    document = eval_result_entries_to_yaml(entries)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def _results(documents: Documents, dataset_id: str | None) -> Iterator[_Result]:
    """All results of runs of one model."""
    first = next(iter(documents.values()))
    there = _dataset_id(documents, dataset_id)
    seen = set()
    for source, document in documents.items():
        config = document["config"]
        if allocator_label(config) != allocator_label(first["config"]):
            raise InputError("expected runs of one model", source=source)
        for task, record in document["results"].items():
            if task == OVERALL and (config["arch"] or config["family"]):
                continue  # not the overall of the dataset
            if record["pass@1"] is None:
                continue
            identifier = task_id(config, task)
            if identifier in seen:
                raise InputError(f"a second result for {identifier}", source=source)
            seen.add(identifier)
            yield _Result(identifier, record["pass@1"], there, document)


def _check_complete(source: str, document: Document, first: Document) -> None:
    if document["config"]["limit"] is not None:
        raise InputError("this run is of a part of the dataset (--limit)", source=source)
    if document["config"]["budget"] != "full":
        raise InputError("this run is at another budget (--budget)", source=source)
    unasked = document["results"][OVERALL]["infrastructure_failures"]
    if unasked:
        raise InputError(
            f"{unasked} samples are missing for infrastructure failures: run evaluate again",
            source=source,
        )
    if document["dataset"] != first["dataset"]:
        raise InputError("expected runs of one dataset in one version", source=source)


def _dataset_id(documents: Documents, given: str | None) -> str:
    """The id on the Hub of the one dataset that every document evaluates, as a whole.

    Raises InputError if a document evaluates another dataset than the given one.
    """
    source, document = next(iter(documents.items()))
    for each in documents.items():
        _check_complete(*each, document)
    recorded = document["dataset"]
    found: str = given or recorded["name"]
    if not _HUB_ID.fullmatch(found):
        raise InputError(
            f"expected the dataset's id on the Hub, as in owner/name, not {found[:60]!r}: "
            "give --dataset-id",
            source=source,
        )
    if found == recorded["name"]:
        return found
    try:
        there = _hash_on_the_hub(found, document)
    except InputError as error:
        message = f"this run is of {recorded['name'][:60]!r}, and cannot be compared with {error}"
        raise InputError(message, source=source) from None
    if there != recorded["hash"]:
        raise InputError(
            f"this run is of {recorded['name'][:60]!r} (hash {recorded['hash'][:16]}…), and not "
            f"of {found} (hash {there[:16]}…)",
            source=source,
        )
    return found


def _hash_on_the_hub(dataset_id: str, document: Document) -> str:
    config, revision = document["config"], document["dataset"]["revision"]
    name = "default" if config["track"] == "assign" else config["track"]
    splits = config["split"].split(",")
    return rows_hash(
        row for split in splits for row in read_hub(dataset_id, name, split, revision, Row)
    )


def _notes(document: Document) -> str:
    config, prompt = document["config"], document["config"]["prompt"]
    notes = [f"verilocc-bench {document['versions'].get('verilocc-bench')}"]
    notes += [
        f"samples for each kernel: {config['samples']}",
        f"dataset hash {document['dataset']['hash']}",
    ]
    if config["split"] != "test":
        notes.append(f"split {config['split']}")
    if prompt is not None:
        notes.append(f"prompt {prompt['format']} {prompt['version']}")
    return ", ".join(notes)
