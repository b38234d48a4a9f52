"""Models in every form that the interface takes: names, functions, objects."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeAlias

from verilocc_bench.allocators import Allocator
from verilocc_bench.api.object_revision import revision_of_object
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import resolve_model, settings_kind
from verilocc_bench.evaluation.models.python_code import allocator_from_object
from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.flags import flag_of
from verilocc_bench.settings.language_model import SamplingStrategy

AnyModel: TypeAlias = str | Callable[..., Any] | object
"""A value of `--model`, a function `(problem, seed) -> answer`, or an object with `allocate`."""


def model_name(model: AnyModel) -> str:
    """What results call a model. A function that can be imported is named so that it can."""
    if isinstance(model, str):
        return model
    while isinstance(model, functools.partial):
        model = model.func
    named: Any = model if hasattr(model, "__qualname__") else type(model)
    return f"python:{named.__module__}:{named.__qualname__}"


def allocator_of(model: AnyModel, settings: AllocatorSettings, jobs: int = 1) -> Allocator:
    """The allocator of a model, with settings of its kind.

    A function or class of a module counts as `python:MODULE:ATTRIBUTE`, so that its
    revision is a hash of the module's sources. Another model's is a hash of its code and
    of what it holds. Raises InputError for an unknown
    model, and for one that cannot be asked.
    """
    name = model_name(model)
    if can_be_imported(model):
        return resolve_model(name, settings, jobs)
    return allocator_from_object(name, model, revision_of_object(model), settings)


def can_be_imported(model: AnyModel) -> bool:
    """True if another process finds the model by its name alone."""
    if isinstance(model, str):
        return True
    found: Any = sys.modules.get(getattr(model, "__module__", ""))
    if found is None or found.__name__ == "__main__":
        return False
    for part in getattr(model, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is model


def settings_of(model: AnyModel, settings: Mapping[str, Any]) -> AllocatorSettings:
    """The settings of a model's kind with these values.

    A text stands for what its flag reads from it. Raises InputError for a setting that
    the kind does not have, and for a value that its flag refuses.
    """
    name = model_name(model)
    kind = settings_kind(name) if can_be_imported(model) else AllocatorSettings
    known = {each.name: flag_of(each) for each in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in known:
            raise InputError(f"{name!r} has no setting {key!r}; it has {', '.join(sorted(known))}")
        values[key] = value
        read = known[key].arguments.get("type")
        if read is not None and isinstance(value, str | int | float):
            try:
                values[key] = read(str(value))
            except Exception as error:  # noqa: BLE001  argparse's own error, and ValueError
                told = str(error)
                if isinstance(read, type(StrEnum)):
                    told = f"expected {', '.join(read)}"
                raise InputError(f"setting {key}={value!r}: {told}") from None
    if values.keys() & {"temperature", "top_p"} and "strategy" in known:
        values.setdefault("strategy", SamplingStrategy.RANDOM)
    return kind(**values)
