"""Recipes: files that hold everything that decides the weights of a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.targets import TARGETS
from verilocc_bench.training.auxiliary import FORMATS, QUESTIONS
from verilocc_bench.training.recipe_files import find_recipe_file, read_document
from verilocc_bench.training.teacher import Policy
from verilocc_bench.training.tokenizers import TOKENIZERS
from verilocc_bench.views import parse_label

AUXILIARY_EVERY = 4

LEAST = {
    "functions": 1,
    "every": 1,
    "renamings": 0,
    "orderings": 0,
    "auxiliary_every": 1,
    "synthetic": 0,
}

LATER: Mapping[str, Any] = {
    "orderings": 0,
    "auxiliary": [],
    "auxiliary_every": AUXILIARY_EVERY,
    "synthetic": 0,
    "new_registers": [],
}
"""Keys of a source that were added later, with their defaults in JSON.

`Recipe.as_json` leaves them out where they have these values, so that a run
without them has the same JSON as before.
"""

RETIRED = ("evaluation",)
"""Keys of a recipe that earlier versions wrote. They decide nothing: they are read and ignored."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """Low-rank adaptation (LoRA) of a pretrained model, merged into its weights at the end."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1:
            raise InputError("rank and alpha must be at least 1")
        if not 0 <= self.dropout < 1:
            raise InputError("dropout must be from 0 to below 1")


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """The model to train: a new one by `configuration`, or a `pretrained` one.

    `configuration`: `model_type` and the arguments of that configuration of
    transformers. `tokenizer`: a name in `training.tokenizers`; a new model
    needs it, a pretrained model has its own. `pretrained`: a folder or a Hub
    id. `lora`: trains only a low-rank change of the pretrained model.
    """

    configuration: Mapping[str, Any] | None = None
    tokenizer: str | None = None
    pretrained: str | None = None
    revision: str | None = None
    lora: LowRank | None = None

    def __post_init__(self) -> None:
        if (self.configuration is None) == (self.pretrained is None):
            raise InputError("model: expected either 'configuration' or 'pretrained'")
        if self.configuration is not None and "model_type" not in self.configuration:
            raise InputError("model: configuration: 'model_type' is missing")
        if self.configuration is not None and self.tokenizer is None:
            raise InputError("model: a new model needs a 'tokenizer'")
        if self.tokenizer is not None and self.tokenizer not in TOKENIZERS:
            known = ", ".join(TOKENIZERS)
            raise InputError(f"model: unknown tokenizer {self.tokenizer!r}; known: {known}")
        if self.pretrained is not None and self.tokenizer is not None:
            raise InputError("model: a 'pretrained' model has its own 'tokenizer': leave it out")
        if self.pretrained is None and self.revision is not None:
            raise InputError("model: 'revision' is of a 'pretrained' model, and there is none")
        if self.lora is not None and self.pretrained is None:
            raise InputError("model: 'lora' changes a 'pretrained' model, and there is none")


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """Where examples come from: a label, policies, or made-up decisions.

    `format`: the prompt format. `archs` and `families`: the functions to use;
    empty for all. `functions`: the most functions to use, spread evenly over
    architectures and families; None for all. `every`: keeps about one decision
    in this many, in formats that ask for one register at a time.

    `label`: learns the answers that `views.parse_label` describes.
    - `renamings`: how many more times each function is shown, each time with
      its physical registers renamed (`training.renaming`).
    - `orderings` (`whole` and `window`): how many more times each function is
      shown, each time with its blocks in another order (`training.ordering`).
      Each order is renamed as often as `renamings` says.
    - `auxiliary` (`whole` and `window`): questions about the prompt
      (`training.auxiliary`), each asked about one prompt in `auxiliary_every`,
      once in each order.
    - `new_registers` (`window`): for each version of a function one of these
      numbers is drawn, and the function is cut into windows with at most that
      many new virtual registers. Short windows are easier, and teach what long
      ones are made of. The model is asked with the first of these numbers.

    `policies` (`state` and `candidates`): learns the best run of several
    policies on each function (`training.teacher`).
    - `shifted`: the share of prompts in which all register numbers move by one
      distance (`training.shifting`).

    `synthetic` (`state`): learns this many made-up decisions
    (`training.synthetic`), with the register files of `archs`.
    """

    format: str
    label: str | None = None
    policies: tuple[Policy, ...] = ()
    functions: int | None = None
    every: int = 1
    archs: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    renamings: int = 0
    shifted: float = 0.0
    orderings: int = 0
    auxiliary: tuple[str, ...] = ()
    auxiliary_every: int = AUXILIARY_EVERY
    synthetic: int = 0
    new_registers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        prompt_format = get_prompt_format(self.format)
        given = (self.label is not None, bool(self.policies), self.synthetic != 0)
        if sum(given) != 1:
            message = f"source {self.format!r}: expected one of 'label', 'policies', 'synthetic'"
            raise InputError(message)
        if self.label is not None:
            parse_label(self.label)
        elif self.synthetic:
            self._check_synthetic()
        elif prompt_format.decisions is None:
            raise InputError(f"source {self.format!r}: policies are for 'state' and 'candidates'")
        for arch in self.archs:
            if arch not in TARGETS:
                known = ", ".join(TARGETS)
                raise InputError(f"source {self.format!r}: unknown arch {arch!r}; known: {known}")
        self._check_augmentation()
        self._check_auxiliary()
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"source {self.format!r}: {name} must be at least {least}")

    def _check_synthetic(self) -> None:
        if self.format != "state":
            raise InputError(f"source {self.format!r}: synthetic decisions are for 'state'")
        for each in dataclasses.fields(self):
            other = each.name in ("functions", "every", "families", "shifted")
            if other and getattr(self, each.name) != each.default:
                message = f"source {self.format!r}: {each.name} means nothing to 'synthetic'"
                raise InputError(message)

    def _check_augmentation(self) -> None:
        if not 0 <= self.shifted <= 1:
            raise InputError(f"source {self.format!r}: shifted must be from 0 to 1")
        if self.renamings and self.label is None:
            raise InputError(f"source {self.format!r}: renamings are for labels, not for policies")
        if self.shifted and self.label is not None:
            raise InputError(f"source {self.format!r}: shifted is for policies, not for labels")
        has_windows = get_prompt_format(self.format).has_windows
        if self.new_registers and (not has_windows or self.label is None):
            raise InputError(f"source {self.format!r}: new_registers are for labels in 'window'")
        if min(self.new_registers, default=1) < 1:
            raise InputError(f"source {self.format!r}: new_registers must be at least 1")
        if self.orderings and self.format not in FORMATS:
            raise InputError(f"source {self.format!r}: orderings are for {' and '.join(FORMATS)}")

    def _check_auxiliary(self) -> None:
        for task in self.auxiliary:
            if task not in QUESTIONS:
                known = ", ".join(QUESTIONS)
                raise InputError(f"source {self.format!r}: auxiliary {task!r}; known: {known}")
        if len(set(self.auxiliary)) != len(self.auxiliary):
            raise InputError(f"source {self.format!r}: auxiliary names one twice")
        if self.auxiliary and self.format not in FORMATS:
            raise InputError(f"source {self.format!r}: auxiliary is for {' and '.join(FORMATS)}")
        if not self.auxiliary and self.auxiliary_every != AUXILIARY_EVERY:
            raise InputError(f"source {self.format!r}: auxiliary_every is of 'auxiliary'")


