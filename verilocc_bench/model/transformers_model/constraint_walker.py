"""Where a completion stands in its constraint, token by token.

A piece is a list of ways to say it, each a sequence of tokens: a literal has
one, a choice one for each option. What may be said next are the next tokens
of the ways that agree with what was said of the piece.
"""

from __future__ import annotations

from itertools import pairwise

from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Choice, Constraint, DeadEnd, Literal, Segment
from verilocc_bench.model.transformers_model.token_codec import TokenCodec

Way = tuple[tuple[int, ...], str, str]
"""The tokens, what the constraint is told, and the text that was said."""


class ConstraintWalker:
    """Follows one constraint; `text` is what its finished pieces say.

    `finished` once the constraint has ended, or nothing may be said any
    more: then `dead_end` says where. Raises InputError for pieces that the
    tokenizer cannot say or tell apart.
    """

    def __init__(self, constraint: Constraint, codec: TokenCodec) -> None:
        self._pieces = constraint()
        self._codec = codec
        self._ways: list[Way] = []
        self._place = 0
        self.text = ""
        self.finished = False
        self.dead_end: str | None = None
        self._next_piece(None)

    def legal(self) -> tuple[int, ...]:
        """The tokens that may come next, in order; none once it is finished."""
        if self.finished:
            return ()
        return tuple(sorted({tokens[self._place] for tokens, _, _ in self._ways}))

    def take(self, token: int) -> bool:
        """The model said a token. False, and nothing happens, where it is not legal."""
        ways = [way for way in self._ways if way[0][self._place] == token]
        if self.finished or not ways:
            return False
        self._ways, self._place = ways, self._place + 1
        if len(ways[0][0]) == self._place:  # no other can agree: none is another's beginning
            _, told, said = ways[0]
            self.text += said
            self._next_piece(told)
        return True

    def close(self) -> None:
        """Ends the constraint's generator."""
        self._pieces.close()

    def _next_piece(self, told: str | None) -> None:
        """Goes on to the next piece that takes a token."""
        while True:
            try:
                piece = next(self._pieces) if told is None else self._pieces.send(told)
            except StopIteration:
                self.finished = True
                return
            except DeadEnd as error:
                self.finished, self.dead_end = True, str(error)
                return
            self._ways, self._place = self._ways_of(piece), 0
            if self._ways[0][0]:
                return
            _, told, said = self._ways[0]
            self.text += said

    def _ways_of(self, piece: Segment) -> list[Way]:
        piece_of = self._codec.piece
        if isinstance(piece, Literal):
            return [(piece_of(piece.text), piece.text, piece.text)]
        assert isinstance(piece, Choice)
        end = piece_of(piece.end)
        ways = [(piece_of(o) + end, o, o + piece.end) for o in piece.options]
        ordered = sorted(ways)
        for (tokens, option, _), (following, other, _) in pairwise(ordered):
            if following[: len(tokens)] == tokens:
                raise InputError(
                    f"the tokenizer does not tell the options {option!r} and {other!r} apart"
                )
        return ways
