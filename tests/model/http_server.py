"""A server of this process that says what a test has it say, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Say:
    """A reply; `body` is sent as JSON unless it is bytes.

    `length` is what its header says in place of the true one.
    """

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


Answers = Callable[[Asked], Say]


class FakeServer:
    """`answer` is asked for every request, in the thread of its connection."""

    def __init__(self, answer: Answers) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self._lock = Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self.address = f"{self.root}/v1"

    @contextmanager
    def running(self) -> Iterator[FakeServer]:
        # A short poll, or every shutdown waits for half a second.
        thread = Thread(target=self._http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            timeout = 20

            def setup(self) -> None:
                super().setup()
                with fake._lock:
                    fake.connections += 1

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                body = json.loads(content) if content else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                with fake._lock:
                    fake.asked.append(asked)
                self.say(fake.answer(asked))

            do_GET = do_POST  # noqa: N815

            def say(self, said: Say) -> None:
                content = (
                    said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                )
                try:
                    self.send_response(said.status)
                    for name, value in said.headers.items():
                        self.send_header(name, value)
                    length = len(content) if said.length is None else said.length
                    self.send_header("Content-Length", str(length))
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:  # the client has given up
                    self.close_connection = True
                if said.length is not None:
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, *arguments: object) -> None:
                """Nothing is printed."""

        return Handler


def chat_reply(text: Any, finish: Any = "stop", **more: Any) -> Say:
    """As vLLM answers a chat completion."""
    message = {"role": "assistant", "content": text, "reasoning_content": "hm"}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return Say(
        body={"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage} | more
    )
