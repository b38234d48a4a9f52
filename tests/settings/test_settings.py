"""Settings by kind: their flags, how they are read, and what results say of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import fields

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding, FeedbackKind
from verilocc_bench.settings.command_line import add_settings, check_flags, read_settings
from verilocc_bench.settings.flags import flag_of
from verilocc_bench.settings.language_model import (
    EndpointSettings,
    LanguageModelSettings,
    LocalModelSettings,
    SamplingStrategy,
)
from verilocc_bench.settings.program import ProgramSettings
from verilocc_bench.settings.search import Objective, PlacementSettings, SearchSettings

KINDS = (
    AllocatorSettings,
    PlacementSettings,
    SearchSettings,
    ProgramSettings,
    LocalModelSettings,
    EndpointSettings,
)


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_settings(parser)
    return parser.parse_args(arguments)


def test_a_flag_sets_the_same_field_of_every_kind() -> None:
    flags = {(flag_of(each).name, each.name) for kind in KINDS for each in fields(kind)}
    assert len({name for name, _ in flags}) == len({name for _, name in flags}) == len(flags)
    options = vars(parse())
    assert set(options) == {name for _, name in flags}
    assert set(options.values()) == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_without_flags_the_defaults_hold(kind: type[AllocatorSettings]) -> None:
    assert read_settings(parse(), kind) == kind()


def test_flags_are_read() -> None:
    found = read_settings(parse("--objective", "copies", "--effort", "3"), SearchSettings)
    assert found == SearchSettings(objective=Objective.COPIES, effort=3)
    arguments = ("--decoding", "guided", "--verifier-calls", "4", "--feedback", "resample")
    found_guided = read_settings(parse(*arguments), AllocatorSettings)
    assert found_guided == AllocatorSettings(Decoding.GUIDED, 4, FeedbackKind.RESAMPLE)
    assert found_guided.attempts == 4
    assert AllocatorSettings(verifier_calls=4).attempts == 1
    assert read_settings(parse("--time-limit", "2"), ProgramSettings).time_limit_seconds == 2
    assert read_settings(parse("--time-limit", "2"), EndpointSettings).time_limit_seconds == 2
    assert read_settings(parse("--no-chat"), EndpointSettings).chat is False
    assert read_settings(parse("--trust-remote-code"), LocalModelSettings).trust_remote_code


def test_a_temperature_asks_for_random_sampling() -> None:
    for arguments in (("--temperature", "0"), ("--top-p", "0.5")):
        found = read_settings(parse(*arguments), LocalModelSettings)
        assert found.strategy is SamplingStrategy.RANDOM
    assert read_settings(parse(), LocalModelSettings).strategy is None


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("--objective", "copies"), AllocatorSettings, "--objective means nothing to a-model"),
        (("--batch-size", "2"), EndpointSettings, "--batch-size means nothing"),
        (("--retries", "2"), LocalModelSettings, "--retries means nothing"),
        (("--verifier-calls", "2"), SearchSettings, "are for --decoding guided"),
        (("--sampling", "greedy", "--top-p", "0.5"), LocalModelSettings, "for --sampling random"),
    ],
)
def test_flags_that_mean_nothing_are_refused(
    arguments: tuple[str, ...], kind: type[AllocatorSettings], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_flags(parse(*arguments), ["a-model"], [kind])


def test_flags_are_for_any_of_the_models() -> None:
    options = parse("--effort", "2", "--memory-limit", "100", "--few-shot", "0", "--no-chat")
    check_flags(options, ["a", "b"], [SearchSettings, ProgramSettings])


@pytest.mark.parametrize("text", ["0", "1001", "1.5", "x"])
def test_numbers_have_bounds(text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="expected a whole number of 1 to 1000"):
        parse("--effort", text)


def test_results_name_what_may_change_an_answer() -> None:
    assert AllocatorSettings().described() == {}
    assert SearchSettings().described() == {"objective": "registers", "effort": 1}
    assert PlacementSettings().described() == {}
    assert PlacementSettings(runnable=True).described() == {"runnable": True}
    runnable = read_settings(parse("--runnable"), SearchSettings)
    assert runnable.described() == {"runnable": True, "objective": "registers", "effort": 1}
    assert list(ProgramSettings().described()) == ["time_limit_seconds", "memory_limit_mib"]
    guided = SearchSettings(Decoding.GUIDED, 3).described()
    assert list(guided) == ["objective", "effort", "verifier_calls", "feedback"]
    assert (guided["verifier_calls"], guided["feedback"]) == (3, "findings")
    endpoint = EndpointSettings(model_name="m", retries=9).described()
    assert endpoint["model_name"] == "m"
    assert not endpoint.keys() & {"retries", "concurrency", "time_limit_seconds", "decoding"}
    assert "window_registers" not in LocalModelSettings().described()
    windows = LocalModelSettings(window_registers=3).described()
    assert list(windows)[-1] == "window_registers"
    assert issubclass(LocalModelSettings, LanguageModelSettings)


def test_settings_need_nothing_heavy() -> None:
    """The command line shows its help in a moment."""
    code = (
        "import sys, verilocc_bench.settings.command_line; "
        "print(sorted({'numpy', 'torch', 'pyarrow', 'verilocc_bench.allocators'} & {*sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
