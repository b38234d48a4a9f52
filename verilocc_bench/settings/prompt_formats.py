"""The prompt formats by name, one record for each: adding a format is adding its record here."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PROMPT_FORMAT = "whole"
"""The format where neither the user nor the model names one."""


@dataclass(frozen=True, slots=True)
class FormatRecord:
    """`module` has the format as FORMAT; `for_any_model` unless models are trained for it alone."""

    module: str
    for_any_model: bool = True


FORMAT_RECORDS = {
    "whole": FormatRecord("verilocc_bench.model.prompts.whole"),
    "window": FormatRecord("verilocc_bench.model.prompts.window"),
    "reading": FormatRecord("verilocc_bench.model.reading.reading_format", for_any_model=False),
}

PROMPT_FORMATS = tuple(name for name, record in FORMAT_RECORDS.items() if record.for_any_model)
"""Those that any language model can be asked in, the widest first."""

AUTO = "auto"
"""In place of a format: the widest that fits all kernels asked."""
