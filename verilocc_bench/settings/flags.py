"""Fields of settings that are flags of the command line. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import Field, dataclass, field
from enum import StrEnum
from typing import Any

_NO_LIMIT = 1e12


@dataclass(frozen=True, slots=True)
class Flag:
    """A setting on the command line.

    `arguments` go to argparse. `in_results` is True if the setting may change
    an answer: then results name it, and a resumed run keeps no samples that
    were made with another value.
    """

    name: str
    arguments: dict[str, Any]
    in_results: bool = True


def setting(
    default: Any,
    name: str,
    help_text: str,
    *,
    metavar: str | None = None,
    read: Callable[[str], Any] = str,
    in_results: bool = True,
) -> Any:
    """A dataclass field with its flag.

    `read` makes a value of the flag's text. An enum offers its members, and
    bool makes the pair `--NAME` and `--no-NAME`. A default of False makes a flag
    without a value. `{}` in the help stands for the default.
    """
    arguments: dict[str, Any] = {"help": help_text}
    if "{}" in help_text:
        arguments["help"] = help_text.format(
            default if isinstance(default, str) else f"{default:g}"
        )
    if default is False:
        arguments |= {"action": "store_true", "default": None}
    elif read is bool:
        arguments |= {"action": argparse.BooleanOptionalAction, "default": None}
    else:
        arguments |= {"type": read, "metavar": metavar}
        if isinstance(read, type) and issubclass(read, StrEnum):
            arguments |= {"choices": list(read), "metavar": "|".join(read)}
    return field(default=default, metadata={"flag": Flag(name, arguments, in_results)})


def flag_of(each: Field[Any]) -> Flag:
    """The flag of a field that `setting` made."""
    flag = each.metadata["flag"]
    assert isinstance(flag, Flag)
    return flag


def at_least(
    kind: type[int | float], least: float, most: float = _NO_LIMIT
) -> Callable[[str], Any]:
    """Reads a number from `least` to `most`; argparse reports anything else."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(least - 1)
        if not least <= value <= most:
            expected = "a whole number" if kind is int else "a number"
            upper = f" to {most:g}" if most < _NO_LIMIT else " or more"
            raise argparse.ArgumentTypeError(
                f"expected {expected} of {least:g}{upper}, not {text[:40]!r}"
            )
        return value

    return read


def machine_live_ranges() -> Any:
    """The field `runnable` of allocators that are shown which registers are free."""
    return setting(
        False,
        "--runnable",
        "also keep registers apart that the machine still reads or writes, so that the answer "
        "runs by the compiler's own rules (sm_80; needs the dataset's raw code or a cubin)",
    )


def time_limit(*, in_results: bool) -> Any:
    """The field `time_limit_seconds`, which programs and endpoints have in common."""
    return setting(
        600.0,
        "--time-limit",
        "for one answer of a program, or one request to an endpoint (default: {})",
        metavar="SECONDS",
        read=at_least(float, 0.001),
        in_results=in_results,
    )
