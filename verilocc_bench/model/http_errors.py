"""What the answer of an OpenAI-compatible server means: for the run, for one request, for a retry.

Servers word one thing in many ways; this is where the wordings are kept. What
is worth another try raises TransientFailure; a prompt that does not fit raises
ContextExceeded; everything else that is not a success raises RefusedRequest, an
InputError, since the same request would be refused again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from verilocc_bench.errors import InputError

LONGEST_COMPLAINT = 300
SHORTEST_SECRET = 8
TRANSIENT = {408, 409, 425, 429}
WRONG_PLACE = {404, 405}

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
            r"max_tokens must be at least 1, got -\d",  # vLLM: no room after the prompt
            "inputs` tokens \\+ `max_new_tokens` must be",  # text-generation-inference
            "prompt is too long",
        )
    ),
    re.IGNORECASE,
)


class TransientFailure(Exception):
    """A failure that another try may not meet.

    `retry_after_seconds` is how long the server asks to be left alone, where
    it says so.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ContextExceeded(Exception):
    """The prompt, with the room for its completion, does not fit the model's context."""


class RefusedRequest(InputError):
    """The server will not do what it is asked; `complaint` is its own wording, not to be shown."""

    def __init__(self, message: str, complaint: str) -> None:
        super().__init__(message)
        self.complaint = complaint


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The reply to one request to `url`, with any status."""

    url: str
    status: int
    body: bytes
    retry_after: str | None = None
    location: str | None = None


def read_json(reply: HttpReply, clean: Callable[[str], str], now: Callable[[], float]) -> Any:
    """The JSON of a successful reply; raises as the head of this module says.

    `clean` makes the server's words fit to be shown; `now` is the time in
    seconds since 1970, which dates in Retry-After are measured from.
    """
    complaint = complaint_of(reply.body)
    # By the whole wording, whatever the status: llama.cpp says it with 400 and
    # with 500, some proxies with 200.
    if reply.status not in {401, 403, 429} and CONTEXT_WORDINGS.search(complaint):
        raise ContextExceeded(clean(complaint))
    line = _status_line(reply, clean(complaint))
    # No wait helps against an empty account.
    is_transient = reply.status in TRANSIENT and "insufficient_quota" not in complaint
    if is_transient or reply.status >= 500:
        raise TransientFailure(line, retry_after_seconds(reply.retry_after, now))
    if reply.status != HTTPStatus.OK:
        raise RefusedRequest(f"{reply.url}: {line}{_hint(reply, clean)}", complaint)
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        hint = "" if urlsplit(reply.url).path.startswith("/v1/") else _wrong_place_hint(reply)
        raise TransientFailure(f"the server's answer is not JSON{hint}") from None


def complaint_of(body: bytes) -> str:
    """The server's words in the body of an error; empty if the body is not an error."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
    if not isinstance(document, dict):
        return ""
    if "choices" in document:
        return ""
    # OpenAI and llama.cpp: {"error": {"message"}}; Ollama: {"error": TEXT};
    # older vLLM: {"message"}; FastAPI: {"detail"}.
    for key in ("error", "message", "detail"):
        if document.get(key):
            return _words(document[key])
    return ""


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    match value:
        case {"message": str() as message}:
            marks = [str(value[key]) for key in ("type", "code") if value.get(key)]
            return f"{message} ({', '.join(marks)})" if marks else message
        case _:
            return json.dumps(value)


def one_line(text: str, secret: str | None) -> str:
    """Text of a server as one printable line of bounded length, the secret cut out.

    A secret of a few characters, such as the `x` that local servers are given,
    is not cut out: it protects nothing, and words would lose letters.
    """
    if secret is not None and len(secret) >= SHORTEST_SECRET:
        text = text.replace(secret, "[key]")
    words = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return line if len(line) <= LONGEST_COMPLAINT else f"{line[:LONGEST_COMPLAINT]}…"


def retry_after_seconds(header: str | None, now: Callable[[], float]) -> float | None:
    """How long Retry-After asks to wait: seconds or a date (RFC 9110, 10.2.3); None for neither."""
    if header is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header.strip(), re.ASCII):
        return float(header)
    try:
        date = parsedate_to_datetime(header)
        moment = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - now())


def _status_line(reply: HttpReply, complaint: str) -> str:
    try:
        name = f"{reply.status} {HTTPStatus(reply.status).phrase}"
    except ValueError:
        name = str(reply.status)
    return f"the server answers {name}" + (f": {complaint}" if complaint else "")


def _hint(reply: HttpReply, clean: Callable[[str], str]) -> str:
    """What most likely helps against a refusal."""
    if 300 <= reply.status < 400:
        place = f" to {clean(reply.location)}" if reply.location else ""
        return f"; redirects{place} are not followed: give the address itself"
    if reply.status == HTTPStatus.UNAUTHORIZED:
        return "; the key is taken from VERILOCC_BENCH_API_KEY, else from OPENAI_API_KEY"
    if reply.status in WRONG_PLACE:
        return _wrong_place_hint(reply)
    return ""


def _wrong_place_hint(reply: HttpReply) -> str:
    if b"model" in reply.body.lower():
        return "; is --model-name one of the names that its /models lists?"
    base = re.sub(r"/(chat/completions|completions|models)$", "", reply.url)
    if base.endswith("/v1"):
        return "; is this the base address of an OpenAI-compatible server?"
    return f"; the address is the base of the API: try {base}/v1"
