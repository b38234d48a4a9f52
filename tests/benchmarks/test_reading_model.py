import random
from collections.abc import Mapping
from types import SimpleNamespace
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
    names = conversation.FreshNames(random.Random(3))
    said, taught, whole = conversation.converse(function, "links", names)
    assert whole
    first_answer = next(index for index, meaning in enumerate(said.meanings) if meaning)
    places = heard(function, [conversation.WORDS[w] for w in said.words], first_answer - 2)
    assert places == taught
    assert fits(function, places)
    registers = {f"%{name}": f"{file}{start}" for name, (file, start) in places.items()}
    assert vb.verify(problem, registers).valid


def test_a_draft_changes_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from benchmarks.reading_model import measuring

    (problem,) = vb.load_problems("mini", arch="gfx90a", family="gemm", limit=1)
    function = describe(problem.function, problem.id)
    assert function is not None
    taught = conversation.converse(function, "links", conversation.FreshNames(random.Random(0)))[0]

    first = conversation.FIRST_REGISTER

    class Forgetful:
        """Says the teacher's words, but now and then another register: by the words before."""

        def __init__(self, _: Any, length: int) -> None:
            self.heard = [0] * length

        def read(self, words: Any, place: int) -> Any:
            said = []
            for index, word in enumerate(words.tolist(), place):
                self.heard[index] = word
                after = taught.words[min(index + 1, len(taught.words) - 1)]
                chance = random.Random(str(self.heard[max(0, index - 9) : index + 1]))
                if first <= after < first + 256 and chance.random() < 0.02:
                    after = first + chance.randrange(40)
                said.append(after)
            return torch.tensor(said)

    monkeypatch.setattr(measuring, "Memory", Forgetful)
    reader: Any = SimpleNamespace(words=torch.zeros(1))

    def conversation_of_it() -> Mapping[str, Any]:
        return measuring.converse_freely(reader, "links", function, 0, length=4000, end=2e10)

    drafted = conversation_of_it()
    monkeypatch.setattr(measuring.Speaker, "draft", lambda _, __: [])
    plain = conversation_of_it()
    assert drafted["refused"] > 5
    assert drafted["words"] == plain["words"]
    assert drafted["assignment"] == plain["assignment"]
