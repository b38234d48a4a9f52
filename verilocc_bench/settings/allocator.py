"""Settings of every allocator; the only ones of built-in allocators, Python and predictions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from verilocc_bench.settings.flags import at_least, flag_of, setting


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
    a language model is asked again about what was rejected, and must say
    something else.
    """

    FINDINGS = "findings"
    REPAIR = "repair"
    RESAMPLE = "resample"


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """How an answer comes about. None leaves the decoding to the model, else it is `free`."""

    FLAG_GROUP: ClassVar[str] = "how allocators are asked"

    decoding: Decoding | None = setting(
        None,
        "--decoding",
        "the allocator's own words; only legal registers, for language models that run here; "
        "or several attempts with the verifier in between (default: what the model says of "
        "itself, else free)",
        read=Decoding,
    )
    verifier_calls: int = setting(
        10,
        "--verifier-calls",
        "attempts at a sample, where guided (default: {})",
        metavar="N",
        read=at_least(int, 1),
    )
    feedback: FeedbackKind = setting(
        FeedbackKind.FINDINGS,
        "--feedback",
        "what a guided allocator is told of earlier attempts: what was wrong; nothing, but "
        "language models are to mend what was rejected; or nothing (default: findings)",
        read=FeedbackKind,
    )

    @property
    def guided(self) -> bool:
        """True if the verifier judges each attempt, and the allocator may try again."""
        return self.decoding is Decoding.GUIDED

    @property
    def on_machine_live_ranges(self) -> bool:
        """True if the allocator works on live ranges as the machine sees them."""
        return False

    @property
    def compiled_answers(self) -> int:
        """How many answers the allocator compiles, to compare their code."""
        return 0

    @property
    def attempts(self) -> int:
        """How many attempts a sample may have."""
        return self.verifier_calls if self.guided else 1

    def for_samples(self, samples: int) -> AllocatorSettings:
        """The settings for a number of samples, with what that decides where nobody said."""
        del samples
        return self

    def described(self) -> dict[str, Any]:
        """The settings as `config.options` of results.json has them, in JSON's values.

        Decoding stands beside the options. The other settings of a guided run
        come last, and only if the run is guided.
        """
        common = [each.name for each in fields(AllocatorSettings)]
        own = [each for each in fields(self) if each.name not in common]
        found = {each.name: getattr(self, each.name) for each in own if flag_of(each).in_results}
        if self.guided:
            found |= {"verifier_calls": self.verifier_calls, "feedback": self.feedback}
        return found
