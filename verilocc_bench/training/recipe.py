"""Recipes: files that hold everything that decides the weights of a model."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.targets import TARGETS
from verilocc_bench.training.recipe_files import read_document
from verilocc_bench.views import parse_label

LEAST = {"functions": 1, "renamings": 0, "orderings": 0}


@dataclass(frozen=True, slots=True)
class LowRank:
    """Low-rank adaptation (LoRA) by peft, merged into the weights at the end.

    `targets`: names of layers; empty for all linear ones.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1:
            raise InputError("rank and alpha must be at least 1")
        if not 0 <= self.dropout < 1:
            raise InputError("dropout must be from 0 to below 1")


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """The model to train further: a folder, a Hub id, or a file of GGUF.

    `lora`: trains only a low-rank change of its weights. `own_words`: names of
    registers become tokens (`training.own_words`). `attention`: the
    implementation, as transformers names it.
    """

    pretrained: str
    revision: str | None = None
    lora: LowRank | None = None
    own_words: bool = False
    attention: str = "sdpa"


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """Where examples come from: the functions of a dataset, and whose answers are learnt.

    `format`: the prompt format. `archs` and `families`: the functions to use;
    empty for all. `functions`: the most functions to use, spread evenly over
    architectures and families; None for all. `label`: whose answers
    (`views.parse_label`).
    - `renamings`: how many more times each function is shown, each time with
      its physical registers renamed (`training.renaming`).
    - `orderings`: how many more times each function is
      shown, each time with its blocks in another order (`training.ordering`).
      Each order is renamed as often as `renamings` says.
    - `new_registers` (`window`): for each version of a function one of these
      numbers is drawn, and the function is cut into windows with at most that
      many new virtual registers. Short windows are easier, and teach what long
      ones are made of. The model is asked with the first of these numbers.
    """

    format: str
    label: str
    functions: int | None = None
    archs: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    renamings: int = 0
    orderings: int = 0
    new_registers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        get_prompt_format(self.format)
        parse_label(self.label)
        _check_architectures(f"source {self.format!r}", self.archs)
        has_windows = get_prompt_format(self.format).has_windows
        if self.new_registers and not has_windows:
            raise InputError(f"source {self.format!r}: new_registers are for formats with windows")
        if min(self.new_registers, default=1) < 1:
            raise InputError(f"source {self.format!r}: new_registers must be at least 1")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"source {self.format!r}: {name} must be at least {least}")


def _check_architectures(what: str, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in TARGETS:
            raise InputError(f"{what}: unknown arch {name!r}; known: {', '.join(TARGETS)}")


@dataclass(frozen=True, slots=True)
class Reward:
    """Learning from the verdict (GRPO): what is asked, and how many answers are compared.

    The reward is `api.environment.reward_function`'s. `generations`: answers to
    each prompt. `maximum_answer_tokens`: longer answers are cut. `beta`: the
    weight of the distance to the model as it was.
    """

    format: str = "whole"
    functions: int | None = None
    archs: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    generations: int = 8
    maximum_answer_tokens: int = 512
    temperature: float = 1.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if get_prompt_format(self.format).has_windows:
            raise InputError("reward: format: expected one whose answer is whole, such as 'whole'")
        if self.generations < 2 or self.maximum_answer_tokens < 1:
            raise InputError("reward: expected at least 2 generations and 1 maximum_answer_tokens")
        if self.functions is not None and self.functions < 1:
            raise InputError("reward: functions must be at least 1")
        if self.temperature <= 0 or self.beta < 0:
            raise InputError("reward: expected a temperature above 0, and beta from 0")
        _check_architectures("reward", self.archs)


@dataclass(frozen=True, slots=True)
class Optimization:
    """The optimization: AdamW, a cosine schedule after a linear warm-up.

    A step takes `batch` rows of each device `accumulation` times. `packing`
    fills rows of `maximum_tokens` with several examples, which do not see each
    other. `maximum_tokens`: longer examples are left out. `checkpointing`
    computes activations twice and keeps few. `threads`: torch's threads on a
    CPU; their number decides the last digits of sums, so it belongs to the recipe.
    """

    steps: int
    batch: int = 1
    accumulation: int = 8
    maximum_tokens: int = 1024
    packing: bool = True
    checkpointing: bool = False
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    weight_decay: float = 0.01
    gradient_norm: float = 1.0
    adam_beta2: float = 0.95
    save_steps: int = 500
    log_steps: int = 50
    threads: int = 2
    precision: str = "float32"

    def __post_init__(self) -> None:
        counts = ("steps", "batch", "accumulation", "maximum_tokens", "save_steps", "log_steps")
        for name in (*counts, "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"training: {name} must be at least 1")
        for name in ("learning_rate", "warmup_steps", "weight_decay", "gradient_norm"):
            if getattr(self, name) < 0:
                raise InputError(f"training: {name} must not be negative")
        if not 0 <= self.adam_beta2 < 1:
            raise InputError("training: adam_beta2 must be from 0 to below 1")
        if self.precision not in ("float32", "bfloat16"):
            raise InputError(f"training: unknown precision {self.precision!r}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe. With the dataset and the versions of the libraries it decides the weights.

    It learns from one of three: `sources` (answers), `shards` (a folder of
    tokens, `training.examples`) or `reward` (its own answers' verdicts).
    """

    name: str
    description: str
    model: ModelRecipe
    training: Optimization
    sources: tuple[ExampleSource, ...] = ()
    shards: str | None = None
    reward: Reward | None = None
    seed: int = 0
    split: str = "train"
    validation_split: str | None = "validation"
    validation_examples: int = 2_000

    def __post_init__(self) -> None:
        if (bool(self.sources), self.shards is not None, self.reward is not None).count(True) != 1:
            raise InputError("expected one of sources (at least one), shards and reward")
        if self.shards is not None and self.model.own_words:
            raise InputError("own_words are not for shards, which hold tokens already")
        if not 0 <= self.seed < 2**32:
            raise InputError("seed: expected a whole number from 0 to below 2^32")
        if self.validation_examples < 0:
            raise InputError("validation_examples must not be negative")

    @property
    def asked(self) -> tuple[str | None, int | None]:
        """The prompt format of the model, and the width of its windows."""
        if not self.sources:
            return (None if self.reward is None else self.reward.format), None
        source = self.sources[0]
        return source.format, source.new_registers[0] if source.new_registers else None

    def as_json(self) -> dict[str, Any]:
        """The recipe as a JSON object."""
        found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return found


def read_recipe(path: Path, *, base: str | None = None) -> Recipe:
    """Reads a recipe from a YAML file. An InputError names the file and the place.

    `base` replaces the recipe's own model; how it is adapted stays.
    """
    recipe = read_document(Recipe, path)
    if base is None:
        return recipe
    model = dataclasses.replace(recipe.model, pretrained=base, revision=None)
    return dataclasses.replace(recipe, model=model)
