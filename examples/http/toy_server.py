"""A server of OpenAI's API whose only model picks the first base that a prompt lists as free.

It needs nothing but Python 3. It exists to try the way over HTTP, not to score
well. It reads the prompts of `--prompt-format window --window-registers 1`: a line
such as `place %7:V2` and a line such as `free V2 v4 v6 v8..v20`.
"""

from __future__ import annotations

import argparse
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "first-free"
PLACE = re.compile(r"(%\d+):(\w+)")
FREE = re.compile(r"^free (\w+) (\w+)", re.MULTILINE)


def answer(prompt: str) -> str:
    """The first free base for each virtual register that the prompt asks for."""
    asked = next((line for line in prompt.splitlines() if line.startswith("place ")), "")
    first = dict(FREE.findall(prompt))
    return json.dumps({name: first.get(kind, "none") for name, kind in PLACE.findall(asked)})


def reply(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The body of the answer to a request to complete a chat or a text."""
    if path.endswith("/chat/completions"):
        prompt = asked["messages"][-1]["content"]
        said = answer(prompt)
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": said}}
    else:
        prompt = asked["prompt"]
        said = answer(prompt)
        choice = {"text": said}
    # A toy's tokens are words.
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(said.split())}
    choice |= {"index": 0, "finish_reason": "stop"}
    return {"model": asked.get("model"), "choices": [choice], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    """Answers GET /v1/models and POST /v1/chat/completions and /v1/completions."""

    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True  # head and body are sent apart; else each answer waits 40 ms

    def do_GET(self) -> None:
        """Lists the one model."""
        if self.path == "/v1/models":
            self.say(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self.refuse(404, f"there is nothing at {self.path}")

    def do_POST(self) -> None:
        """Completes."""
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in {"/v1/chat/completions", "/v1/completions"}:
            self.refuse(404, f"there is nothing at {self.path}")
            return
        try:
            document = reply(self.path, json.loads(content))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self.refuse(400, f"this is not a request to complete anything: {error!r}")
        else:
            self.say(200, document)

    def refuse(self, status: int, message: str) -> None:
        """An error as OpenAI words it."""
        self.say(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def say(self, status: int, document: dict[str, Any]) -> None:
        """Sends JSON."""
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Requests are not logged."""


def main() -> None:
    """Serves until it is interrupted; port 0 takes any that is free."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8010)
    options = parser.parse_args()
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    print(f"http://{options.host}:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
