"""What is written about an allocator: everything by which its samples are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.allocators import (
    BUILT_IN,
    Allocator,
    AllocatorOptions,
    Decoding,
    SearchAllocator,
)
from verilocc_bench.evaluate.fingerprints import code_fingerprint
from verilocc_bench.evaluate.models.resolve import is_language_model

__all__ = ["ModelDescription", "describe_model", "used_options"]

_OF_SEARCH = ("objective", "effort")
_OF_PROGRAMS = ("time_limit_seconds", "memory_limit_mib")
_OF_LANGUAGE_MODELS = (
    "prompt_format",
    "few_shot",
    "strategy",
    "temperature",
    "top_p",
    "maximum_tokens",
    "backtracks",
    "chat",
)
_OF_WINDOWS = ("window_registers",)
_OF_LOCAL_MODELS = ("batch_size", "device", "dtype", "model_revision", "trust_remote_code")
_OF_ENDPOINTS = ("model_name",)

_WITHOUT_EFFECT_ON_ANSWERS = ("time_limit_seconds", "concurrency", "retries")
"""Of endpoints, whose failures are none of the model's."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """An allocator as results name it.

    `options` are those that count for its kind. `verifier_calls` is None
    where it is not guided, `prompt` where it is no language model.
    """

    name: str
    revision: str
    assistance: str
    decoding: str
    options: dict[str, Any]
    prompt: dict[str, Any] | None
    verifier_calls: int | None

    def to_json(self) -> dict[str, Any]:
        """As `config` in results.json begins."""
        return {
            "model": self.name,
            "revision": self.revision,
            "assistance": self.assistance,
            "decoding": self.decoding,
            "options": self.options,
            "prompt": self.prompt,
        }

    def ledger_settings(self, seed: int, dataset_hash: str | None) -> dict[str, Any]:
        """What a sample stands under in the ledger.

        `dataset_hash` is there for who is shown labels. A guided run depends
        on the verifier too.
        """
        settings = {"version": __version__, **self.to_json(), "seed": seed}
        if dataset_hash is not None:
            settings["dataset"] = dataset_hash
        if self.verifier_calls is not None:
            settings["verifier"] = code_fingerprint()
        return settings


def describe_model(allocator: Allocator, options: AllocatorOptions) -> ModelDescription:
    """The description of an allocator that was asked for with these options."""
    guided = options.decoding is Decoding.GUIDED
    own = allocator.name in BUILT_IN
    revision = code_fingerprint() if own else str(getattr(allocator, "revision", "unknown"))
    prompt = getattr(allocator, "prompt", None)
    every, decoding = options.to_json(), options.decoding or Decoding.FREE
    if isinstance(prompt, dict):  # which one, if the model was left the choice
        decoding = getattr(allocator, "decoding", decoding)
        every["prompt_format"] = prompt["format"]
        every["strategy"] = getattr(allocator, "strategy", options.strategy)
        every["backtracks"] = getattr(allocator, "backtracks", options.backtracks)
        every["window_registers"] = getattr(allocator, "window_registers", options.window_registers)
    names = _option_names(allocator.name) + (("verifier_calls", "feedback") if guided else ())
    if every["window_registers"] is not None:  # else it is of another format
        names += _OF_WINDOWS
    return ModelDescription(
        name=allocator.name,
        revision=revision,
        assistance=allocator.assistance.value,
        decoding=decoding.value,
        options={name: every[name] for name in names},
        prompt=prompt if isinstance(prompt, dict) else None,
        verifier_calls=options.verifier_calls if guided else None,
    )


def used_options(name: str) -> frozenset[str]:
    """The fields of AllocatorOptions that mean something to the model of a `--model` value."""
    remote = name.startswith(("http://", "https://"))
    more = [*_OF_WINDOWS] if is_language_model(name) else []
    if remote:
        more += _WITHOUT_EFFECT_ON_ANSWERS
    return frozenset((*_option_names(name), *more, "decoding", "verifier_calls", "feedback"))


def _option_names(name: str) -> tuple[str, ...]:
    if isinstance(BUILT_IN.get(name), SearchAllocator):
        return _OF_SEARCH
    if name.startswith("command:"):
        return _OF_PROGRAMS
    if not is_language_model(name):
        return ()
    if name.startswith(("http://", "https://")):
        return _OF_LANGUAGE_MODELS + _OF_ENDPOINTS
    return _OF_LANGUAGE_MODELS + _OF_LOCAL_MODELS
