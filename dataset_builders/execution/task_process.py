"""A process that does tasks, one after the other, for a supervisor.

    python -m dataset_builders.execution.task_process DESCRIPTOR PARENT FOLDER

A task comes over the connection DESCRIPTOR as a pickled pair of a function
and its argument. The answer is a pair: `done` and the pickled result;
`failed` and the pickled exception with its traceback as text; or `memory` and
nothing. Pickles go between processes of one user's own, of one version.

The process leads a group of its own, so that whatever it starts can be ended
with it. FOLDER is its folder for temporary files. It ends, and leaves nothing
behind, when its supervisor (the process PARENT) has gone, or had no task for it
for a while.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection

__all__ = ["main"]

IDLE_SECONDS = 300.0
POLL_SECONDS = 0.5


def main(descriptor: int, parent: int, folder: str) -> None:
    """Does tasks until there are no more."""
    # What a task starts must not hold the connection open when this process has died.
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_watch, args=(parent, folder), daemon=True).start()
    connection = Connection(descriptor)
    try:
        connection.send("ready")
        while connection.poll(IDLE_SECONDS):
            connection.send(_answer(connection.recv_bytes()))
    except (EOFError, OSError):
        return  # the supervisor has closed the connection, or has gone
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answer(task: bytes) -> tuple[str, bytes]:
    try:
        function, item = pickle.loads(task)  # noqa: S301  from our own supervisor
        return "done", pickle.dumps(function(item))
    except MemoryError:
        return "memory", b""
    except Exception as error:  # noqa: BLE001  the supervisor raises it again
        return "failed", _pickled(error)


def _pickled(error: Exception) -> bytes:
    text = traceback.format_exc()
    try:
        data = pickle.dumps((error, text))
        pickle.loads(data)  # noqa: S301  some exceptions go in and do not come out
    except Exception:  # noqa: BLE001  anything may go wrong in a class that is not ours
        data = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text))
    return data


def _watch(parent: int, folder: str) -> None:
    """Ends the whole group when the supervisor was killed: nobody would collect its work."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
