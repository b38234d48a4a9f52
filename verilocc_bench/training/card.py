"""The card of a trained model: README.md in its folder, as the Hub shows it.

All its facts come from files: training.json and config.json of the folder,
the dataset's rows and leakage.json, and results of `evaluate`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tabulate import tabulate

from verilocc_bench.dataset import EMBEDDED, Row, embedded_path, is_local, load_rows, rows_hash
from verilocc_bench.dataset.reader import split_name
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.evaluation.table import number, percent
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.shipped import is_gguf, is_shipped
from verilocc_bench.model.transformers_model.model_files import folder_revision
from verilocc_bench.training import card_words as words
from verilocc_bench.training.overlap import LEAKAGE, Overlap, find_overlaps

CARD = "README.md"
TRAINING = "training.json"

PUBLISHED = "verilocc/regalloc"
"""The dataset's name on the Hub; a folder with the dataset does not tell it."""

ARCHITECTURE = {
    "model_type": "kind",
    "hidden_size": "width",
    "intermediate_size": "width of the feed-forward layers",
    "num_hidden_layers": "layers",
    "num_attention_heads": "attention heads",
    "num_key_value_heads": "heads of keys and values",
    "vocab_size": "tokens in the vocabulary",
    "max_position_embeddings": "positions",
    "dtype": "weights",
}
"""The card's words for keys of config.json."""


@dataclass(frozen=True, slots=True)
class Training:
    """The content of training.json: the recipe, the dataset, versions, and measurements."""

    recipe: Mapping[str, Any]
    dataset: Mapping[str, Any]
    versions: Mapping[str, str]
    measured: Mapping[str, Any]

    @property
    def formats(self) -> list[str]:
        """The prompt formats that were learnt, without repetition; the model's own is first."""
        return list(dict.fromkeys(source["format"] for source in self.recipe["sources"]))

    @property
    def model_name(self) -> str:
        """The value for `--model`: the name of a model in this package, else FOLDER."""
        return str(self.recipe["name"]) if is_shipped(self.recipe["name"]) else "FOLDER"


def read_training(folder: Path) -> Training:
    """Reads training.json of a model's folder. Raises InputError if a key is missing."""
    path = folder / TRAINING
    document = read_json(path)
    try:
        found = Training(*(document[key] for key in ("recipe", "dataset", "versions", "measured")))
        for part, keys in (
            (found.recipe, ("name", "description", "model", "sources", "training", "split")),
            (found.dataset, ("name", "hash")),
            (found.measured, ("seconds", "device", "examples", "tokens", "parameters")),
        ):
            for key in keys:
                part[key]
        _ = found.formats
    except (KeyError, TypeError) as error:
        message = f"expected what `train` writes at its end ({type(error).__name__}: {error})"
        raise InputError(message, source=path) from None
    return found


def write_card(
    folder: Path, dataset: str, results: Sequence[Path] = (), *, revision: str | None = None
) -> Path:
    """Writes README.md into the folder of a trained model, and returns its path.

    `dataset` and `revision` are what the model was trained on; `results` are
    results.json files of `evaluate`. If the dataset is a folder, all splits are
    read to count what they have in common. Raises InputError for another
    dataset, or for results of another language model.
    """
    training = read_training(folder)
    rows = load_rows(dataset, split=training.recipe["split"], revision=revision).rows
    if rows_hash(rows) != training.dataset["hash"]:
        message = "the model was trained on another dataset, or another version of it"
        raise InputError(message, source=dataset)
    overlaps = None
    if is_local(dataset):
        name = split_name(dataset)[0]
        place = embedded_path() if name == EMBEDDED else Path(name)
        overlaps = find_overlaps(place, rows, training.recipe["split"])
    documents = [_results_of(path, folder) for path in results]
    parts = [
        _header(training, dataset),
        f"# {training.recipe['name']}\n\n{_sentence(training.recipe['description'])}",
        *_about(training),
        *words.usage(training.model_name, training.formats),
        "## Architecture",
        _architecture(folder, training),
        "## Training data",
        _data_words(training, dataset),
        _sources_table(training, rows),
        *words.augmentation(training.recipe["sources"]),
        "## Training",
        training_table(training),
        version_words(training),
        "## Leakage",
        *_leakage_parts(training, overlaps),
        *_results_parts(documents),
        "## Recipe",
        words.RECIPE,
        f"```yaml\n{_yaml(training.recipe)}```",
    ]
    path = folder / CARD
    write_atomically(path, "\n\n".join(parts) + "\n")
    return path


