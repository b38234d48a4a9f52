"""Language models behind OpenAI-compatible servers: vLLM, llama.cpp, Ollama, OpenAI, ….

The package openai talks to the server, with its retries and timeouts. Every ask is one request,
and `concurrency` of them run at once. A server is asked for text alone: no constraints, no forced
tokens, no log probabilities. Redirects are not followed, so that the key goes to the address alone.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from verilocc_bench.errors import InfrastructureError, InputError, MissingExtraError
from verilocc_bench.model.endpoint_words import (
    CONTEXT_WORDINGS,
    KEY_VARIABLES,
    BrokenAnswer,
    ContextExceeded,
    api_key,
    check_address,
    is_this_machine,
    one_line,
    room_told,
    words_of,
)
from verilocc_bench.model.language_model import Ask, Completion, Finish, Message, TokenSampling
from verilocc_bench.settings.language_model import EndpointSettings

CONNECT_SECONDS = 30.0
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 8.0
THINKING_TOKENS = 8192
SEED_BITS = 31
MODELS_SHOWN = 10
MOST_TOKENS = (1 << 31) - 1
"""More than any request has: a larger count is a server's mistake."""

TRANSIENT = {408, 409, 425, 429}
BROKEN_OFF = ("abort", "error")
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"


class EndpointModel:
    """A LanguageModel behind a server, asked by chat or by plain completion.

    Raises InputError for an address that cannot be used, and if no name is given and the
    server has not just one model.
    """

    can_constrain = False
    context: int | None = None
    widest_batch = 1

    def __init__(self, address: str, settings: EndpointSettings) -> None:
        self.address, self._settings = check_address(address), settings
        self._key = api_key()
        self._chat = settings.chat is not False
        self._limit_name = OLD_LIMIT
        self._client: Any = None
        self._opened()  # says at once what is missing
        self.model_name = settings.model_name or self._only_model()

    @property
    def concurrency(self) -> int:
        """How many asks it takes at once."""
        return self._settings.concurrency

    @property
    def revision(self) -> str:
        """The address and the model's name. A server does not identify its weights."""
        return f"{self.address} {self.model_name}"

    @property
    def thinking_tokens(self) -> int:
        """Some where it chats."""
        return THINKING_TOKENS if self._chat else 0

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """A server does not tell."""
        raise NotImplementedError

    def completions(
        self,
        asks: Sequence[Ask],
        sampling: Sequence[TokenSampling],
        tell_tokens: Callable[[int], object] = lambda _: None,
        keep: Callable[[int, Completion], object] = lambda _place, _said: None,
    ) -> Iterator[tuple[int, Completion | InfrastructureError]]:
        """(place, completion or the reason why there is none) of every ask, as soon as it is there.

        Raises InputError if the server refuses a request for good, such as
        for a wrong key: all other requests would fail, too.
        """
        pairs = list(zip(asks, sampling, strict=True))
        for ask, way in pairs:
            if ask.constraint is not None or way.forced or way.alternatives:
                raise InputError(
                    "a model behind HTTP cannot be constrained, takes no forced tokens and "
                    "reports no alternatives; use --decoding free or guided"
                )
        client = self._opened()  # one for all threads

        def work(place: int) -> Completion | InfrastructureError:
            outcome = self._outcome(client, *pairs[place])
            if isinstance(outcome, Completion):
                keep(place, outcome)
            return outcome

        for place, outcome in _in_threads(work, len(pairs), self.concurrency):
            if isinstance(outcome, Completion):
                tell_tokens(outcome.completion_tokens or 0)
            yield place, outcome

    def close(self) -> None:
        """Closes all connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> Any:
        if self._client is None:
            openai = _openai()
            limit = self._settings.time_limit_seconds
            try:
                self._client = openai.OpenAI(
                    base_url=self.address,
                    api_key=self._key or "none",
                    max_retries=self._settings.retries,
                    timeout=openai.Timeout(limit, connect=min(limit, CONNECT_SECONDS), pool=None),
                    http_client=openai.DefaultHttpxClient(
                        follow_redirects=False,
                        # This machine is asked directly, even if the environment names proxies.
                        trust_env=not is_this_machine(self.address),
                    ),
                )
            except (ImportError, ValueError):
                # Their messages may hold a proxy's password.
                raise InputError(
                    "the proxies in the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, "
                    "NO_PROXY) cannot be used; a SOCKS proxy needs the package 'socksio'"
                ) from None
        return self._client

    def _outcome(
        self, client: Any, ask: Ask, sampling: TokenSampling
    ) -> Completion | InfrastructureError:
        started, tries = time.perf_counter(), 0
        room = ask.maximum_tokens + ask.thinking_tokens
        while True:
            try:
                return self._completion(client, ask, sampling, room, started)
            except ContextExceeded as error:
                smaller = ask.maximum_tokens if error.room is None else error.room
                if not 0 < smaller < room:
                    return Completion("", Finish.CONTEXT, 0, 0, message=str(error))
                room = smaller
            except BrokenAnswer as error:
                tries += 1
                if tries > self._settings.retries:
                    return error
                time.sleep(min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (tries - 1)))
            except InfrastructureError as error:
                return error

    def _completion(
        self, client: Any, ask: Ask, sampling: TokenSampling, room: int, started: float
    ) -> Completion:
        body = self._body(ask, sampling, room)
        # Extra, so that the package adds and drops nothing.
        needed = {name: body[name] for name in ("model", "messages", "prompt") if name in body}
        extra = {name: value for name, value in body.items() if name not in needed}
        path = "/completions"
        create = client.completions.with_raw_response.create
        if self._chat:
            path, create = f"/chat{path}", client.chat.completions.with_raw_response.create
        try:
            document = self._send(path, partial(create, **needed, extra_body=extra))
        except InputError as error:
            # OpenAI's newer models know another name alone; other requests may have learnt it.
            if NEW_LIMIT in body or NEW_LIMIT not in str(error):
                raise
            self._limit_name = NEW_LIMIT
            return self._completion(client, ask, sampling, room, started)
        return self._read(document, body, time.perf_counter() - started)

    def _body(self, ask: Ask, sampling: TokenSampling, room: int) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {"model": self.model_name}
        if self._chat:
            body["messages"] = [
                {"role": message.role, "content": message.content} for message in ask.messages
            ]
        else:
            body["prompt"] = "\n\n".join(message.content for message in ask.messages)
        body |= {
            self._limit_name: room,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": server_seed(sampling.seed),
            "n": 1,
            "stream": False,
        }
        if settings.reasoning_effort is not None:
            body["reasoning_effort"] = settings.reasoning_effort
        if settings.chat_template_kwargs is not None:
            body["chat_template_kwargs"] = json.loads(settings.chat_template_kwargs)
        body |= json.loads(settings.extra_body or "{}")
        return body

    def _read(self, document: Any, sent: Mapping[str, Any], seconds: float) -> Completion:
        match document:
            case {
                "choices": [
                    {"message": {"content": str() | None | [*_] as said, **more}} as choice,
                    *_,
                ]
            } if self._chat:
                pass
            case {"choices": [{"message": {"role": _, **more}} as choice, *_]} if (
                self._chat and "content" not in more
            ):
                said = None  # words of another kind alone, such as a call of a tool
            case {"choices": [{"text": str() | None as said, **more} as choice, *_]} if (
                not self._chat
            ):
                pass
            case _:
                complaint = words_of(document)
                if CONTEXT_WORDINGS.search(complaint):
                    raise ContextExceeded(self._clean(complaint), room_told(complaint))
                told = self._clean(complaint) or "holds no text of a choice"
                raise BrokenAnswer(f"{self.address}: the server's answer: {told}")
        reason = choice.get("finish_reason")
        if reason in BROKEN_OFF:
            raise BrokenAnswer(f"{self.address}: the completion was broken off ({reason})")
        usual = reason in (None, "stop", "length")
        usage = document.get("usage")
        thoughts = more.get("reasoning_content") or more.get("reasoning")
        return Completion(
            _text(said),
            Finish.LENGTH if reason == "length" else Finish.STOP,
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
            message=None if usual else f"finish reason {self._clean(str(reason))}",
            reasoning=_text(thoughts),
            sent=sent,
            received=choice,
            seconds=seconds,
        )

    def _send(self, path: str, ask: Callable[..., Any]) -> Any:
        """The JSON of a reply. Raises InfrastructureError, ContextExceeded or InputError."""
        openai, url = _openai(), self.address + path
        try:
            no_key = {} if self._key else {"Authorization": openai.Omit()}
            return json.loads(ask(extra_headers=no_key).text)
        except openai.APITimeoutError:
            limit = self._settings.time_limit_seconds
            raise InfrastructureError(f"{url}: no answer within {limit:g} s") from None
        except openai.APIStatusError as error:
            complaint = words_of(error.body) or error.response.text
            status, phrase = error.status_code, error.response.reason_phrase
            line = f"{url}: the server answers {status} {phrase}"
            raise self._refusal(line, status, complaint) from None
        except openai.APIConnectionError as error:
            words = self._clean(str(error.__cause__ or error))
            raise InfrastructureError(f"{url}: no answer: {words}") from None
        except (ValueError, RecursionError):
            hint = "" if urlsplit(url).path.startswith("/v1/") else self._hint(404, "")
            raise BrokenAnswer(f"{url}: the server's answer is not JSON{hint}") from None

    def _refusal(self, line: str, status: int, complaint: str) -> Exception:
        """What an error of the server means: for the run, or for one request."""
        # By the whole wording, whatever the status: llama.cpp says it with 400 and with 500.
        words = self._clean(complaint)
        room = room_told(complaint)
        unfit = room is not None or CONTEXT_WORDINGS.search(complaint)
        if unfit and status not in {401, 403, 429}:
            return ContextExceeded(words, room)
        line += f": {words}" if words else ""
        # No wait helps against an empty account.
        if (status in TRANSIENT and "insufficient_quota" not in complaint) or status >= 500:
            return InfrastructureError(f"{line} (gave up; --retries {self._settings.retries})")
        return InputError(line + self._hint(status, complaint))

    def _hint(self, status: int, complaint: str) -> str:
        """What most likely helps against a refusal."""
        if 300 <= status < 400:
            return "; redirects are not followed: give the address itself"
        if status == 401:
            return f"; the key is taken from {KEY_VARIABLES[0]}, else from {KEY_VARIABLES[1]}"
        if status not in {404, 405}:
            return ""
        if "model" in complaint.lower():
            return "; is --model-name one of the names that its /models lists?"
        if self.address.endswith("/v1"):
            return "; is this the base address of an OpenAI-compatible server?"
        return f"; the address is the base of the API: try {self.address}/v1"

    def _only_model(self) -> str:
        """The one model that the server lists. Raises InputError if it is not one."""
        try:
            document = self._send("/models", self._opened().models.with_raw_response.list)
        except (InfrastructureError, ContextExceeded) as error:
            raise InputError(f"{error}; give --model-name") from None
        finally:
            self.close()
        entries = document.get("data") if isinstance(document, dict) else None
        listed = [e.get("id") for e in entries or () if isinstance(e, dict)]
        names = [name for name in listed if isinstance(name, str) and name]
        if len(names) == 1:
            return names[0]
        if not names:
            raise InputError(f"{self.address} lists no models; give --model-name")
        shown = ", ".join(self._clean(name) for name in names[:MODELS_SHOWN])
        more = f" and {len(names) - MODELS_SHOWN} more" if len(names) > MODELS_SHOWN else ""
        raise InputError(f"{self.address} has several models: {shown}{more}; give --model-name")

    def _clean(self, text: str) -> str:
        return one_line(text, self._key)


def _openai() -> Any:
    try:
        import openai
    except ImportError:
        raise MissingExtraError("openai", "openai", "a model behind an endpoint") from None
    return openai


def server_seed(seed: int) -> int:
    """A seed that every server takes, from 0 to 2^31 - 1: itself where it fits, else of its hash.

    vLLM takes 64 bits with a sign, SGLang 32 without, llama.cpp and Ollama
    keep 32, of which -1 means any seed at all.
    """
    if 0 <= seed < 1 << SEED_BITS:
        return seed
    digest = hashlib.sha256(str(seed).encode()).digest()
    return int.from_bytes(digest[:4]) >> (32 - SEED_BITS)


def _text(said: Any) -> str:
    """What is said as text: a string, or the texts of a list of parts.

    JSON can say half a surrogate pair, which no file can hold.
    """
    if isinstance(said, list):
        said = "".join(_text(each.get("text")) for each in said if isinstance(each, dict))
    return said.encode("utf-8", "replace").decode("utf-8") if isinstance(said, str) else ""


def _count(usage: Any, name: str) -> int | None:
    """The tokens that a server counts; None if it says nothing, or nothing sensible."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count <= MOST_TOKENS else None


def _in_threads(
    work: Callable[[int], Completion | InfrastructureError], count: int, workers: int
) -> Iterator[tuple[int, Completion | InfrastructureError]]:
    """(number, result) of `work` of 0 to `count` - 1, at most `workers` at once, as they end.

    Python waits for the threads of concurrent.futures when the program ends, so a request
    that hangs would outlive Ctrl-C by its whole time limit. These threads are daemons: they
    end with the program. An exception is raised at once. Work that has not begun by
    then never begins; work under way ends by itself.
    """
    numbers = iter(range(count))
    done: SimpleQueue[tuple[int, Completion | InfrastructureError | BaseException]] = SimpleQueue()

    def serve() -> None:
        for number in numbers:
            try:
                done.put((number, work(number)))
            except BaseException as error:  # noqa: BLE001  raised where the results are awaited
                done.put((number, error))
                return
            if stopped.is_set():
                return

    stopped = Event()
    try:
        for _ in range(min(workers, count)):
            Thread(target=serve, daemon=True).start()
        for _ in range(count):
            number, outcome = done.get()
            if isinstance(outcome, BaseException) and not isinstance(outcome, InfrastructureError):
                raise outcome
            yield number, outcome
    finally:
        stopped.set()
