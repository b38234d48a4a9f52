"""How an allocator is to be asked: everything that may change its answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

__all__ = [
    "WINDOW_REGISTERS",
    "AllocatorOptions",
    "Decoding",
    "FeedbackKind",
    "Objective",
    "SamplingStrategy",
]

WINDOW_REGISTERS = 16
"""About so many new virtual registers at most a prompt of `window` is, where nobody says."""


class Decoding(StrEnum):
    """How an answer comes about; results of different modes are never in one table.

    `free`: the allocator's own words, judged at the end. `constrained`: a
    language model can say only registers that are legal given its choices so
    far. `guided`: the verifier judges each attempt, and the allocator may
    try again, up to a number of verifier calls (the loop of VeriLocc).
    """

    FREE = "free"
    CONSTRAINED = "constrained"
    GUIDED = "guided"


class FeedbackKind(StrEnum):
    """What a guided allocator is told between attempts.

    `findings`: what was wrong. `resample`: nothing. `repair`: nothing in words;
    what was rejected is asked about again, and of a language model that decides
    on one virtual register after the other it is left out.
    """

    FINDINGS = "findings"
    REPAIR = "repair"
    RESAMPLE = "resample"


class SamplingStrategy(StrEnum):
    """How a language model picks tokens.

    `greedy` takes the likeliest. `random` draws with temperature and top-p.
    `priority` gives unique samples in order of the model's confidence
    (Grubisic et al., "Priority Sampling of Large Language Models for
    Compilers", EuroMLSys 2024).
    """

    GREEDY = "greedy"
    RANDOM = "random"
    PRIORITY = "priority"


class Objective(StrEnum):
    """What searching allocators are after.

    `registers`: as few as can be found, then the least combined cost.
    `bank-conflicts`, `copies`, `combined`: the occupancy that so few registers
    give, and with all the registers that it leaves the fewest bank conflicts,
    the fewest copies, or the least of both together.
    """

    REGISTERS = "registers"
    BANK_CONFLICTS = "bank-conflicts"
    COPIES = "copies"
    COMBINED = "combined"


@dataclass(frozen=True, slots=True)
class AllocatorOptions:
    """What `--model` is asked with. None leaves the choice to the allocator.

    The first group concerns every allocator, the second those that search,
    the third programs (`command:`), the fourth language models, the last those
    behind HTTP.
    Times are in seconds, sizes in MiB, lengths in tokens.
    """

    decoding: Decoding | None = None
    verifier_calls: int = 10
    feedback: FeedbackKind = FeedbackKind.FINDINGS

    objective: Objective = Objective.REGISTERS
    effort: int = 1

    time_limit_seconds: float = 600.0
    memory_limit_mib: int | None = None

    prompt_format: str | None = None
    few_shot: int = 0
    strategy: SamplingStrategy | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    maximum_tokens: int | None = None
    backtracks: int | None = None
    window_registers: int | None = None
    batch_size: int = 16
    device: str | None = None
    dtype: str = "auto"
    model_revision: str | None = None
    trust_remote_code: bool = False
    chat: bool | None = None

    model_name: str | None = None
    concurrency: int = 8
    retries: int = 5

    def to_json(self) -> dict[str, Any]:
        """All options by name, as JSON can say them."""
        return asdict(self)
