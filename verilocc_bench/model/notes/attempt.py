"""One answer of a network that keeps notes: its reading, window by window.

Windows are drafted ahead, as the teacher would answer them, and taken where the network says the
same (model.notes.drafts). Where it says another word, the reading goes back to that window, and
that is answered word by word. The more often that happens, the more windows follow word by word.

A virtual register for which no place was left is read before all others when the text is read
again: in a guided run at the next attempt, and in a checked one at once.
"""

from __future__ import annotations

import hashlib
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verilocc_bench.allocators import (
    Answer,
    FailureKind,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.errors import InputError
from verilocc_bench.model.notes.conversation import conversation_of, has_mentions
from verilocc_bench.model.notes.text_notes_format import AnyWindow, open_text
from verilocc_bench.model.prompts.notes.ledger import Contradiction, noted_assignment
from verilocc_bench.model.prompts.notes.reading import refuse_ties
from verilocc_bench.model.prompts.notes.window import WrongWord
from verilocc_bench.model.prompts.text_notes.window import NoBlockLeft, without_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verilocc_bench.model.notes.decoding import WindowAnswer
    from verilocc_bench.model.notes.drafts import Draft

MOST_AHEAD = 32
"""So many windows are drafted at most before the network has said its words to the first."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the network said of a window; `again`: the window was asked again."""

    words: tuple[str, ...]
    again: bool


class NotesAttempt:
    """One request: its reading, the window that is to be answered, and how it went.

    `again`: a window whose words contradict the notes is asked again at most so many times, and
    the text is read again as often.
    """

    def __init__(
        self,
        place: int,
        request: Request,
        temperature: float,
        again: int,
    ) -> None:
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
        self._counts = {"asks": 0, "prompt_tokens": 0, "completion_tokens": 0, "asked_again": 0}
        self._counts["read_again"] = 0
        self._log_probability = 0.0
        self._heard: list[_Heard] = []
        self._ahead = self._pause = 1
        self._word_by_word = 0
        self._begin()

    def _begin(self) -> None:
        digest = hashlib.sha256(f"notes {self._request.seed}".encode()).digest()
        self._draw = random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311
        self._failure: Exception | None = None
        self._window: AnyWindow | None = None
        function = self._request.problem.function
        self._ledger, self._reading = open_text(function, self._draw, self._first)
        try:
            refuse_ties(function)
        except InputError as error:
            self._failure = error
        else:
            self._go_on(again=False)

    @property
    def goes_on(self) -> bool:
        """Whether there is a window that is to be answered."""
        return self._window is not None

    @property
    def said(self) -> int:
        """The words that the network has said."""
        return self._counts["completion_tokens"]

    def drafts(self) -> list[Draft]:
        """The windows that follow, drafted; none where the next is to be answered word by word."""
        from verilocc_bench.model.notes.drafts import draft_window

        found: list[Draft] = []
        if self._word_by_word:
            return found
        while self._window is not None and len(found) < self._ahead:
            draft = draft_window(self._window, self._draw, self._temperature)
            found.append(draft)
            if draft.error is not None or not draft.whole:
                break
            self._go_on(again=False)
        return found

    def take_drafts(self, drafts: Sequence[Draft]) -> None:
        """Takes the windows up to the first in which the network says another word."""
        for draft in drafts:
            if not draft.agreed:
                self._go_back()
                return
            self._log_probability += draft.log_probability
            self._hear(draft.read, draft.said, draft.error)
        self._ahead = min(2 * self._ahead, MOST_AHEAD)
        self._pause = 1

    def ask(self) -> WindowAnswer:
        """The window, to be answered word by word."""
        from verilocc_bench.model.notes.decoding import WindowAnswer

        assert self._window is not None
        return WindowAnswer(self._window, self._draw, self._temperature)

    def take(self, answer: WindowAnswer) -> None:
        """What came of the window; goes on to the next, or ends."""
        self._word_by_word -= 1
        self._log_probability += answer.log_probability
        self._hear(answer.read, [word for word, said in answer.words if said], answer.error)
        if answer.error is None:
            self._go_on(again=False)

    def _hear(self, read: int, words: Sequence[str], error: Exception | None) -> None:
        """Writes down what was said of a window; asks again, or fails, where that was wrong."""
        self._counts["asks"] += 1
        self._counts["prompt_tokens"] += read
        self._counts["completion_tokens"] += len(words)
        if isinstance(error, NoBlockLeft) and self._read_again(error.register):
            return
        again = error is not None and self._left > 0
        self._heard.append(_Heard(tuple(words), again))
        if error is None:
            self._left = self._again
        elif again:
            self._left -= 1
            self._counts["asked_again"] += 1
            self._go_on(again=True)
        else:
            self._failure, self._window = error, None

    def _read_again(self, register: int) -> bool:
        """Begins anew with one for which no place is left; False where that is no use."""
        if not self._readings_left or register in self._first:
            return False
        self._readings_left -= 1
        self._counts["read_again"] += 1
        self._first.append(register)
        self._heard.clear()
        self._begin()
        return True

    def _go_on(self, *, again: bool) -> None:
        try:
            self._window = self._reading.send(True) if again else next(self._reading)
        except StopIteration:
            self._window = None
        except (Contradiction, InputError) as error:
            self._failure, self._window = error, None

    def _go_back(self) -> None:
        """Reads again up to the first window that is not taken; its names are the same."""
        self._begin()
        for heard in self._heard:
            self._say_again(heard.words)
            self._go_on(again=heard.again)
        self._word_by_word = self._pause
        self._pause = min(2 * self._pause, MOST_AHEAD)
        self._ahead = 1

    def _say_again(self, words: Sequence[str]) -> None:
        assert self._window is not None
        if not has_mentions(self._window):
            return
        talk = conversation_of(self._window)
        with suppress(StopIteration, Contradiction, WrongWord):
            next(talk)
            for word in words:
                if self._temperature > 0:
                    self._draw.random()
                talk.send(word)

    def response(self) -> Response:
        """The answer, or why there is none."""
        details = {**self._counts, "log_probability": self._log_probability}
        if isinstance(self._failure, InputError):
            message = str(self._failure)
            return Response(None, FailureKind.NO_ANSWER, message, self.seconds, details)
        if self._failure is not None:
            message = f"window {self._counts['asks']}: {self._failure}"
            return Response(None, FailureKind.UNPARSABLE, message, self.seconds, details)
        answer = answer_from_assignment(self._request.problem, noted_assignment(self._ledger))
        return Response(Answer(answer), seconds=self.seconds, details=details)
