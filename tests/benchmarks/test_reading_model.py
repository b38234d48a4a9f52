import random
from collections.abc import Mapping
from typing import Any

import pytest

import verilocc_bench as vb
from benchmarks.reading_model import conversation
from benchmarks.reading_model.extract import describe
from benchmarks.reading_model.listening import Listener, fits

Places = Mapping[int, tuple[str, int]]


def heard(function: Mapping[str, Any], words: list[str], first: int) -> Places:
    """The places that the program takes from a conversation of these words.

    The words before `first` say what is free at the start.
    """
    places: dict[int, tuple[str, int]] = {}
    name_words: dict[int, str] = {}
    spoken = iter(words[first:])
    for shown in conversation.script(function):
        kind, word = next(spoken), next(spoken)
        assert name_words.setdefault(shown.name, word) == word
        assert (kind, word) == conversation.shown_words(function, shown, word)
        listener = Listener("links", function, shown, word)
        while not listener.hear(next(spoken)):
            pass
        if shown.place in (0, 2):
            places.setdefault(shown.name, (listener.register[0], int(listener.register[1:])))
    assert next(spoken, None) is None
    return places


@pytest.mark.parametrize(("arch", "family"), [("gfx90a", "gemm"), ("gfx942", "mha")])
def test_what_the_teacher_says_is_a_valid_assignment(arch: str, family: str) -> None:
    (problem,) = vb.load_problems("mini", arch=arch, family=family, limit=1)
    function = describe(problem.function, problem.id)
    assert function is not None
    names = conversation.fresh_names(random.Random(3))
    said, taught, whole = conversation.converse(function, "links", names)
    assert whole
    first_answer = next(index for index, meaning in enumerate(said.meanings) if meaning)
    places = heard(function, [conversation.WORDS[w] for w in said.words], first_answer - 2)
    assert places == taught
    assert fits(function, places)
    registers = {f"%{name}": f"{file}{start}" for name, (file, start) in places.items()}
    assert vb.verify(problem, registers).valid
