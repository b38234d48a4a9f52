"""Addresses and keys of OpenAI-compatible servers, and the many wordings of their errors."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from verilocc_bench.errors import InfrastructureError, InputError

KEY_VARIABLES = ("VERILOCC_BENCH_API_KEY", "OPENAI_API_KEY")
LONGEST_COMPLAINT = 300
SHORTEST_SECRET = 8

CONTEXT_WORDINGS = re.compile(
    "|".join(
        (
            "context_length_exceeded",  # OpenAI, its `code`
            "maximum context length",  # OpenAI, vLLM, SGLang
            "exceed_context_size_error",  # llama.cpp, its `type`
            "context size has been exceeded",  # llama.cpp, with status 500
            "exceeds? the available context size",  # llama.cpp, Ollama
            "exceeds? (the )?context (window|length|size)",  # llama-cpp-python, Ollama
            "longer than the model's context length",  # SGLang
            "longer than the maximum model length",  # vLLM
            "cannot be greater than max_model_len",  # vLLM: the room asked for alone is too much
            "exceeds? context limit",  # Anthropic
            r"max_tokens must be at least 1, got -\d",  # vLLM: no room after the prompt
            "inputs` tokens \\+ `max_new_tokens` must be",  # text-generation-inference
            "prompt is too long",
        )
    ),
    re.IGNORECASE,
)

_ROOM = [
    re.compile(wording, re.DOTALL)
    for wording in (
        r"supports at most (?P<limit>\d{1,9}) completion tokens",  # OpenAI
        r"ange of max_tokens (is|should be) \[1, ?(?P<limit>\d{1,9})\]",  # DeepSeek, Alibaba
        r"max_tokens: \d+ > (?P<limit>\d{1,9}), which is the maximum",  # Anthropic
        r"context limit: (?P<prompt>\d{1,9}) \+ \d+ > (?P<limit>\d{1,9})",  # Anthropic
        # OpenAI, DeepSeek, vLLM, SGLang
        r"maximum context length (is|of)\s+(?P<limit>\d{1,9}) tokens.*?"
        r"(?P<prompt>\d{1,9}) (in (the messages|your prompt)|input tokens|tokens from the input)",
    )
]


def room_told(complaint: str) -> int | None:
    """The most tokens that a server would make, by its refusal to make more; None if untold."""
    for wording in _ROOM:
        if match := wording.search(complaint):
            told = match.groupdict()
            return int(told["limit"]) - int(told.get("prompt", 0))
    return None


class ContextExceeded(Exception):
    """The prompt does not fit, or the completion may have fewer tokens than were asked for.

    `room` is the most that the server would make; None if it does not say.
    """

    def __init__(self, words: str, room: int | None = None) -> None:
        super().__init__(words)
        self.room = room


class BrokenAnswer(InfrastructureError):
    """A reply without an error that holds no completion: another may be whole."""


def check_address(address: str) -> str:
    """The address as it is asked, without a slash at its end.

    Raises InputError if it is not an http(s) address of a host, or holds what
    must not stand in results: a user name, a password, a query.
    """
    expected = "expected an address as in http://localhost:8000/v1"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if (
        not usable
        or not address.isascii()
        or not address.isprintable()
        or " " in address
        or "\\" in address
    ):
        raise InputError(f"the address of --model names no http or https host; {expected}")
    if "@" in parts.netloc:
        raise InputError(
            "the address of --model holds a user name or password, and it is written to the "
            f"results; leave it out, and set {KEY_VARIABLES[0]} for a key"
        )
    if parts.query or parts.fragment or "?" in address or "#" in address:
        raise InputError(
            "the address of --model holds a query (?…) or a fragment (#…); give the base of the "
            "API alone, as in http://localhost:8000/v1"
        )
    path = parts.path.rstrip("/")
    for end in ("/chat/completions", "/completions", "/models"):
        if path.endswith(end):
            raise InputError(f"{address}: give the base of the API, without {end}")
    return f"{parts.scheme}://{parts.netloc}{path}"


def api_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """The key that the environment holds. The first variable that is set decides, even if empty.

    Raises InputError, without the key, if it cannot stand in a header.
    """
    name = next((name for name in KEY_VARIABLES if name in environment), None)
    key = environment[name].strip() if name is not None else ""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(f"{name}: a key has printable ASCII characters alone, and no spaces")
    return key or None


def is_this_machine(address: str) -> bool:
    """True if an address names this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def words_of(value: Any) -> str:
    """The words of an error: {"error": {"message"}}, {"error": TEXT}, {"message"}, {"detail"}."""
    match value:
        case str():
            return value
        case {"error": inner} | {"message": {} as inner} if inner:
            return words_of(inner)
        case {"message": str() as message}:
            marks = [str(value[key]) for key in ("type", "code") if value.get(key)]
            return f"{message} ({', '.join(marks)})" if marks else message
        case {"detail": detail}:
            return words_of(detail) or json.dumps(detail)
        case _:
            return ""


def one_line(text: str, key: str | None) -> str:
    """Words of a server as one printable line of bounded length, the key cut out.

    A key of a few characters, such as the `x` that local servers are given, protects
    nothing, and words would lose letters.
    """
    if key is not None and len(key) >= SHORTEST_SECRET:
        text = text.replace(key, "[key]")
    words = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return line if len(line) <= LONGEST_COMPLAINT else f"{line[:LONGEST_COMPLAINT]}…"
