"""Language models behind OpenAI-compatible HTTP endpoints: vLLM, llama.cpp, Ollama, OpenAI, ….

Every ask is one request, and `concurrency` of them run at once. Completions
come in the order of the asks, not in the order of the server's answers. A server is
asked for text alone: no constraints, no forced tokens, no log probabilities.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.model.http_errors import ContextExceeded, RefusedRequest, TransientFailure
from verilocc_bench.model.http_server import HttpServer, RetryPolicy, api_key, check_address
from verilocc_bench.model.language_model import Ask, Completion, Finish, TokenSampling
from verilocc_bench.settings.language_model import EndpointSettings

Result = TypeVar("Result")
Jobs = SimpleQueue[tuple[int, Future[Result]]]

SEED_BITS = 31
MODELS_SHOWN = 10
MOST_TOKENS = (1 << 31) - 1
"""More than any request has: a larger count is a server's mistake."""

BROKEN_OFF = ("abort", "error")
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"


def load_http_model(address: str, settings: EndpointSettings) -> HttpModel:
    """The model `settings.model_name` of the server at `address`, the base of its API.

    Without a name it is the server's only model. Raises InputError for an
    address that cannot be used, and if there is not just one model.
    """
    _check_settings(settings)
    policy = RetryPolicy(settings.retries, settings.time_limit_seconds)
    server = HttpServer(
        check_address(address), api_key(), settings.time_limit_seconds, settings.concurrency, policy
    )
    name = settings.model_name or only_model_name(server)
    return HttpModel(server, name, settings.chat is not False, settings.concurrency)


def _check_settings(settings: EndpointSettings) -> None:
    if settings.concurrency < 1:
        raise InputError(f"{settings.concurrency} requests at once: expected 1 or more")
    if settings.retries < 0:
        raise InputError(f"{settings.retries} retries: expected 0 or more")
    if not (math.isfinite(settings.time_limit_seconds) and settings.time_limit_seconds > 0):
        raise InputError(
            f"a time limit of {settings.time_limit_seconds} s: expected more than 0 s for a request"
        )


def only_model_name(server: HttpServer) -> str:
    """The one model that the server lists. Raises InputError if it is not one."""
    try:
        names = server.ask("GET", "/models", None, _listed_names)
    except (InfrastructureError, ContextExceeded) as error:
        raise InputError(f"{error}; give --model-name") from None
    finally:
        server.close()
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{server.address} lists no models; give --model-name")
    shown = ", ".join(server.clean(name) for name in names[:MODELS_SHOWN])
    more = f" and {len(names) - MODELS_SHOWN} more" if len(names) > MODELS_SHOWN else ""
    raise InputError(f"{server.address} has several models: {shown}{more}; give --model-name")


def _listed_names(document: Any) -> list[str]:
    match document:
        case {"data": [*entries]}:
            names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
            return [name for name in names if isinstance(name, str) and name]
        case _:
            raise TransientFailure("the server's answer is not a list of models")


def server_seed(seed: int) -> int:
    """A seed that every server takes, from 0 to 2^31 - 1: itself where it fits, else of its hash.

    vLLM takes 64 bits with a sign, SGLang 32 without, llama.cpp and Ollama
    keep 32, of which -1 means any seed at all.
    """
    if 0 <= seed < 1 << SEED_BITS:
        return seed
    digest = hashlib.sha256(str(seed).encode()).digest()
    return int.from_bytes(digest[:4]) >> (32 - SEED_BITS)


