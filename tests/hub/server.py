"""The local Hub from the tests' side: started in a process of its own, and given orders.

    from tests.hub.server import LocalHub, running_hub

The fixture `hub` (tests/hub/fixtures.py) is one that is empty at the start of each test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hub.accounts import OWNER_TOKEN

ROOT = Path(__file__).resolve().parents[2]
UPLOAD = "PUT /_lfs/"
COMMIT = "POST .*/commit/"

_OF_CLIENTS = re.compile(r"HF_|HUGGING_?FACE_|HUGGINGFACE_")


@dataclass(frozen=True, slots=True)
class LocalHub:
    """A running server. `address` is what clients take as HF_ENDPOINT."""

    address: str

    def reset(self) -> None:
        """Forgets repositories, faults and requests."""
        self._order("reset")

    def fail(self, kind: str, how: str = "status", **more: Any) -> None:
        """Orders a fault; see tests.hub.faults.Fault."""
        self._order("faults", {"kind": kind, "how": how, **more})

    def requests(self, kind: str = "", *, answered: bool = False) -> list[str]:
        """`METHOD /raw/path` of the requests that match a pattern, as they came."""
        return [
            entry["asked"]
            for entry in self._order("requests")
            if re.search(kind, entry["asked"]) and not (answered and entry["status"] is None)
        ]

    def forget_requests(self) -> None:
        self._order("forget")

    def calm(self) -> None:
        """Takes back all faults."""
        self._order("calm")

    def release(self) -> None:
        """Lets requests go on that are held."""
        self._order("release")

    def wait_for(self, kind: str, count: int = 1, seconds: float = 600.0) -> None:
        """Returns when so many such requests have come."""
        end = time.monotonic() + seconds
        while len(self.requests(kind)) < count:
            assert time.monotonic() < end, f"no request {kind}; there were {self.requests()}"
            time.sleep(0.02)

    def environment(self, home: Path, token: str | None = OWNER_TOKEN) -> dict[str, str]:
        """Variables for a client: this Hub, caches of its own in `home`, a token or none."""
        kept = {name: text for name, text in os.environ.items() if not _OF_CLIENTS.match(name)}
        kept |= {
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        return kept | ({} if token is None else {"HF_TOKEN": token})

    def _order(self, order: str, body: Any = None) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/_test/{order}", data)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)


@contextmanager
def running_hub() -> Iterator[LocalHub]:
    """Starts a server on a free port, and ends it."""
    command = [sys.executable, "-m", "tests.hub.serve"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the local Hub did not start"
            yield LocalHub(address)
        finally:
            process.terminate()
