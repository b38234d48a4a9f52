"""Triton's own benchmarks in a script that is captured: each call once, and nothing is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

_TIME = 1.0
"""The milliseconds that every call is said to take."""


@contextlib.contextmanager
def without_measuring(triton: Any) -> Iterator[None]:
    """`triton.testing` calls what it would measure once, draws nothing and writes no file.

    Its comparison of tensors holds, as kernels have not been run.
    """
    testing = triton.testing
    with contextlib.ExitStack() as stack:
        for name in ("do_bench", "do_bench_cudagraph"):
            stack.enter_context(mock.patch.object(testing, name, called_once))
        stack.enter_context(mock.patch.object(testing.Mark, "run", _run_benchmarks))
        stack.enter_context(mock.patch.object(testing, "assert_close", return_value=None))
        yield


def called_once(
    call: Callable[[], Any],
    *_: Any,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **_options: Any,
) -> Any:
    """Calls once, and says the same time of every call, in the form of `do_bench`."""
    call()
    if quantiles is not None:
        return [_TIME for _ in quantiles] if len(quantiles) > 1 else _TIME
    return [_TIME] if return_mode == "all" else _TIME


def _run_benchmarks(
    mark: Any,
    show_plots: bool = False,
    print_data: bool = False,
    save_path: str = "",
    return_df: bool = False,
    **options: Any,
) -> None:
    """Each benchmark of a function with each of its values; takes the place of `Mark.run`."""
    del show_plots, print_data, save_path, return_df
    benchmarks = mark.benchmarks if isinstance(mark.benchmarks, list) else [mark.benchmarks]
    for bench in benchmarks:
        for each in bench.x_vals:
            values = each if isinstance(each, list | tuple) else [each] * len(bench.x_names)
            given = dict(zip(bench.x_names, values, strict=True)) | bench.args | options
            for provider in bench.line_vals:
                mark.fn(**given, **{bench.line_arg: provider})
