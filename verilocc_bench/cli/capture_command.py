"""`verilocc-bench capture`: the kernels of a user's script as a dataset."""

from __future__ import annotations

import argparse
import contextlib
import json
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from verilocc_bench.dataset import EMBEDDED
from verilocc_bench.errors import InputError, VerilocError
from verilocc_bench.triton.capturing import Capture, capture


def run(options: argparse.Namespace) -> int:
    """Runs the script once for each architecture, and writes what Triton compiled."""
    script: Path = options.script
    if not script.is_file():
        raise InputError("there is no such script", source=script)
    if options.output.exists() and any(options.output.iterdir()):
        raise InputError("expected a new or empty folder", source=options.output)
    captured: Capture | None = None
    for arch in options.arch:
        captured = captured or capture(arch, license=options.license)
        captured.arch = arch
        with captured:
            ended = run_script(script, options.arguments)
        if ended is not None:
            print(
                f"verilocc-bench capture: {arch}: {script} ended with {ended}; what Triton had "
                "compiled until then is kept (kernels are not run)",
                file=sys.stderr,
            )
    assert captured is not None
    if not captured.count:
        raise InputError("Triton compiled nothing", source=script)
    captured.save(options.output)
    _report(captured, options)
    return 0


def run_script(script: Path, arguments: Sequence[str]) -> str | None:
    """Runs a script as Python does, with its output on standard error.

    Returns the words of the exception or of the status that ended it early, else None.
    """
    with _as_main(script, arguments), contextlib.redirect_stdout(sys.stderr):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            return f"status {end.code}" if end.code else None
        except VerilocError:
            raise
        except Exception as error:  # noqa: BLE001  the script's own
            text = " ".join(str(error).split())[:200]
            return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return None


@contextlib.contextmanager
def _as_main(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    before = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


def _report(captured: Capture, options: argparse.Namespace) -> None:
    rows = [each.row for each in captured.rows.built]
    refusals = captured.refusals
    document = {
        "dataset": str(options.output),
        "kernels": captured.count,
        "rows": [
            {"id": row.id, "kernel": row.kernel, "arch": row.arch, "track": row.track}
            | {"instructions": row.n_instructions, "label_source": row.label_source}
            | {"registers_used": json.loads(row.registers_used or "null"), "params": row.params}
            for row in rows
        ],
        "refused": [
            {"kernel": each.point.kernel, "arch": each.point.arch, "kind": each.kind}
            | {"reason": each.reason, "params": each.point.parameters_json}
            for each in refusals
        ],
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for row in rows:
        used = json.loads(row.registers_used or "{}").get("vector", "–")
        label = row.label_source if row.track == "assign" else "no label: live ranges are split"
        print(
            f"{row.id}  {row.arch}  {row.kernel}: {row.n_instructions} instructions, "
            f"{used} vector registers by {label}"
        )
    for each in refusals:
        print(f"refused           {each.point.arch}  {each.point.kernel}: {each.reason}")
    name = f"./{options.output}" if str(options.output) == EMBEDDED else options.output
    print(
        f"{captured.count} kernels, {len(rows)} rows in {options.output}, {len(refusals)} refused; "
        f"every command takes --dataset {name}"
    )
