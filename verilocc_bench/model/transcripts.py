"""What a language model was asked and what it said, kept as soon as it is said.

A file of JSON lines, each compressed alone (a gzip member), so that a process that is killed
spoils the line under way and no other; `zcat` reads it. A line is one completion, under the
fingerprint of its configuration, the id of its function, and the seed of its request, which
differs for each sample and each attempt. A run that goes on takes from here what an
unfinished sample has been told already.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from verilocc_bench.allocators import Request
from verilocc_bench.files import AppendedFile
from verilocc_bench.model.language_model import Ask, Completion, Finish, TokenSampling

TRANSCRIPTS = "transcripts.jsonl.gz"

_GZIP = 31
"""The window of zlib that means a gzip member."""

_MAGIC, _PIECE_BYTES = b"\x1f\x8b\x08", 1 << 16
_MOST_BYTES = 1 << 28
"""A line of more is passed over: a small file could ask for all memory."""

_LONG = ("prompt", "received")
"""What a run that goes on does not need."""

_EXCHANGE = (
    "prompt",
    "completion",
    "reasoning",
    "finish",
    "tokens_in",
    "tokens_out",
    "seconds",
    "message",
)
_KEYS = {"configuration", "id", "sample", "request_seed", "number", "asked", *_EXCHANGE}


class Transcripts:
    """The transcripts of one configuration in a file. Only one run may write to it at a time.

    The further processes of a run, which are `beside` its own, add to the file and know nothing
    of what it has.
    """

    def __init__(
        self, path: Path, configuration: str, *, resume: bool = True, beside: bool = False
    ) -> None:
        self.path, self.configuration = path, configuration
        self._known: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
        self._file = AppendedFile(path)
        if beside:
            return
        whole = 0
        for end, line in _members(path.read_bytes() if resume else b""):
            whole = end
            if line and line["configuration"] == configuration:
                key = str(line["id"]), int(line["request_seed"])
                told = {name: value for name, value in line.items() if name not in _LONG}
                self._known.setdefault(key, {})[line["number"]] = told
        os.truncate(path, whole)  # what a killed process left of its last line

    def recall(self, request: Request, number: int, ask: Ask) -> Completion | None:
        """What was said to a request's ask of that number, if it was the same ask."""
        line = self._known.get((request.problem.id, request.seed), {}).get(number)
        if line is None or line["asked"] != _digest(ask):
            return None
        total = line["log_probability"]
        return Completion(
            line["completion"],
            Finish(line["finish"]),
            line["tokens_in"],
            line["tokens_out"],
            log_probabilities=() if total is None else (total,),
            message=line["message"],
            reasoning=line["reasoning"],
        )

    def keep(
        self, request: Request, number: int, ask: Ask, how: TokenSampling, said: Completion
    ) -> None:
        """Writes a completion."""
        prompt = said.sent
        if prompt is None:
            prompt = [{"role": each.role, "content": each.content} for each in ask.messages]
        line = {
            "configuration": self.configuration,
            "id": request.problem.id,
            "sample": request.sample,
            "request_seed": request.seed,
            "number": number,
            "asked": _digest(ask),
            "prompt": prompt,
            "completion": said.text,
            "reasoning": said.reasoning,
            "received": said.received,
            "message": said.message,
            "finish": said.finish.value,
            "tokens_in": said.prompt_tokens,
            "tokens_out": said.completion_tokens,
            "log_probability": sum(said.log_probabilities) if said.log_probabilities else None,
            "seconds": round(said.seconds, 3),
            "seed": how.seed,
        }
        packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._file.append(packer.compress(json.dumps(line).encode() + b"\n") + packer.flush())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@runtime_checkable
class KeepsTranscripts(Protocol):
    """An allocator that keeps what its model is asked and says, until it is closed."""

    transcripts: Transcripts | None


def tokens_told(count: int | None) -> str:
    """How many tokens there are, in words; None where the server did not count them."""
    return "tokens that the server did not count" if count is None else f"{count:,} tokens"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt as it was sent, a text or a server's request, and the completion to it."""

    prompt: Any
    completion: str
    reasoning: str
    finish: str
    tokens_in: int | None
    tokens_out: int | None
    seconds: float
    message: str | None

    @property
    def prompt_text(self) -> str:
        """The prompt for people: a text as it is, the turns of a request under their roles."""
        if isinstance(self.prompt, str):
            return self.prompt
        turns = self.prompt
        if isinstance(turns, Mapping):
            turns = turns.get("messages") or [{"role": "prompt", "content": turns.get("prompt")}]
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in turns)


def read_transcripts(folder: Path) -> dict[tuple[str, str, int], list[Exchange]]:
    """The exchanges of each sample in a run's folder, in their order.

    By configuration, id and index of the sample. Nothing if the run kept none.
    """
    path = folder / TRANSCRIPTS
    if not path.is_file():
        return {}
    found: dict[tuple[str, str, int], dict[tuple[int, int], Exchange]] = {}
    for line in filter(None, (line for _, line in _members(path.read_bytes()))):
        key = line["configuration"], line["id"], line["sample"]
        exchange = Exchange(**{name: line[name] for name in _EXCHANGE})
        # The same ask again, as after a failure of the server: the later counts.
        found.setdefault(key, {}).pop((line["request_seed"], line["number"]), None)
        found[key][line["request_seed"], line["number"]] = exchange
    return {key: list(exchanges.values()) for key, exchanges in found.items()}


def _digest(ask: Ask) -> str:
    said = repr([(message.role, message.content) for message in ask.messages])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _members(data: bytes) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(end, line) of each whole member, None for other lines; what is damaged is passed over."""
    view, start = memoryview(data), 0
    while (start := data.find(_MAGIC, start)) >= 0:
        unpacker, text, place = zlib.decompressobj(_GZIP), bytearray(), start
        start += 1
        with suppress(zlib.error, ValueError, RecursionError):
            while not unpacker.eof and place < len(data) and len(text) < _MOST_BYTES:
                piece = view[place : place + _PIECE_BYTES]
                text += unpacker.decompress(piece, _MOST_BYTES - len(text))
                place += _PIECE_BYTES
            line = json.loads(text) if unpacker.eof else None
            if isinstance(line, dict):
                start = min(place, len(data)) - len(unpacker.unused_data)
                yield start, line if line.keys() >= _KEYS else None
