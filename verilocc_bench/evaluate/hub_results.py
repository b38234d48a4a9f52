"""Results in the forms that the Hugging Face Hub reads.

A model's repository holds `.eval_results/verilocc-bench.yaml`: one entry for
each task id. The dataset's repository holds `eval.yaml` with the same ids.
The Hub keeps one number for an id, so each names all that sets results apart:

    {architecture}_{family}_{assistance}_{decoding}_pass@1
    overall_{assistance}_{decoding}_pass@1

with `split_` before them on the split track. A value is pass@1, a share from 0
to 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from verilocc_bench.errors import InputError

__all__ = ["EVAL_RESULTS", "eval_results_yaml", "eval_yaml", "task_id"]

EVAL_RESULTS = ".eval_results/verilocc-bench.yaml"
"""Where the Hub looks for results in a model's repository."""

FRAMEWORK = "inspect-ai"
DESCRIPTION = (
    "Register allocation on GPU kernels: a function in normalized machine IR is answered with a "
    "register for every virtual register, and a verifier says whether the answer is right. "
    "Values are pass@1."
)
OVERALL = "overall"
_HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)

Document = Mapping[str, Any]
Documents = Mapping[str, Document]
"""Results documents by the folder that they are from."""


def task_id(config: Mapping[str, Any], task: str) -> str:
    """The id of a task under a run's `config`."""
    track = "" if config["track"] == "assign" else f"{config['track']}_"
    name = task.replace("/", "_")
    return f"{track}{name}_{config['assistance']}_{config['decoding']}_pass@1"


def eval_results_yaml(documents: Documents, dataset_id: str | None) -> str:
    """`.eval_results/verilocc-bench.yaml` for the model that all these runs are of.

    `dataset_id` is the dataset's id on the Hub, where the runs read it from a
    folder. Raises InputError for runs of part of a dataset, of several models,
    or two of one kind.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    first = next(iter(documents.values()))
    entries: dict[str, EvalResultEntry] = {}
    for source, document in documents.items():
        _check_complete(source, document, first)
        if document["config"]["model"] != first["config"]["model"]:
            raise InputError("expected runs of one model", source=source)
        for identifier, task in _tasks(document):
            if identifier in entries:
                raise InputError(f"a second result for {identifier}", source=source)
            entries[identifier] = EvalResultEntry(
                dataset_id=_dataset_id(source, document, dataset_id),
                task_id=identifier,
                value=document["results"][task]["pass@1"],
                dataset_revision=document["dataset"]["revision"],
                date=document["date"],
                notes=_notes(document),
            )
    return _dump(eval_result_entries_to_yaml(list(entries.values())))


def eval_yaml(documents: Documents, dataset_id: str | None) -> str:
    """`eval.yaml` for the dataset's repository, with every task of these runs.

    One run of each assistance and decoding that is to be listed is enough,
    of whatever model. Raises InputError for runs of several datasets.
    """
    first = next(iter(documents.values()))
    tasks: dict[str, dict[str, str]] = {}
    for source, document in documents.items():
        _check_complete(source, document, first)
        split, track = document["config"]["split"], document["config"]["track"]
        for identifier, task in _tasks(document):
            # There is a config for each architecture, none for each of its families.
            config = "default" if task == OVERALL else task.split("/")[0]
            config = config if track == "assign" else track
            entry = {"id": identifier, "config": config, "split": split}
            if tasks.setdefault(identifier, entry) != entry:
                raise InputError(f"another split than before for {identifier}", source=source)
    source = next(iter(documents))
    document = {
        "name": _dataset_id(source, first, dataset_id).split("/")[1],
        "description": DESCRIPTION,
        "evaluation_framework": FRAMEWORK,
        "tasks": list(tasks.values()),
    }
    return _dump(document)


def _tasks(document: Document) -> Iterator[tuple[str, str]]:
    """(task id, task) of all tasks that are there whole and have a figure."""
    config = document["config"]
    for task, record in document["results"].items():
        if task == OVERALL and (config["arch"] or config["family"]):
            continue  # not the overall of the dataset
        if record["pass@1"] is not None:
            yield task_id(config, task), task


def _check_complete(source: str, document: Document, first: Document) -> None:
    if document["config"]["limit"] is not None:
        raise InputError("this run is of a part of the dataset (--limit)", source=source)
    unasked = document["results"][OVERALL]["infrastructure_failures"]
    if unasked:
        raise InputError(
            f"{unasked} samples are missing for infrastructure failures: run evaluate again",
            source=source,
        )
    if document["dataset"] != first["dataset"]:
        raise InputError("expected runs of one dataset in one version", source=source)


def _dataset_id(source: str, document: Document, given: str | None) -> str:
    found: str = given or document["dataset"]["name"]
    if not _HUB_ID.fullmatch(found):
        raise InputError(
            f"expected the dataset's id on the Hub, as in owner/name, not {found[:60]!r}: "
            "give --dataset-id",
            source=source,
        )
    return found


def _notes(document: Document) -> str:
    config, prompt = document["config"], document["config"]["prompt"]
    notes = [f"verilocc-bench {document['versions'].get('verilocc-bench')}"]
    notes += [
        f"samples for each kernel: {config['samples']}",
        f"dataset hash {document['dataset']['hash']}",
    ]
    if prompt is not None:
        notes.append(f"prompt {prompt['format']} {prompt['version']}")
    return ", ".join(notes)


def _dump(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