def training_table(training: Training) -> str:
    """The cost and the outcome of a training, as a Markdown table."""
    measured = training.measured
    resumed = " since its last interruption" if measured.get("resumed") else ""
    lines = [
        ("parameters", f"{measured['parameters']:,}"),
        ("examples", f"{measured['examples']:,}"),
        ("tokens in them", f"{measured['tokens']:,}"),
        ("examples that were too long", f"{measured.get('left_out', 0):,}"),
        ("steps", f"{training.recipe['training']['steps']:,}"),
        ("device", measured["device"]),
        ("seconds", f"{measured['seconds']:,.0f}{resumed}"),
    ]
    validation = measured.get("validation") or {}
    if "eval_loss" in validation:
        lines.append(("validation loss, nats a token", f"{validation['eval_loss']:.4f}"))
    if "eval_mean_token_accuracy" in validation:
        share = f"{100 * validation['eval_mean_token_accuracy']:.2f} %"
        lines.append(("validation tokens that are the teacher's", share))
    return _table(("", ""), lines)


def version_words(training: Training) -> str:
    """The versions of all software that influences the weights, as a sentence."""
    return f"Versions: {', '.join(f'{name} {v}' for name, v in training.versions.items())}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _header(training: Training, dataset: str) -> str:
    model = training.recipe["model"]
    header: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": list(words.TAGS),
    }
    if published := _published(training, dataset):
        header["datasets"] = [published]
    # A file of weights is no name on the Hub.
    if not is_gguf(model["pretrained"]) and not Path(model["pretrained"]).exists():
        header["base_model"] = model["pretrained"]
    return f"---\n{_yaml(header)}---"


def _yaml(document: Mapping[str, Any]) -> str:
    # Through JSON, so that tuples and the like are plain lists.
    plain = json.loads(json.dumps(document))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100))


def _about(training: Training) -> Iterable[str]:
    begun = words.BASE.format(**training.recipe["model"])
    yield (
        f"A causal language model with {training.measured['parameters']:,} parameters, {begun} "
        "and trained to allocate registers for GPU kernels in the prompt formats of "
        "verilocc-bench."
    )
    yield "## What it is, and what it is not"
    yield "\n".join(f"- {get_prompt_format(name).description}" for name in training.formats)
    yield from words.widths(training.recipe["sources"])
    yield words.LIMITS


def _architecture(folder: Path, training: Training) -> str:
    configuration = read_json(folder / "config.json")
    found = [
        (name, f"{value:,}" if type(value) is int else value)
        for key, name in ARCHITECTURE.items()
        if (value := configuration.get(key)) is not None
    ]
    return _table(("", ""), [*found, ("parameters", f"{training.measured['parameters']:,}")])


def _published(training: Training, dataset: str) -> str | None:
    """The dataset's id on the Hub, or None if it is not there.

    A folder with the name of the published dataset counts as a copy of it. The
    card shows the hash beside the name, so a reader can check.
    """
    if not is_local(dataset):
        return dataset
    return PUBLISHED if training.dataset["name"] == PUBLISHED.split("/")[1] else None


def _data_words(training: Training, dataset: str) -> str:
    published = _published(training, dataset)
    name = f"`{training.dataset['name']}`, a dataset that is not on the Hub"
    if dataset == EMBEDDED:
        name = f"`{EMBEDDED}`, which comes with the package"
    elif published is not None:
        name = f"[{published}](https://huggingface.co/datasets/{published})"
    revision = training.dataset.get("revision")
    at = f", revision `{revision}`" if revision else ""
    return (
        f"The split `{training.recipe['split']}` of the assign track of {name}{at}; the hash of "
        f"its ids and labels is `{training.dataset['hash']}`. {words.SOURCES}"
    )


