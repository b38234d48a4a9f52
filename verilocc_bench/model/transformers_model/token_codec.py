"""Text to tokens and back, for whatever tokenizer a model comes with.

A constraint's pieces are encoded one by one, never together with what stands
around them: only then does what may be said next not depend on how a piece
was reached. A text may so be cut into other tokens than the tokenizer would
cut the whole of it; models that are trained on constrained answers should be
shown the same cuts. Tokenizers that put a space before a text (SentencePiece)
are outwitted: the piece is encoded behind a letter or sign that is taken away
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Message
from verilocc_bench.model.transformers_model.bounds import limited

ANCHORS = ("a", "\n", ":", '"', "0")
REPLACEMENT = "\ufffd"
TEMPLATE_SECONDS = 10.0
TEMPLATE_BYTES = 1 << 30
"""What a chat template may take for one prompt: milliseconds and some kilobytes are usual."""

CONTEXT_TOKENS = 6
"""How many tokens before a new one are decoded with it."""


class TokenCodec:
    """A tokenizer, and how a conversation becomes a prompt.

    `chat` None takes the chat template where there is one, which is given
    `template_arguments`. Raises InputError
    where it is asked for (True) and there is none.
    """

    def __init__(
        self,
        tokenizer: Any,
        end_tokens: frozenset[int],
        chat: bool | None,
        source: str,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        has_template = bool(getattr(tokenizer, "chat_template", None))
        if chat and not has_template:
            raise InputError("the tokenizer has no chat template", source=source)
        self.tokenizer = tokenizer
        self.end_tokens = end_tokens
        self.chat = has_template if chat is None else chat
        self._source, self._template_arguments = source, template_arguments or {}
        self._unknown: int | None = getattr(tokenizer, "unk_token_id", None)
        self._stem: tuple[tuple[Message, ...], list[int]] = ((), [])
        self._rendered: tuple[Sequence[Message], str] = ((), "")
        self._pieces: dict[str, tuple[int, ...]] = {}

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The tokens before the model's answer; at least one.

        By the chat template, or the contents with an empty line between them,
        begun as the tokenizer begins texts.
        """
        return self._prompt(messages) or [self._first_token()]

    def stem(self, messages: Sequence[Message], prompt: Sequence[int]) -> int:
        """How many tokens of a prompt belong to all messages but the last.

        It depends on the messages alone, not on what is in a batch with them.
        """
        if not messages:
            return 0
        key = (*messages[:-1], Message(messages[-1].role, ""))
        if key != self._stem[0]:
            try:
                self._stem = (key, self._prompt(key))
            except InputError:  # a template may refuse an empty message
                self._stem = (key, [])
        pairs = zip(prompt, self._stem[1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        decoded = self.tokenizer.decode(
            list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert isinstance(decoded, str)
        return decoded

    def piece(self, text: str) -> tuple[int, ...]:
        """The tokens that say a text in the middle of another.

        They decode to it exactly, or up to white space with tokenizers that
        keep none. Raises InputError if the tokenizer cannot say it.
        """
        found = self._pieces.get(text)
        if found is None:
            found = self._pieces[text] = self._find_piece(text)
        return found

    def text(self, messages: Sequence[Message]) -> str:
        """The text whose tokens `prompt` gives."""
        if messages != self._rendered[0]:
            text = (
                self._chat_text(messages)
                if self.chat
                else "\n\n".join(message.content for message in messages)
            )
            self._rendered = (messages, text)
        return self._rendered[1]

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        text = self.text(messages)
        if self.chat:
            return self._encode(text)
        tokens = list(self.tokenizer(text, verbose=False)["input_ids"])
        while tokens and tokens[-1] in self.end_tokens:  # some close every text
            tokens.pop()
        return tokens

    def _find_piece(self, text: str) -> tuple[int, ...]:
        if not text:
            return ()
        plain = self._encode(text)
        for tokens in chain([plain], self._after_anchors(text)):
            if self._says(tokens, text):
                return tuple(tokens)
        if len(text) > 1:
            letters = [token for letter in text for token in self._letter(letter)]
            if letters and self._says(letters, text):
                return tuple(letters)
        if self._unknown not in plain and _solid(self.decode(plain)) == _solid(text):
            return tuple(plain)
        raise InputError(f"the tokenizer cannot say {text[:40]!r}", source=self._source)

    def _after_anchors(self, text: str) -> Iterator[list[int]]:
        for anchor in ANCHORS:
            before, both = self._encode(anchor), self._encode(anchor + text)
            if both[: len(before)] == before:
                yield both[len(before) :]

    def _letter(self, letter: str) -> tuple[int, ...]:
        try:
            return self.piece(letter)
        except InputError:
            return ()  # the whole is compared afterwards

    def _says(self, tokens: list[int], text: str) -> bool:
        if self._unknown is not None and self._unknown in tokens:
            return False
        before = self._encode(ANCHORS[0])
        return self.decode(before + tokens) == self.decode(before) + text

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _first_token(self) -> int:
        for token in (self.tokenizer.bos_token_id, *sorted(self.end_tokens)):
            if token is not None:
                return int(token)
        raise InputError("the prompt has no tokens", source=self._source)

    def _chat_text(self, messages: Sequence[Message]) -> str:
        from jinja2.exceptions import TemplateError

        try:
            return self._apply_template(messages)
        except TemplateError as error:
            try:
                return self._apply_template(_without_system(messages))
            except TemplateError:
                raise InputError(
                    f"its chat template refuses the prompt: {error}", source=self._source
                ) from error

    def _apply_template(self, messages: Sequence[Message]) -> str:
        from jinja2.exceptions import TemplateError

        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            with limited(TEMPLATE_SECONDS, TEMPLATE_BYTES):
                text = self.tokenizer.apply_chat_template(
                    turns,
                    add_generation_prompt=True,
                    tokenize=False,
                    **self._template_arguments,
                )
        except TemplateError:
            raise
        except Exception as error:  # a program of strangers fails in any way
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"its chat template fails: {reason}", source=self._source) from error
        assert isinstance(text, str)
        return text


class TextStream:
    """Decodes tokens as they come, each once, with a few before it.

    `text` is what is certain so far; bytes of a letter that is not complete
    wait.
    """

    def __init__(self, codec: TokenCodec, prompt: Sequence[int]) -> None:
        self._codec = codec
        self._tokens = list(prompt[-CONTEXT_TOKENS:])
        self._start, self._read = 0, len(self._tokens)
        self.text = ""

    def add(self, token: int) -> None:
        """One more token."""
        self._tokens.append(token)
        new = self._new_text()
        if new and not new.endswith(REPLACEMENT):
            self._accept(new)

    def finish(self) -> None:
        """No more tokens: what is still incomplete is decoded as it is."""
        self._accept(self._new_text())

    def _new_text(self) -> str:
        before = self._codec.decode(self._tokens[self._start : self._read])
        return self._codec.decode(self._tokens[self._start :])[len(before) :]

    def _accept(self, new: str) -> None:
        self.text += new
        self._start = max(self._start, self._read - CONTEXT_TOKENS)
        self._read = len(self._tokens)


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """For templates without system turns: put before the first turn of the user."""
    system = [message.content for message in messages if message.role == "system"]
    rest = [message for message in messages if message.role != "system"]
    if not system or not rest:
        return list(messages)
    first = Message(rest[0].role, "\n\n".join([*system, rest[0].content]))
    return [first, *rest[1:]]


def _solid(text: str) -> str:
    return "".join(text.split())
