"""What a run is: which allocator is asked how, about which functions, how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from verilocc_bench import __version__
from verilocc_bench.allocators import Allocator, PromptIdentity
from verilocc_bench.dataset import BudgetChoice, is_local
from verilocc_bench.dataset.versions import split_version
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.fingerprints import UNKNOWN, code_fingerprint
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding
from verilocc_bench.targets import get_target


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Everything that is asked for and may change a number.

    `model` is a `--model` value, and `settings` the settings of its kind
    (`evaluation.models.settings_kind`). `archs` and `families` None mean all,
    `limit` is the most functions of one architecture and family. `samples` is
    the number of answers to each function, and `ks` are the k of pass@k; 1 is
    always among them. Raises InputError for what cannot be asked together.
    """

    model: str
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)
    dataset: str = "mini"
    revision: str | None = None
    splits: tuple[str, ...] = ("test",)
    track: str = "assign"
    budget: BudgetChoice = BudgetChoice.FULL
    archs: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None
    limit: int | None = None
    samples: int = 1
    ks: tuple[int, ...] = (1,)
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ks", tuple(sorted({1, *self.ks})))
        if self.track == "split" and self.budget is not BudgetChoice.FULL:
            raise InputError("--budget is for the assign track")
        settings = self.settings
        if settings.on_machine_live_ranges and self.budget is not BudgetChoice.FULL:
            raise InputError("--runnable is for --budget full: the code has its own budget")
        if settings.compiled_answers and self.budget is not BudgetChoice.FULL:
            raise InputError("--compiled is for --budget full: the code has its own budget")
        if max(self.ks) > self.samples:
            raise InputError(f"pass@{max(self.ks)} needs --samples {max(self.ks)} or more")
        for arch in self.archs or ():
            get_target(arch)

    def asked_settings(self) -> AllocatorSettings:
        """The settings; several samples of a language model are drawn, unless they say how."""
        return self.settings.for_samples(self.samples)

    @property
    def dataset_name(self) -> str:
        """The dataset without its version, as results name it.

        A folder never looks like an id on the Hub.
        """
        name, _ = split_version(self.dataset)
        if is_local(name) and name.count("/") == 1 and name[0] not in "./":
            return f"./{name}"
        return name

    def to_json(self) -> dict[str, Any]:
        """What `config` of results.json says beside the allocator."""
        return {
            "track": self.track,
            "split": ",".join(self.splits),
            "budget": self.budget.value,
            "arch": self.archs and list(self.archs),
            "family": self.families and list(self.families),
            "limit": self.limit,
            "samples": self.samples,
            "k": list(self.ks),
        }


def allocator_record(allocator: Allocator, prompt: PromptIdentity | None) -> dict[str, Any]:
    """What `config` of results.json says of an allocator; `prompt` names its examples, too."""
    settings = allocator.settings
    return {
        "model": allocator.name,
        "revision": allocator.revision or code_fingerprint(),
        "assistance": allocator.assistance.value,
        "decoding": (settings.decoding or Decoding.FREE).value,
        "options": settings.described(),
        "prompt": None if prompt is None else prompt.to_json(),
    }


def ledger_settings(
    allocator: Allocator, prompt: PromptIdentity | None, seed: int, dataset_hash: str | None
) -> dict[str, Any]:
    """What a sample stands under in the ledger: all that its answer depends on.

    `dataset_hash` is the hash of the rows whose labels the allocator is shown, None
    if it is shown none. A guided answer depends on the verifier's code, too.
    """
    settings = {"version": __version__, **allocator_record(allocator, prompt), "seed": seed}
    if allocator.revision == UNKNOWN:
        settings["run"] = uuid4().hex
    if dataset_hash is not None:
        settings["dataset"] = dataset_hash
    if allocator.settings.guided:
        settings["verifier"] = code_fingerprint()
    return settings
