"""Scores allocators on a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verilocc_bench.api.models import (
    AnyModel,
    allocator_of,
    can_be_imported,
    model_name,
    settings_of,
)
from verilocc_bench.api.problems import names
from verilocc_bench.api.results import Results, TemporaryFolder
from verilocc_bench.dataset import EMBEDDED, BudgetChoice
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import RunConfiguration, evaluate_together, run_folders


def evaluate(
    model: AnyModel | Sequence[AnyModel],
    dataset: str | Path = EMBEDDED,
    *,
    samples: int = 1,
    k: int | Sequence[int] = 1,
    split: str | Sequence[str] = "test",
    track: str = "assign",
    arch: str | Sequence[str] | None = None,
    family: str | Sequence[str] | None = None,
    limit: int | None = None,
    budget: str = "full",
    seed: int = 0,
    revision: str | None = None,
    output_path: str | Path | None = None,
    resume: bool = True,
    jobs: int = 1,
    machine_code: bool = False,
    **settings: Any,
) -> Results:
    """Asks allocators about the functions of a dataset, judges every answer, and sums up.

    `model` is a value of `--model` (`"best"`, `"command:./mine"`, a folder …), a
    function `(problem, seed) -> {"%0": "v0", …}`, an object with
    `allocate(request)`, or a list of these. `samples` answers are asked for each
    function, and `k` are the k of pass@k. `limit` is the most functions of one
    architecture and family. `settings` are the settings of the model's kind, by their
    names on the command line (`decoding="guided"`, `temperature=0.7`).

    Samples are kept in `output_path` as soon as they are judged, and a run that
    was interrupted goes on from there, unless `resume` is False. Without a path
    they are kept until the Results are gone; `Results.save` keeps them. With
    `machine_code` the first valid answers and the labels are also taken to machine
    code, and compared by what it costs; for gfx90a and gfx942 that needs llc. A function
    that no module has, as in a notebook, counts as the same while its own source is
    the same, whatever it calls: after other changes give `resume=False`. Raises
    InputError for a model, a dataset or a folder that cannot be used.
    """
    models = list(model) if isinstance(model, list | tuple) else [model]
    _check_models(models, jobs)
    ks = (k,) if isinstance(k, int) else tuple(k)
    counts = [("limit", limit), ("samples", samples), ("jobs", jobs), *(("k", each) for each in ks)]
    for option, count in counts:
        if count is not None and count < 1:
            raise InputError(f"{option}: expected a number from 1, not {count}")
    if seed < 0:
        raise InputError(f"seed: expected a number from 0, not {seed}")
    configurations = [
        RunConfiguration(
            model=model_name(each),
            settings=settings_of(each, settings),
            dataset=str(dataset),
            revision=revision,
            splits=names(split) or (),
            track=track,
            budget=_budget(budget),
            archs=names(arch),
            families=names(family),
            limit=limit,
            samples=samples,
            ks=ks,
            seed=seed,
        )
        for each in models
    ]
    allocators = [
        allocator_of(each, configuration.asked_settings(), jobs)
        for each, configuration in zip(models, configurations, strict=True)
    ]
    temporary = TemporaryFolder() if output_path is None else None
    path = Path(output_path or "") if temporary is None else temporary.path
    # Nothing is said about a temporary folder.
    tell = {} if temporary is None else {"tell": lambda _: None}
    found = evaluate_together(
        configurations,
        output_path=path,
        resume=resume,
        jobs=jobs,
        allocators=allocators,
        machine_code=machine_code,
        **tell,
    )
    folders = run_folders(path.absolute(), [each.name for each in allocators])
    return Results([each.document for each in found], folders, temporary)


def _check_models(models: Sequence[AnyModel], jobs: int) -> None:
    """Raises InputError for no model, one that is given twice, or one for this process alone."""
    if len({model_name(each) for each in models}) != len(models):
        raise InputError(
            "a model is given twice, or two have one name: ask each in a call of its own"
        )
    if not models:
        raise InputError("expected a model")
    alone = [model_name(each) for each in models if not can_be_imported(each)]
    if jobs > 1 and alone:
        raise InputError(
            f"{alone[0]} cannot be imported by another process: expected jobs=1, or a model of "
            "a module"
        )


def _budget(name: str) -> BudgetChoice:
    try:
        return BudgetChoice(name)
    except ValueError:
        raise InputError(f"unknown budget {name!r}; known are {', '.join(BudgetChoice)}") from None
