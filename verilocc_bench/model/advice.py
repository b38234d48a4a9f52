"""What a model's config.json says of how it is best asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.settings.language_model import SamplingStrategy

CONFIGURATION_KEY = "verilocc_bench"


@dataclass(frozen=True, slots=True)
class Advice:
    """How a model is asked if the settings leave it open; None if it does not say.

    `prompt_format` is the format that it was trained on. `sampling` is for a
    single answer that is not guided, and `window_registers` for `window`: the
    most new virtual registers in a prompt.
    """

    prompt_format: str | None = None
    sampling: SamplingStrategy | None = None
    window_registers: int | None = None

    @classmethod
    def from_json(cls, told: object, source: str) -> Advice:
        """The advice under CONFIGURATION_KEY of a model's config.json, None for none at all.

        Raises InputError for anything but an object with the fields above; other
        keys are ignored.
        """
        place = f"config.json: {CONFIGURATION_KEY}"
        if told is None:
            return cls()
        if not isinstance(told, Mapping):
            raise InputError(f"{place}: expected an object", source=source)
        prompt_format, sampling, width = (told.get(field.name) for field in fields(cls))
        if prompt_format is not None and not isinstance(prompt_format, str):
            raise InputError(f"{place}: prompt_format: expected a name", source=source)
        if width is not None and (type(width) is not int or width < 1):
            message = f"{place}: window_registers: expected a number from 1"
            raise InputError(message, source=source)
        try:
            strategy = None if sampling is None else SamplingStrategy(sampling)
        except ValueError:
            expected = ", ".join(SamplingStrategy)
            raise InputError(f"{place}: sampling: expected {expected}", source=source) from None
        return cls(prompt_format, strategy, width)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in told.items() if value is not None}
