"""Draws one or two answers to a function: a picture, or a page to look around in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.files import is_stream, write_output
from verilocc_bench.report.kernel_page import kernel_page
from verilocc_bench.report.occupation import Occupation
from verilocc_bench.report.picture import PICTURES, picture_of

PAGE = ".html"
FORMATS = (*PICTURES, PAGE)


def checked_format(output: Path) -> str:
    """The format that a path's suffix says; PNG for standard output, devices and pipes without one.

    Raises InputError for another suffix.
    """
    if output.suffix in FORMATS:
        return output.suffix
    if is_stream(output):
        return ".png"
    raise InputError(f"expected a file name ending in {', '.join(FORMATS)}", source=output)


def drawing_of(
    problem: AllocationProblem, occupations: Sequence[Occupation], title: str, suffix: str
) -> bytes:
    """One or two answers as a file of the format `suffix`, one of FORMATS.

    Raises MissingExtraError for a picture without matplotlib; a page needs nothing.
    """
    if suffix == PAGE:
        return kernel_page(problem, occupations, title).encode()
    return picture_of(problem, occupations, title, suffix)


def write_drawing(
    problem: AllocationProblem, occupations: Sequence[Occupation], title: str, output: Path
) -> None:
    """Draws to a path, whose suffix says the format. Raises as the functions above."""
    suffix = checked_format(output)
    write_output(output, drawing_of(problem, occupations, title, suffix))