def _sources_table(training: Training, rows: Sequence[Row]) -> str:
    lines = []
    for source in training.recipe["sources"]:
        fitting = sum(
            (not source["archs"] or row.arch in source["archs"])
            and (not source["families"] or row.family in source["families"])
            for row in rows
        )
        asked = source["functions"]
        taken = fitting if asked is None else min(asked, fitting)
        only = ", ".join([*source["archs"], *source["families"]]) or "all"
        lines.append((f"`{source['format']}`", source["label"], only, f"{taken:,}", f"{fitting:,}"))
    headers = ("format", "answers", "architectures and families", "functions", "of")
    return _table(headers, lines, 3)


def _leakage_parts(training: Training, overlaps: Sequence[Overlap] | None) -> list[str]:
    if overlaps is None:
        return [words.NOT_AT_HAND.format(leakage=LEAKAGE)]
    if not overlaps:
        return [f"The dataset has no split but `{training.recipe['split']}`."]
    shared = [each.split for each in overlaps if each.shared]
    verdict = words.NOTHING_SHARED
    if shared:
        verdict = words.SOMETHING_SHARED.format(splits=", ".join(f"`{name}`" for name in shared))
    lines = [
        (
            *(f"`{each.split}`", each.rows, each.ids, each.texts, each.groups, each.clusters),
            *("–" if d is None else f"{d:.3f}" for d in (each.nearest, each.median)),
        )
        for each in overlaps
    ]
    headers = ("split", "rows", "same id", "same text", "same group", "same cluster")
    distances = ("nearest", "median distance")
    split = training.recipe["split"]
    return [
        f"{verdict} {words.DISTANCES.format(split=split)}",
        _table((*headers, *distances), lines),
    ]


def _results_of(path: Path, folder: Path) -> dict[str, Any]:
    document = read_results(path)
    config = document["config"]
    if config["prompt"] is not None and config["revision"] != folder_revision(folder):
        raise InputError("these are results of another model than the folder's", source=path)
    return document


def _results_parts(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    if not documents:
        return []
    lines = []
    for document in documents:
        how = _how(document["config"])
        records = {**document["groups"]["architecture"], "all": document["results"]["overall"]}
        for arch, record in records.items():
            lines.append((how, f"`{document['config']['split']}`", arch, *_figures(record)))
    headers = ("how it was asked", "split", "architecture", "kernels", "valid", "95 % interval")
    measures = ("registers", "fewer", "more", "above bound", "bank conflicts")
    return ["## Results", words.RESULTS, _table((*headers, *measures), lines, 3)]


def _how(config: Mapping[str, Any]) -> str:
    if config["prompt"] is None:
        return f"`{config['model']}`"
    options = config["options"]
    told = [f"`{config['prompt']['format']}`", config["decoding"], options["strategy"]]
    if options.get("window_registers"):
        told[0] += f" of {options['window_registers']}"
    if options["strategy"] == "random":
        told[-1] = f"temperature {options['temperature']:g}"
    if "verifier_calls" in options:
        told[1] += f" ({options['feedback']}, {options['verifier_calls']} attempts)"
    return ", ".join(told)


def _figures(record: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = record["pass@1_low"], record["pass@1_high"]
    interval = "–" if low is None else f"{100 * low:.1f} to {100 * high:.1f} %"
    return (
        f"{record['n']:,}",
        percent(record["pass@1"]),
        interval,
        number(record["registers_ratio"], 3),
        percent(record["share_better"]),
        percent(record["share_worse"]),
        number(record["gap_to_bound"], 2),
        number(record["bank_conflicts"], 0),
    )


def _table(headers: Sequence[str], lines: Iterable[Sequence[object]], texts: int = 1) -> str:
    """A Markdown table whose first `texts` columns are text."""
    alignment = ["left"] * texts + ["right"] * (len(headers) - texts)
    cells = [[str(cell) for cell in line] for line in lines]
    return tabulate(
        cells, headers=headers, tablefmt="pipe", disable_numparse=True, colalign=alignment
    )