@dataclass(slots=True)
class HttpModel:
    """A LanguageModel behind `server`, asked by `chat` or by plain completion."""

    server: HttpServer
    model_name: str
    chat: bool = True
    concurrency: int = 1
    _limit_name: str = field(default=OLD_LIMIT, init=False, repr=False)

    @property
    def revision(self) -> str:
        """The address and the model's name. A server does not identify its weights."""
        return f"{self.server.address} {self.model_name}"

    @property
    def can_constrain(self) -> bool:
        """False."""
        return False

    def complete(self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]) -> list[Completion]:
        """A completion for every ask, in their order; raises the first InfrastructureError."""
        completions: list[Completion] = []
        for outcome in self.complete_each(asks, sampling):
            if isinstance(outcome, InfrastructureError):
                raise outcome
            completions.append(outcome)
        return completions

    def complete_each(
        self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]
    ) -> list[Completion | InfrastructureError]:
        """For every ask, in their order, its completion or the reason why it has none.

        Raises InputError if the server refuses a request for good, such as
        for a wrong key: all other requests would fail, too.
        """
        pairs = list(zip(asks, sampling, strict=True))
        for ask, way in pairs:
            if ask.constraint is not None:
                raise InputError(
                    "a model behind HTTP cannot be constrained; use --decoding free or guided"
                )
            if way.forced or way.alternatives:
                raise InputError(
                    "a model behind HTTP takes no forced tokens and reports no alternatives"
                )
        return _in_threads(lambda index: self._outcome(*pairs[index]), len(pairs), self.concurrency)

    def close(self) -> None:
        """Closes all connections; a later request opens new ones."""
        self.server.close()

    def _outcome(self, ask: Ask, sampling: TokenSampling) -> Completion | InfrastructureError:
        try:
            return self._completion(ask, sampling)
        except InfrastructureError as error:
            return error

    def _completion(self, ask: Ask, sampling: TokenSampling) -> Completion:
        limit_name = self._limit_name
        try:
            return self._request(ask, sampling, limit_name)
        except ContextExceeded as error:
            return Completion("", Finish.CONTEXT, 0, 0, message=str(error))
        except RefusedRequest as error:
            if limit_name == NEW_LIMIT or NEW_LIMIT not in error.complaint:
                raise
        # OpenAI's newer models know the limit by another name alone.
        self._limit_name = NEW_LIMIT
        return self._completion(ask, sampling)

    def _request(self, ask: Ask, sampling: TokenSampling, limit_name: str) -> Completion:
        path = "/chat/completions" if self.chat else "/completions"
        body = self._body(ask, sampling, limit_name)
        return self.server.ask("POST", path, body, self._read)

    def _body(self, ask: Ask, sampling: TokenSampling, limit_name: str) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model_name}
        if self.chat:
            body["messages"] = [
                {"role": message.role, "content": message.content} for message in ask.messages
            ]
        else:
            body["prompt"] = "\n\n".join(message.content for message in ask.messages)
        return body | {
            limit_name: ask.maximum_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": server_seed(sampling.seed),
            "n": 1,
            "stream": False,
        }

    def _read(self, document: Any) -> Completion:
        match document:
            case {"choices": [{"message": {"content": str() | None as said}} as choice, *_]} if (
                self.chat
            ):
                pass
            case {"choices": [{"text": str() | None as said} as choice, *_]} if not self.chat:
                pass
            case {"error": error}:
                raise TransientFailure(f"the server answers: {self.server.clean(str(error))}")
            case _:
                raise TransientFailure("the server's answer holds no text of a choice")
        # JSON can say half a surrogate pair, which no file can hold.
        text = (said or "").encode("utf-8", "replace").decode("utf-8")
        reason = choice.get("finish_reason")
        if reason in BROKEN_OFF:
            raise TransientFailure(f"the server broke the completion off ({reason})")
        finish = Finish.LENGTH if reason == "length" else Finish.STOP
        usage = document.get("usage")
        return Completion(
            text,
            finish,
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
            message=self._unusual(reason),
        )

    def _unusual(self, reason: Any) -> str | None:
        if reason in (None, "stop", "length"):
            return None
        return f"finish reason {self.server.clean(str(reason))}"


def _count(usage: Any, name: str) -> int:
    """The tokens that a server counts; 0 if it says nothing, or nothing sensible."""
    match usage.get(name) if isinstance(usage, dict) else None:
        case bool():
            return 0
        case int() as count if 0 <= count <= MOST_TOKENS:
            return count
        case _:
            return 0


def _in_threads(work: Callable[[int], Result], count: int, workers: int) -> list[Result]:
    """`work` of 0 to `count` - 1, at most `workers` at once; the results in order.

    Python waits for the threads of concurrent.futures when the program ends, so a request
    that hangs would outlive Ctrl-C by its whole time limit. These threads are daemons: they
    end with the program. The first exception is raised at once. Work that has not begun by
    then never begins; work under way ends by itself.
    """
    futures: list[Future[Result]] = [Future() for _ in range(count)]
    jobs: Jobs[Result] = SimpleQueue()
    for job in enumerate(futures):
        jobs.put(job)
    stopped = Event()
    try:
        for _ in range(min(workers, count)):
            Thread(target=_serve, args=(work, jobs, stopped), daemon=True).start()
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        stopped.set()
    for future in futures:
        if future.done():
            future.result()
    return [future.result() for future in futures]


def _serve(work: Callable[[int], Result], jobs: Jobs[Result], stopped: Event) -> None:
    while not stopped.is_set():
        try:
            index, future = jobs.get_nowait()
        except Empty:
            return
        try:
            future.set_result(work(index))
        except BaseException as error:  # noqa: BLE001  raised where the results are awaited
            future.set_exception(error)