@dataclass(frozen=True, slots=True)
class Optimization:
    """The optimization: AdamW, a cosine schedule after a linear warm-up.

    `batch_tokens`: the tokens of a step, with padding. `maximum_tokens`: longer
    examples are left out. `threads`: torch's threads on a CPU; their number
    decides the last digits of sums, so it belongs to the recipe.
    """

    steps: int
    batch_tokens: int = 8192
    maximum_tokens: int = 1024
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
        counts = ("steps", "batch_tokens", "maximum_tokens", "save_steps", "log_steps", "threads")
        for name in counts:
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
    """A recipe. With the dataset and the versions of the libraries it decides the weights."""

    name: str
    description: str
    model: ModelRecipe
    sources: tuple[ExampleSource, ...]
    training: Optimization
    seed: int = 0
    split: str = "train"
    validation_split: str | None = "validation"
    validation_examples: int = 2_000

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources: expected at least one")
        if self.validation_examples < 0:
            raise InputError("validation_examples must not be negative")

    def as_json(self) -> dict[str, Any]:
        """The recipe as a JSON object."""
        told: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        told["sources"] = [
            {key: v for key, v in source.items() if key not in LATER or v != LATER[key]}
            for source in told["sources"]
        ]
        return told


def find_recipe(name: str, *, base: str | None = None) -> Recipe:
    """The recipe of this name in the package, or else of this file.

    `base`, a folder or a Hub id, replaces the recipe's own model; its low-rank
    adaptation stays. Raises InputError if there is no such recipe.
    """
    recipe = read_recipe(find_recipe_file(name))
    if base is None:
        return recipe
    return dataclasses.replace(recipe, model=ModelRecipe(pretrained=base, lora=recipe.model.lora))


def read_recipe(path: Path) -> Recipe:
    """Reads a recipe from a YAML file. An InputError names the file and the place."""
    return read_document(Recipe, path, retired=RETIRED)
