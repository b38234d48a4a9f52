"""The tokenizers that a recipe may name, and the tokenizer `decisions` itself.

`decisions` knows the words of the prompt formats `state` and `candidates`.
Each is one token: a register name, `idle 5`, `+12`, `lanes 0`. The tokenizer
drops all other text: names of virtual registers and classes, and the system
message. A decision takes 10 to 80 tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from verilocc_bench.targets import TARGETS
from verilocc_bench.training.text_tokenizer import text_tokenizer
from verilocc_bench.training.word_tokenizer import UNITS, WIDEST, word_tokenizer

DIGITS = 24
"""Most binary digits of a feature: a function has fewer than 2 to this power points."""
MOST = {"copies": 16, "grows": 64, "idle": DIGITS, "conflicts": DIGITS, "lives": DIGITS}


def decisions_tokenizer() -> Any:
    """A transformers tokenizer for `state` and `candidates`."""
    features = "|".join([*MOST, "spare"])
    pattern = (
        rf"(?:{features}) \d+|lanes? \d+|-\d+|tied|none|\+\d+|~\d+|\n"
        r"|[A-Za-z_]+\d*(?:_[a-z]+)?(?:/\d+)?|\d+"
    )
    return word_tokenizer(_decision_words(), [(r"%\d+ \S+ ", "")], pattern)


def _decision_words() -> Iterator[str]:
    yield from ("\n", "tied", "none")
    for target in TARGETS.values():
        for file in target.files:
            yield from file.unit_names or (f"{file.name}{n}" for n in range(file.count))
            yield file.name
            yield from (f"{file.name}/{step}" for step in (2, 4, 8, 16))
    yield from ("vcc",)
    yield from (str(number) for number in range(1, WIDEST + 1))
    for feature, most in MOST.items():
        yield from (f"{feature} {number}" for number in range(most))
    yield from (f"spare {number}" for number in range(DIGITS))
    yield from (f"+{number}" for number in range(1, UNITS + 1))
    yield from (f"~{number}" for number in range(DIGITS))
    yield from (f"lane {number}" for number in range(WIDEST))
    yield from (f"lanes {number}" for number in range(WIDEST))
    yield from (f"-{number}" for number in range(WIDEST))


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "decisions": decisions_tokenizer,
    "text": text_tokenizer,
}
"""What makes each tokenizer, by its name in a recipe."""
