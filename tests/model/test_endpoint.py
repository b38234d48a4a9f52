from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.model.endpoint import EndpointModel, server_seed
from verilocc_bench.model.endpoint_words import api_key, check_address, is_this_machine
from verilocc_bench.model.language_model import (
    Ask,
    Completion,
    Finish,
    Literal,
    Message,
    TokenSampling,
)
from verilocc_bench.settings.language_model import EndpointSettings

from .http_server import Answers, Asked, FakeServer, Say, chat_reply

OPTIONS = EndpointSettings(model_name="toy", time_limit_seconds=20, concurrency=4, retries=3)
KEY = "sk-very-secret-0123456789"
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

Serve = Callable[[Answers], FakeServer]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VERILOCC_BENCH_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # Whoever asks this proxy has not asked the server of the test.
    monkeypatch.setenv("HTTP_PROXY", "http://user:proxy-password@127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(FakeServer(answer).running())


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("openai._base_client.time.sleep", found.append)
    return found


@pytest.fixture
def load(waits: list[float]) -> Iterator[Callable[..., EndpointModel]]:
    with ExitStack() as stack:

        def loaded(address: str, **changes: Any) -> EndpointModel:
            model = EndpointModel(address, replace(OPTIONS, **changes))
            stack.callback(model.close)
            return model

        yield loaded


Load = Callable[..., EndpointModel]


def ask(text: str = "hello", **changes: Any) -> Ask:
    return replace(
        Ask((Message("system", "be brief"), Message("user", text)), maximum_tokens=99), **changes
    )


def complete(model: EndpointModel, *asks: Ask, seed: int = 5) -> list[Completion]:
    how = [TokenSampling(seed + i, 0.5, 0.9) for i in range(len(asks))]
    found = dict(model.completions(asks, how))
    for outcome in found.values():
        if isinstance(outcome, InfrastructureError):
            raise outcome
    return [found[place] for place in range(len(asks))]


def in_turn(*replies: Say) -> Answers:
    """Each reply once, the last for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def error(status: int, message: str = "no", **more: Any) -> Say:
    return Say(status, {"error": {"message": message} | more})


def test_a_chat_completion(serve: Serve, load: Load) -> None:
    server = serve(in_turn(chat_reply("%0 is v4")))
    model = load(server.address + "/")
    (said,) = complete(model, ask("grüße → 你好"))
    assert said == Completion("%0 is v4", Finish.STOP, 11, 7, reasoning="hm")
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.body == {
        "model": "toy",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "grüße → 你好"},
        ],
        "max_tokens": 99,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 5,
        "n": 1,
        "stream": False,
    }
    assert "authorization" not in asked.headers
    assert model.revision == f"{server.address} toy"
    assert model.can_constrain is False


def test_what_users_add_to_a_request(serve: Serve, load: Load) -> None:
    server = serve(in_turn(chat_reply("v4")))
    more = {"extra_body": '{"top_k": 5, "seed": 7}', "reasoning_effort": "low"}
    more["chat_template_kwargs"] = '{"enable_thinking": false}'
    (said,) = complete(load(server.address, **more), ask(thinking_tokens=1000))
    (asked,) = server.asked
    assert (asked.body["top_k"], asked.body["seed"], asked.body["max_tokens"]) == (5, 7, 1099)
    assert asked.body["reasoning_effort"] == "low"
    assert asked.body["chat_template_kwargs"] == {"enable_thinking": False}
    assert said.sent == asked.body
    assert said.received["message"]["content"] == "v4"


def test_without_room_to_think_it_is_asked_without(serve: Serve, load: Load) -> None:
    def answer(asked: Asked) -> Say:
        long = asked.body["max_tokens"] > 99
        return error(400, "maximum context length is 4096") if long else chat_reply("v4")

    server = serve(answer)
    (said,) = complete(load(server.address), ask(thinking_tokens=8192))
    assert (said.text, [asked.body["max_tokens"] for asked in server.asked]) == ("v4", [8291, 99])


def test_a_plain_completion(serve: Serve, load: Load) -> None:
    choice = {"text": "v4", "finish_reason": "length"}
    server = serve(in_turn(Say(body={"choices": [choice]})))
    (said,) = complete(load(server.address, chat=False), ask())
    assert said == Completion("v4", Finish.LENGTH, None, None)
    (asked,) = server.asked
    assert asked.path == "/v1/completions"
    assert asked.body["prompt"] == "be brief\n\nhello"
    assert "messages" not in asked.body
    assert "stop" not in asked.body


PARTS = [{"type": "thinking", "thinking": [{}]}, {"type": "text", "text": "v4"}]


@pytest.mark.parametrize(
    ("said", "finish", "expected"),
    [
        (PARTS, "stop", ("v4", Finish.STOP, None)),
        ("context_length_exceeded", "stop", ("context_length_exceeded", Finish.STOP, None)),
        ("a", "stop", ("a", Finish.STOP, None)),
        ("a", "length", ("a", Finish.LENGTH, None)),
        ("a", None, ("a", Finish.STOP, None)),
        (None, "stop", ("", Finish.STOP, None)),
        (None, "length", ("", Finish.LENGTH, None)),
        ("", "stop", ("", Finish.STOP, None)),
        ("größer ☃ \ud83d", "stop", ("größer ☃ ?", Finish.STOP, None)),
        ("a", "content_filter", ("a", Finish.STOP, "finish reason content_filter")),
        ("a", ["x"], ("a", Finish.STOP, "finish reason ['x']")),
    ],
)
def test_what_is_said(
    serve: Serve, load: Load, said: Any, finish: Any, expected: tuple[Any, ...]
) -> None:
    (completion,) = complete(load(serve(in_turn(chat_reply(said, finish))).address), ask())
    assert (completion.text, completion.finish, completion.message) == expected
    assert completion.tokens == completion.log_probabilities == ()


NO_COUNTS = ("9", -1, 10**30, 2**31, True, 1e9)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        *((none, (None, None)) for none in (None, [], {})),
        *(({"prompt_tokens": n, "completion_tokens": n}, (None, None)) for n in NO_COUNTS),
        ({"prompt_tokens": 2**31 - 1, "completion_tokens": 3}, (2**31 - 1, 3)),
    ],
)
def test_what_is_counted(serve: Serve, load: Load, usage: Any, expected: tuple[Any, Any]) -> None:
    (said,) = complete(load(serve(in_turn(chat_reply("a", usage=usage))).address), ask())
    assert (said.prompt_tokens, said.completion_tokens) == expected


def test_requests_run_at_once_and_come_back_in_order(serve: Serve, load: Load) -> None:
    together = threading.Barrier(4, timeout=20)
    turns = [threading.Event() for _ in range(5)]
    turns[4].set()

    def answer(asked: Asked) -> Say:
        number = int(asked.body["messages"][1]["content"])
        together.wait()  # breaks unless four are here at once
        turns[number % 4 + 1].wait(20)  # the last is answered first
        turns[number % 4].set()
        return chat_reply(f"{number} {asked.body['seed']}")

    server = serve(answer)
    model = load(server.address, concurrency=4)
    said = complete(model, *[ask(str(i)) for i in range(4)])
    assert [one.text for one in said] == [f"{i} {5 + i}" for i in range(4)]
    assert server.connections == 4


def test_no_more_requests_at_once_than_asked_and_connections_are_kept(
    serve: Serve, load: Load
) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def answer(asked: Asked) -> Say:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        with lock:
            now -= 1
        return chat_reply(asked.body["messages"][1]["content"])

    server = serve(answer)
    model = load(server.address, concurrency=2)
    asks = [ask(str(i)) for i in range(20)]
    assert [one.text for one in complete(model, *asks)] == [str(i) for i in range(20)]
    complete(model, *asks)
    assert len(server.asked) == 40
    assert most <= 2
    assert server.connections <= 2
    assert complete(model) == []


BROKEN: list[Say] = [
    *(error(status) for status in (408, 409, 429, 500, 502, 503, 504, 599)),
    Say(body=b"<html>soon</html>"),
    Say(body=b""),
    Say(body=b"\xff\xfe\x00"),
    Say(body=b"[" * 100_000),
    Say(body=b"[]"),
    Say(body={}),
    Say(body={"choices": []}),
    Say(body={"choices": None}),
    Say(body={"choices": ["x"]}),
    Say(body={"choices": [{"message": {"content": 3}}]}),
    Say(body={"choices": [{"message": {}}]}),
    Say(body={"choices": [{"text": "v4"}]}),
    Say(body={"error": {"message": "overloaded"}}),
    Say(body={"choices": [{}]}, length=100),  # ends before its length
    chat_reply("half", "abort"),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_may_pass_is_tried_again_and_what_does_not_is_infrastructure(
    serve: Serve, load: Load, waits: list[float], broken: Say
) -> None:
    server = serve(in_turn(broken, broken, chat_reply("v4")))
    (said,) = complete(load(server.address), ask())
    assert said.text == "v4"
    assert len(waits) == 2
    assert len({json.dumps(asked.body) for asked in server.asked}) == 1
    server = serve(in_turn(broken))
    with pytest.raises(InfrastructureError) as failure:
        complete(load(server.address), ask())
    assert len(waits) == 2 + 3
    assert len(server.asked) == 4
    assert str(failure.value).startswith(server.address)
    assert "\n" not in str(failure.value)


def test_nobody_listens(load: Load, waits: list[float]) -> None:
    with FakeServer(in_turn(chat_reply("x"))).running() as server:
        address = server.address
    with pytest.raises(InfrastructureError, match=r"no answer: .*refused"):
        complete(load(address), ask())
    assert len(waits) == 3


def test_a_server_that_hangs(serve: Serve, load: Load, waits: list[float]) -> None:
    released = threading.Event()

    def answer(asked: Asked) -> Say:
        released.wait(20)
        return chat_reply("late")

    server = serve(answer)
    model = load(server.address, time_limit_seconds=0.05, retries=1)
    try:
        with pytest.raises(InfrastructureError, match=r"no answer within 0.05 s"):
            complete(model, ask())
    finally:
        released.set()
    assert len(waits) == 1


def test_one_failure_leaves_the_others(serve: Serve, load: Load) -> None:
    def answer(asked: Asked) -> Say:
        text = asked.body["messages"][1]["content"]
        return error(500, "out of memory") if text == "1" else chat_reply(text)

    server = serve(answer)
    model = load(server.address)
    asks = [ask(str(i)) for i in range(4)]
    found = dict(model.completions(asks, [TokenSampling(i) for i in range(4)]))
    each = [found[place] for place in range(4)]
    assert [isinstance(one, InfrastructureError) for one in each] == [False, True, False, False]
    assert [one.text for one in each if isinstance(one, Completion)] == ["0", "2", "3"]
    with pytest.raises(InfrastructureError, match="500 Internal Server Error: out of memory"):
        complete(model, *asks)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 422])
def test_a_refusal_ends_the_run(serve: Serve, load: Load, waits: list[float], status: int) -> None:
    server = serve(in_turn(error(status, "top_p\nis   bad\x1b[2J")))
    with pytest.raises(InputError) as failure:
        complete(load(server.address), ask())
    assert f"/v1/chat/completions: the server answers {status} " in str(failure.value)
    assert "top_p is bad\N{REPLACEMENT CHARACTER}[2J" in str(failure.value)
    assert waits == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("base", "said", "hint"),
    [
        ("", Say(404, b"404 page not found"), "try {root}/v1"),
        ("/api", Say(405, {"detail": "Method Not Allowed"}), "try {root}/api/v1"),
        ("/v1", Say(404, {"detail": "Not Found"}), "base address of an OpenAI-compatible server"),
        ("/v1", error(404, "The model `toy` does not exist."), "is --model-name one of"),
        ("/v1", error(401, "who?"), "VERILOCC_BENCH_API_KEY"),
        ("/v1", error(429, "your plan", code="insufficient_quota"), "429 Too Many Requests: your"),
        (
            "",
            Say(200, b"<html>hello</html>"),
            "is not JSON; the address is the base of the API: try {root}/v1",
        ),
    ],
)
def test_what_would_help(serve: Serve, load: Load, base: str, said: Say, hint: str) -> None:
    server = serve(in_turn(said))
    with pytest.raises(InfrastructureError if said.status == 200 else InputError) as failure:
        complete(load(server.root + base), ask())
    assert hint.format(root=server.root) in str(failure.value)


def test_half_a_key_is_not_shown(serve: Serve, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for padding in (285, 1190, 1200 - len(KEY) // 2):
        server = serve(in_turn(Say(400, b" " * padding + KEY.encode() + b"p" * 300)))
        with pytest.raises(InputError) as failure:
            complete(load(server.address), ask())
        assert "[key]p" in str(failure.value)
        assert "sk-" not in str(failure.value)


REFUSALS = Path(__file__).with_name("refusals.jsonl").read_text().splitlines()


@pytest.mark.parametrize("case", [json.loads(line) for line in REFUSALS])
def test_a_prompt_that_does_not_fit(
    serve: Serve, load: Load, waits: list[float], case: dict[str, Any]
) -> None:
    said = Say(case["status"], case["body"])
    (completion,) = complete(load(serve(in_turn(said)).address), ask())
    assert completion.finish is Finish.CONTEXT
    assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("", 0, 0)
    assert completion.message
    assert said.status >= 500 or waits == []

    server = serve(in_turn(said, chat_reply("v4")))
    (completion,) = complete(load(server.address), ask())
    limits = [asked.body["max_tokens"] for asked in server.asked]
    assert limits[1:] == ([case["room"]] if case["room"] else limits[1:])
    assert (completion.text == "v4") == bool(case["room"] or said.status >= 500)


def test_the_newer_name_of_the_limit(serve: Serve, load: Load) -> None:
    complaint = "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead."

    def answer(asked: Asked) -> Say:
        return error(400, complaint) if "max_tokens" in asked.body else chat_reply("v4")

    server = serve(answer)
    model = load(server.address, concurrency=1)
    assert [said.text for said in complete(model, ask(), ask())] == ["v4", "v4"]
    limits = [
        (asked.body.get("max_tokens"), asked.body.get("max_completion_tokens"))
        for asked in server.asked
    ]
    assert limits == [(99, None), (None, 99), (None, 99)]
    asks = [ask()] * 8  # at once: most learn the name from another's answer
    assert len(list(complete(load(serve(answer).address, concurrency=8), *asks))) == 8

    for more in (None, '{"max_tokens": 50}'):
        always = serve(in_turn(error(400, complaint)))
        with pytest.raises(InputError, match="max_completion_tokens"):
            complete(load(always.address, extra_body=more), ask())
        assert len(always.asked) == 2


@pytest.mark.parametrize("name", ["VERILOCC_BENCH_API_KEY", "OPENAI_API_KEY"])
def test_the_key_goes_to_the_server_and_nowhere_else(
    serve: Serve,
    load: Load,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
) -> None:
    monkeypatch.setenv(name, f" {KEY}\n")

    def answer(asked: Asked) -> Say:
        held = asked.headers["authorization"]
        assert held == f"Bearer {KEY}"
        text = asked.body["messages"][1]["content"]
        if text == "context":
            return error(400, f"maximum context length, {held}")
        # Where a clipped line ends within the key it must not show half of it.
        padding = "p" * int(text.partition(" ")[2] or 0)
        return error(int(text.split()[0]), f"{padding}{held}\nX")

    server = serve(answer)
    model = load(server.address, retries=0)
    shown = [repr(model), model.revision]
    for text in ("400", "401", "403", "422", "503", "503 283"):
        with pytest.raises((InputError, InfrastructureError)) as failure:
            complete(model, ask(text))
        shown += [str(failure.value), repr(failure.value)]
    (completion,) = complete(model, ask("context"))
    shown += [repr(completion), *capfd.readouterr()]
    assert "sk-very" not in " ".join(shown)
    assert "[key]" in " ".join(shown)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(
    serve: Serve, load: Load, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    other = serve(in_turn(chat_reply("stolen")))
    server = serve(in_turn(Say(status, b"", {"Location": f"{other.address}/chat/completions"})))
    with pytest.raises(InputError, match="redirects are not followed"):
        complete(load(server.address), ask())
    assert other.asked == []


def test_which_key() -> None:
    assert api_key({}) is None
    assert api_key({"OPENAI_API_KEY": "b"}) == "b"
    assert api_key({"OPENAI_API_KEY": "b", "VERILOCC_BENCH_API_KEY": "a"}) == "a"
    assert api_key({"OPENAI_API_KEY": "b", "VERILOCC_BENCH_API_KEY": ""}) is None
    for bad in ("s3cret\nX: y", "s3cret é", "s3cret \x00"):
        with pytest.raises(InputError) as failure:
            api_key({"OPENAI_API_KEY": bad})
        assert "OPENAI_API_KEY" in str(failure.value)
        assert "s3cret" not in str(failure.value)


def test_a_proxy_for_others_alone(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing listens at the proxy of this module's environment; no name is looked up.
    model = load("http://model.invalid/v1")
    with pytest.raises(InfrastructureError, match="refused") as failure:
        complete(model, ask())
    assert "proxy-password" not in str(failure.value)
    assert all(map(is_this_machine, ("http://[::1]:9/v1", "http://localhost:9/v1")))
    assert not is_this_machine("http://10.1.2.3/v1")
    monkeypatch.setenv("HTTP_PROXY", "gopher://user:proxy-password@127.0.0.1:9")
    with pytest.raises(InputError, match="HTTP_PROXY") as unusable:
        complete(load("http://model.invalid/v1"), ask())
    assert "proxy-password" not in str(unusable.value)


def test_seeds() -> None:
    given = [*range(1000), 2**31 - 1, 2**31, 2**32, *(2**64 - i for i in range(1, 1000)), -1]
    seeds = [server_seed(seed) for seed in given]
    assert seeds[:1001] == given[:1001]
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert len(set(seeds)) == len(seeds)
    assert server_seed(2**63 + 7) == 0xF9777D8B >> 1  # sha256sum's first 31 bits


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://user:hunter2@host/v1", "user name or password"),
        ("http://hunter2@host/v1", "user name or password"),
        ("http://host/v1?key=hunter2", "query"),
        ("http://host/v1#hunter2", "fragment"),
        ("ftp://host/v1", "no http or https host"),
        ("http:///v1", "no http or https host"),
        ("http://:8000/v1", "no http or https host"),
        ("http://host:port/v1", "no http or https host"),
        ("http://host:99999/v1", "no http or https host"),
        ("http://[::1/v1", "no http or https host"),
        ("http://ho st/v1", "no http or https host"),
        ("http://host/a\\b", "no http or https host"),
        ("http://ho\u2488st/v1", "no http or https host"),
        ("http://host/v1/chat/completions", "without /chat/completions"),
        ("http://host/v1/models/", "without /models"),
    ],
)
def test_addresses_that_are_none(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as failure:
        check_address(address)
    assert "hunter2" not in str(failure.value)


def test_addresses() -> None:
    assert check_address("http://localhost:8000/v1/") == "http://localhost:8000/v1"
    assert check_address("HTTPS://api.openai.com/v1") == "https://api.openai.com/v1"
    assert check_address("http://[::1]:8080") == "http://[::1]:8080"


def models(*names: str) -> Say:
    return Say(body={"object": "list", "data": [{"id": name} for name in names]})


def test_the_only_model(serve: Serve, load: Load) -> None:
    server = serve(lambda asked: models("one") if asked.method == "GET" else chat_reply("a"))
    model = load(server.address, model_name=None)
    assert model.model_name == "one"
    complete(model, ask())
    assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/chat/completions"]
    assert server.asked[1].body["model"] == "one"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (models(), "lists no models; give --model-name"),
        (models("a", "b"), "several models: a, b; give --model-name"),
        (models(*(f"m{i}" for i in range(12))), "m9 and 2 more; give --model-name"),
        (Say(404, b"nothing"), "404 Not Found"),
        (Say(body={"object": "list"}), "lists no models; give --model-name"),
        (Say(503), "503 Service Unavailable .*; give --model-name"),
    ],
)
def test_no_only_model(serve: Serve, load: Load, said: Say, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(serve(in_turn(said)).address, model_name=None, retries=0)


def test_what_a_server_cannot_do(load: Load) -> None:
    model = load("http://127.0.0.1:9/v1")

    def constraint() -> Any:
        yield Literal("x")

    with pytest.raises(InputError, match="cannot be constrained"):
        complete(model, ask(constraint=constraint))
    for way in (TokenSampling(1, forced=(1,)), TokenSampling(1, alternatives=2)):
        with pytest.raises(InputError, match="forced tokens"):
            list(model.completions([ask()], [way]))


def test_an_interrupt_does_not_wait_for_the_server(serve: Serve) -> None:
    """A program that is interrupted while its requests hang ends, though they never do."""
    released, here = threading.Event(), threading.Barrier(3, timeout=60)

    def answer(asked: Asked) -> Say:
        here.wait()
        released.wait(60)
        return chat_reply("late")

    server = serve(answer)
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from verilocc_bench.settings.language_model import EndpointSettings\n"
        "from verilocc_bench.model.endpoint import EndpointModel\n"
        "from verilocc_bench.model.language_model import Ask, Message, TokenSampling\n"
        "assert not {'openai', 'httpx2', 'torch', 'transformers'} & set(sys.modules)\n"
        "options = EndpointSettings(model_name='m', time_limit_seconds=3000, concurrency=2)\n"
        f"model = EndpointModel({server.address!r}, options)\n"
        "ask = Ask((Message('user', 'x'),), 9)\n"
        "try:\n    list(model.completions([ask] * 5, [TokenSampling(i) for i in range(5)]))\n"
        "except KeyboardInterrupt:\n    sys.exit(77)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", script])
    try:
        here.wait()
        program.send_signal(2)
        assert program.wait(timeout=60) == 77
    finally:
        released.set()
        program.kill()
        program.wait()
    assert len(server.asked) == 2


def test_the_toy_server_of_the_example(load: Load) -> None:
    program = Path(__file__).parents[2] / "examples" / "http" / "toy_server.py"
    command = [sys.executable, str(program), "--port", "0"]
    prompt = "window 1 of 9\nplace %12:V2 %13:V\nfree V v9 v10\nfree V2 v4 v6 v8..v20\nbb0\n"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as toy:
        try:
            assert toy.stdout is not None
            address = toy.stdout.readline().strip()
            for chat in (True, False):
                model = load(address, model_name=None, chat=chat, retries=0)
                assert model.model_name == "first-free"
                said = complete(model, ask(prompt), ask("nothing to place"))
                assert [one.text for one in said] == ['{"%12": "v4", "%13": "v9"}', "{}"]
            with pytest.raises(InputError, match="400 Bad Request"):
                complete(load(address, extra_body='{"messages": 3}'), ask())
        finally:
            toy.terminate()
