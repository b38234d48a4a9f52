"""What a prompt tells of the last attempt: a few findings about the registers that it asks for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from verilocc_bench.allocators import Feedback, Request
from verilocc_bench.settings.allocator import FeedbackKind
from verilocc_bench.settings.language_model import LanguageModelSettings

MESSAGE_CHARACTERS = 300
NAME_CHARACTERS = 40


def latest_attempt(request: Request, settings: LanguageModelSettings) -> Feedback | None:
    """The attempt that a prompt tells of: the last, where findings are told at all."""
    if settings.feedback is not FeedbackKind.FINDINGS or not request.feedback:
        return None
    return request.feedback[-1]


def blamed(attempt: Feedback, order: Sequence[int]) -> Iterator[int]:
    """Whom the findings of an attempt blame, of the virtual registers in an order of decisions.

    Of those that a finding names the one that was decided last: the others were
    there for it to see.
    """
    places = {f"%{register}": place for place, register in enumerate(order)}
    for finding in attempt.findings:
        named = [places[name] for name in finding.registers if name in places]
        if named:
            yield order[max(named)]


def assignment_of(attempt: Feedback) -> Mapping[str, str] | None:
    """The assignment of an attempt; None if it gave no answer."""
    return None if attempt.answer is None else attempt.answer.assignment


def feedback_text(
    attempt: Feedback | None, limit: int, registers: Collection[str] | None = None
) -> str:
    """What was wrong with an attempt, in lines; nothing where nothing concerns the registers.

    At most `limit` findings, of these virtual registers (None: of all), and
    where the registers that they name had been put.
    """
    if attempt is None:
        return ""
    assignment = assignment_of(attempt)
    if assignment is None:
        kind = attempt.failure.value if attempt.failure is not None else "no_answer"
        return f"Your last attempt failed, {kind}: {_cut(attempt.message or 'no reason given')}\n"
    findings = [
        finding
        for finding in attempt.findings
        if registers is None or not set(finding.registers).isdisjoint(registers)
    ]
    if not findings:
        return ""
    shown = findings[:limit]
    count = f"{len(findings)} findings" if len(findings) > 1 else "1 finding"
    some = f", {limit} of them here" if len(findings) > limit else ""
    lines = [f"Your last attempt was wrong: {count}{some}."]
    lines += [f"- {finding.kind.value}: {_cut(finding.message)}" for finding in shown]
    named = dict.fromkeys(name for finding in shown for name in finding.registers)
    had = {name: assignment[name][:NAME_CHARACTERS] for name in named if name in assignment}
    if had:
        lines.append(f"It had {json.dumps(had)}")
    return "\n".join([*lines, ""])


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"
