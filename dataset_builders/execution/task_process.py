"""The side of a task process: how it begins, what it does with a task, and how it ends.

A task process leads a session of its own, so that everything that it starts
can be ended with it. It keeps its temporary files in a folder of its own. When
its supervisor dies, it removes that folder and ends with all that it started.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import traceback

POLL_SECONDS = 0.5


def begin(supervisor: int, folder: str) -> int:
    """Makes this process a task process; returns its id, which is also its group's."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what libraries print does not get among results
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    threading.Thread(target=_watch, args=(supervisor, folder), daemon=True).start()
    return os.getpid()


def do_task(task: bytes) -> tuple[str, bytes]:
    """Does a pickled pair of a function and its argument.

    Returns `done` and the pickled result; `failed` and the pickled exception
    with its traceback as text; or `memory` and nothing.
    """
    try:
        function, item = pickle.loads(task)  # noqa: S301  from our own supervisor
        return "done", pickle.dumps(function(item))
    except MemoryError:
        return "memory", b""
    except SystemExit:
        os._exit(1)
    except Exception as error:  # noqa: BLE001  the supervisor raises it again
        return "failed", _pickled(error)


def _pickled(error: Exception) -> bytes:
    text = traceback.format_exc()
    try:
        data = pickle.dumps((error, text))
        pickle.loads(data)  # noqa: S301  some exceptions can be pickled, but not unpickled
    except Exception:  # noqa: BLE001  anything may go wrong in a class of other people
        data = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text))
    return data


def _watch(supervisor: int, folder: str) -> None:
    """Ends the whole group when the supervisor is gone: nobody would collect its work."""
    while os.getppid() == supervisor:
        time.sleep(POLL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)
