"""One answer of a network that keeps notes: its reading, window by window.

Windows are drafted ahead, as the rule would answer them, and taken where the network says the same
(model.notes.drafts). Where it says another word, the reading goes back to that window, which is
drafted again after the network's own words.

A virtual register for which no place was left is read before all others when the text is read
again: in a guided run at the next attempt, and in a checked one at once.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

from verilocc_bench.allocators import (
    Answer,
    FailureKind,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.errors import InputError
from verilocc_bench.model.notes.mentions import refuse_unspeakable
from verilocc_bench.model.notes.notes_ledger import noted_assignment
from verilocc_bench.model.notes.notes_reading import Reading
from verilocc_bench.model.notes.notes_window import NoBlockLeft, without_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verilocc_bench.model.notes.drafts import Draft

MOST_AHEAD = 32
"""The most windows that are drafted before the network has said its words to the first."""


class NotesAttempt:
    """One request: its reading, and how it went.

    `again`: how often a window whose words contradict the notes is asked again, at most; the text
    is read again as often.
    """

    def __init__(self, place: int, request: Request, temperature: float, again: int) -> None:
        self.place = place
        self.seconds = 0.0
        self._request = request
        self._temperature, self._again = temperature, again
        self._left = self._readings_left = again
        self._first = [
            register
            for each in request.feedback
            if (register := without_place(each.message or "")) is not None
        ]
        self._counts = dict.fromkeys(
            ("asks", "prompt_tokens", "completion_tokens", "asked_again", "read_again"), 0
        )
        self._log_probability = 0.0
        self._failure: Exception | None = None
        self._reading: Reading | None = None
        try:
            self._begin()
        except InputError as error:
            self._failure = error

    def _begin(self) -> None:
        digest = hashlib.sha256(f"notes {self._request.seed}".encode()).digest()
        self._draw = random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311
        function = self._request.problem.function
        refuse_unspeakable(function)
        self._reading = Reading(function, self._draw, self._first)
        self._reading.next_window()
        self._known: Sequence[str] = ()
        self._ahead = 1

    @property
    def goes_on(self) -> bool:
        """True if there is a window that is to be answered."""
        reading = self._reading
        return self._failure is None and reading is not None and reading.mark is not None

    @property
    def said(self) -> int:
        """The words that the network has said."""
        return self._counts["completion_tokens"]

    def drafts(self) -> list[Draft]:
        """The windows that follow, drafted."""
        from verilocc_bench.model.notes.drafts import draft_window

        found: list[Draft] = []
        reading, known = self._reading, self._known
        assert reading is not None
        while reading.mark is not None and len(found) < self._ahead:
            draft = draft_window(reading.mark, known, self._draw, self._temperature)
            found.append(draft)
            if draft.error is not None:
                break
            reading.next_window()
            known = ()
        return found

    def take(self, drafts: Sequence[Draft]) -> None:
        """Takes the windows up to the first in which the network says another word."""
        assert self._reading is not None
        for draft in drafts:
            if not draft.agreed:
                self._reading.return_to(draft.mark)
                self._known, self._ahead = draft.own, 1
                return
            self._known = ()
            self._hear(draft)
        self._ahead = min(2 * self._ahead, MOST_AHEAD)

    def _hear(self, draft: Draft) -> None:
        """Counts what was said of a window; asks again, or fails, where that was wrong."""
        self._log_probability += draft.log_probability
        self._counts["asks"] += 1
        self._counts["prompt_tokens"] += draft.read
        self._counts["completion_tokens"] += len(draft.said)
        if isinstance(draft.error, NoBlockLeft) and self._read_again(draft.error.register):
            return
        if draft.error is None:
            self._left = self._again
        elif self._left:
            self._left -= 1
            self._counts["asked_again"] += 1
            assert self._reading is not None
            self._reading.ask_again()
        else:
            self._failure = draft.error

    def _read_again(self, register: int) -> bool:
        """Begins anew with one for which no place is left; False where that cannot help."""
        if not self._readings_left or register in self._first:
            return False
        self._readings_left -= 1
        self._counts["read_again"] += 1
        self._first.append(register)
        self._begin()
        return True

    def response(self) -> Response:
        """The answer, or why there is none."""
        details = {**self._counts, "log_probability": self._log_probability}
        if isinstance(self._failure, InputError):
            message = str(self._failure)
            return Response(None, FailureKind.NO_ANSWER, message, self.seconds, details)
        if self._failure is not None:
            message = f"window {self._counts['asks']}: {self._failure}"
            return Response(None, FailureKind.UNPARSABLE, message, self.seconds, details)
        assert self._reading is not None
        assignment = noted_assignment(self._reading.ledger)
        answer = answer_from_assignment(self._request.problem, assignment)
        return Response(Answer(answer), seconds=self.seconds, details=details)
