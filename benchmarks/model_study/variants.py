"""Trainings beside the package's recipes: with less data, or of another size.

Each is a package's recipe with some parts replaced. The variants of one recipe
have the same number of steps, so that they compare with each other. They do not
compare with the model of the recipe itself, which had more steps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from benchmarks.model_study.configurations import REFERENCE, REFERENCE_TEXT, WHOLE
from benchmarks.model_study.models import trained_folder, write_models
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.targets import TARGETS
from verilocc_bench.training import Recipe, find_recipe
from verilocc_bench.training.recipe import ExampleSource, ModelRecipe

STEPS, TEXT_STEPS = 1_000, 600
TEXT_SAVE_STEPS = 150
"""The steps between two validations: they make the curve."""

TEXT_FUNCTIONS = 500
"""The functions of each variant without a smaller number; the few steps read at most half."""

WHOLE_TOKENS, WHOLE_ORDERINGS = 5_120, 3
"""A context for the text of small functions; the cost of attention grows with its square.

Each function also comes with its blocks in other orders, because there are few.
"""

THREADS = 1
"""The threads of each training, so that one training runs on each core."""

HEAD = 32
"""The width of an attention head of both recipes."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The replaced parts of a package's recipe.

    `part`: the share of the recipe's functions and made-up decisions. `unseen`:
    an architecture that is left out. `hidden` and `layers`: another size of the
    model; its feed-forward layers are three times as wide. A lower `save_steps`
    gives a finer curve. `whole_tokens`: functions are read whole, and only those
    with at most this many tokens, the answer included.
    """

    name: str
    words: str
    recipe: str
    steps: int
    part: Fraction
    unseen: str | None = None
    hidden: int | None = None
    layers: int | None = None
    save_steps: int | None = None
    whole_tokens: int | None = None


_SHORTER = Fraction(STEPS, find_recipe(REFERENCE).training.steps)
"""The share of data for fewer steps: each example is still read about once."""

OF_REFERENCE = (
    Variant("all-short", f"in {STEPS:,} steps", REFERENCE, STEPS, _SHORTER),
    *(
        Variant(f"without-{arch}", f"without {arch}", REFERENCE, STEPS, _SHORTER, unseen=arch)
        for arch in sorted(TARGETS)
    ),
    Variant("smaller", "a smaller model", REFERENCE, STEPS, _SHORTER, hidden=64, layers=2),
    Variant("fewer-data", "a quarter of the examples", REFERENCE, STEPS, _SHORTER / 4),
)
"""Variants of the reference model, which the study asks as further models."""


def _text(
    name: str, words: str, *, functions: int = TEXT_FUNCTIONS, hidden: int = 128, layers: int = 5
) -> Variant:
    part = Fraction(functions, find_recipe(REFERENCE_TEXT).sources[0].functions or functions)
    return Variant(
        name,
        words,
        REFERENCE_TEXT,
        TEXT_STEPS,
        part,
        hidden=hidden,
        layers=layers,
        save_steps=TEXT_SAVE_STEPS,
    )


OF_TEXT = (
    _text("text-short", f"in {TEXT_STEPS:,} steps, {TEXT_FUNCTIONS:,} functions"),
    _text("text-width-64", "width 64, 3 layers", hidden=64, layers=3),
    _text("text-width-192", "width 192, 6 layers", hidden=192, layers=6),
    _text("text-functions-32", "32 functions", functions=32),
    _text("text-functions-125", "125 functions", functions=125),
)
"""Variants of the text model, which make a curve and are not asked: validation counts."""

BY_PARAMETERS = ("text-width-64", "text-short", "text-width-192")
BY_FUNCTIONS = ("text-functions-32", "text-functions-125", "text-short")
"""The names of the variants that differ in the number of functions alone."""

OF_WHOLE = Variant(
    f"{WHOLE}short",
    f"functions of at most {WHOLE_TOKENS:,} tokens, as a whole",
    REFERENCE_TEXT,
    TEXT_STEPS,
    Fraction(1),
    save_steps=TEXT_SAVE_STEPS,
    whole_tokens=WHOLE_TOKENS,
)
"""The variant that reads whole functions."""

VARIANTS = {each.name: each for each in (*OF_REFERENCE, *OF_TEXT, OF_WHOLE)}


def unseen_by(name: str) -> str | None:
    """The architecture that a model of the study has not seen, if there is one."""
    return VARIANTS[name].unseen if name in VARIANTS else None


def recipe_of(variant: Variant) -> Recipe:
    """The whole recipe of a variant."""
    recipe = find_recipe(variant.recipe)
    training = replace(
        recipe.training,
        steps=variant.steps,
        save_steps=variant.save_steps or recipe.training.save_steps,
        maximum_tokens=variant.whole_tokens or recipe.training.maximum_tokens,
        threads=THREADS,
    )
    return replace(
        recipe,
        name=variant.name,
        description=f"the recipe `{recipe.name}`, {variant.words}",
        model=_model(recipe.model, variant),
        sources=tuple(_source(source, variant) for source in recipe.sources),
        training=training,
    )


def _source(source: ExampleSource, variant: Variant) -> ExampleSource:
    archs = source.archs
    if variant.unseen is not None:
        archs = tuple(arch for arch in sorted(TARGETS) if arch != variant.unseen)
    functions = None if source.functions is None else round(source.functions * variant.part)
    synthetic = round(source.synthetic * variant.part)
    changed = replace(source, archs=archs, functions=functions, synthetic=synthetic)
    if variant.whole_tokens is None:
        return changed
    read = {"format": "whole", "new_registers": (), "orderings": WHOLE_ORDERINGS}
    return replace(changed, functions=None, **read)


def _model(model: ModelRecipe, variant: Variant) -> ModelRecipe:
    if model.configuration is None:
        return model
    if variant.whole_tokens is not None:
        # Wrong answers may be longer than those that were learnt.
        context = {"max_position_embeddings": 2 * variant.whole_tokens}
        return replace(model, configuration={**model.configuration, **context})
    if variant.hidden is None:
        return model
    heads = variant.hidden // HEAD
    changes = {
        "hidden_size": variant.hidden,
        "intermediate_size": 3 * variant.hidden,
        "num_hidden_layers": variant.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
    }
    return replace(model, configuration={**model.configuration, **changes})


def train_variants(
    dataset: str, output: Path, *, only: Sequence[str] = (), jobs: int = 1
) -> list[Variant]:
    """Trains variants into the study of `output`, and records those that `run` asks.

    An interrupted training goes on; a finished one is left unchanged. `only`
    names the wanted variants, or all if it is empty. Raises InputError for an
    unknown name, and for a folder of another recipe, dataset or version.
    """
    for name in only:
        if name not in VARIANTS:
            raise InputError(f"--only {name}: expected one of {', '.join(VARIANTS)}")
    chosen = [each for each in VARIANTS.values() if not only or each.name in only]
    try:
        from verilocc_bench.training.run import train
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "model", "training") from None
    for number, each in enumerate(chosen, 1):
        print(f"{number} of {len(chosen)}: {each.name}", file=sys.stderr, flush=True)
        train(recipe_of(each), dataset, trained_folder(output, each.name), jobs=jobs)
        write_models(output)
    return chosen
