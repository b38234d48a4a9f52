import random
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import verilocc_bench as vb
from benchmarks.reading_model import conversation, data
from benchmarks.reading_model.extract import cut, lengths
from benchmarks.reading_model.listening import Listener, fits
from benchmarks.reading_model.teaching import taught

Answers = list[list[str]]
SPLIT = {
    "budget": {"v": 4},
    "fixed": [],
    "default": "1 v",
    "lines": [[[4, "4 v"]], [4], [3], [2], [1], [0], [3], [2], [1], [0]],
    "blocks": [[0, 0, []]],
}
"""Read backwards, four names split the only block before one wants it whole."""


def problem_of(arch: str, family: str) -> vb.Problem:
    (problem,) = vb.load_problems("mini", arch=arch, family=family, limit=1)
    return problem


def text_of(problem: vb.Problem) -> dict[str, Any]:
    text = cut(problem.normalized)
    assert text is not None
    return text


def placed(text: conversation.Text, speak: Any = data.answers) -> dict[int, str]:
    """The registers by the number of the name."""
    names = conversation.FreshNames(random.Random(3)).of(text)
    words = conversation.discuss(text, names, speak)
    return {name: words[word] for name, word in names.items() if word in words}


def assignment(text: conversation.Text, places: dict[int, str]) -> dict[str, str]:
    return {f"%{name}": text["registers"][r[0]] + r[1:] for name, r in places.items()}


@pytest.mark.parametrize(
    ("arch", "family"), [("gfx90a", "gemm"), ("gfx942", "mha"), ("sm_80", "gemm")]
)
def test_what_the_teacher_says_is_a_valid_assignment(arch: str, family: str) -> None:
    problem = problem_of(arch, family)
    text = text_of(problem)
    assert lengths(text)["whole"]
    places = placed(text)
    assert fits(text, places)
    assert vb.verify(problem, assignment(text, places)).valid


def test_names_that_overlap_do_not_fit() -> None:
    text = text_of(problem_of("gfx90a", "gemm"))
    places = placed(text)
    assert not fits(text, places | {0: places[1]})
    assert not fits(text, {name: r for name, r in places.items() if name})


def test_a_listener_knows_where_each_answer_ends() -> None:
    for text in (data.made_up(random.Random(5), 120), SPLIT):
        for kind in ("forward", "loop", "opening", "backward"):
            rng = random.Random(2)
            talk = data.one_conversation(text, kind, rng, conversation.FreshNames(rng))
            answers = spoken(talk)
            for turn, answer in zip(talk.turns, answers, strict=False):
                listener = Listener(turn)
                over = [listener.hear(word) for word in answer]
                assert over == [False] * (len(answer) - 1) + [True]
    assert any(word == "S.v" for answer in answers for word in answer)


def spoken(talk: conversation.Conversation) -> Answers:
    return [[conversation.WORDS[word] for word in answer] for answer in taught(talk)[1]]


def test_a_sweep_joins_free_blocks() -> None:
    places = placed(SPLIT)
    assert places[4] == "v0"
    assert fits(SPLIT, places)


def turns_of(
    text: conversation.Text, speak: Any = data.answers
) -> list[tuple[conversation.Showing, ...]]:
    """All that the program shows in the conversations about a text."""
    shown: list[tuple[conversation.Showing, ...]] = []

    def listen(talk: conversation.Conversation) -> Answers:
        shown.append(tuple(talk.turns))
        answers: Answers = speak(talk)
        return answers

    placed(text, listen)
    return shown


def test_the_program_works_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it shows is cut out of the text: wrong analyses and another order change nothing."""
    problem = problem_of("gfx942", "mha")
    plain = turns_of(text_of(problem))

    def wrong(*_: Any, **__: Any) -> Any:
        raise AssertionError("the program analyses")

    for name in ("function", "liveness", "loop_depths", "pressure", "placements"):
        monkeypatch.setattr(vb.Problem, name, property(wrong), raising=False)
    assert turns_of(text_of(problem)) == plain
    head, _, body = problem.normalized.partition("\nbb0")
    first, *classes = [line for line in head.splitlines() if line.startswith("class")]
    rest = [line for line in head.splitlines() if not line.startswith("class")]
    # Other numbers for the names, and the classes in another order.
    scrambled = "\n".join([*rest, first, *reversed(classes)]) + "\nbb0"
    scrambled += re.sub(r"%(\d+)", lambda name: f"%{int(name[1]) * 7919 % 100_003}", body)
    assert turns_of(text_of(SimpleNamespace(normalized=scrambled))) == plain  # type: ignore[arg-type]


def test_the_program_carries_the_models_words_right_or_wrong() -> None:
    """A model that stars every mention, and has all or nothing live around loops, is believed."""
    text = data.made_up(random.Random(8), 60)
    text["blocks"] = [[0, 0, [1]], [10, 1, [1, 2]], [20, 2, []]]

    def speaker(around: str) -> Any:
        def speak(talk: conversation.Conversation) -> Sequence[Sequence[str]]:
            wrong = {"mark": "*2 v", "back": "@", "around": around}
            return [[wrong[turn.ask]] for turn in talk.turns if turn.ask in wrong]

        return speak

    many, few = (turns_of(text, speaker(around)) for around in ("~1 a", "."))
    # 0 to 1 has not begun, 1 to 1 and 1 to 2: the program believes each jump that lies in the text.
    assert [turn.shown[0] for turn in many[1]] == ["*2 v"] * len(many[1])
    backward = many[-1][1:]
    assert {turn.shown[0] for turn in few[-1][1:]} == {"2 v", "*2 v"}
    assert {turn.shown[0] for turn in backward} == {"2 v", "*2 v", "~1 a"}
    mentions = sum(len(line) for line in text["lines"])
    assert sum(turn.ask == "free" for turn in backward) == mentions


def test_a_draft_changes_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from benchmarks.reading_model import measuring

    text = text_of(problem_of("gfx90a", "gemm")) | {"id": "some", "split": "mini"}
    names = conversation.FreshNames(random.Random(0)).of(text)
    said: list[list[int]] = []

    def speak(talk: conversation.Conversation) -> Answers:
        said.append(taught(talk)[0].words)
        return spoken(talk)

    conversation.discuss(text, names, speak)
    first = conversation.INDEX["v0"]

    class Forgetful:
        """Says the teacher's words, but now and then another register: by the words before."""

        def __init__(self, _: Any, length: int) -> None:
            self.heard = [0] * length

        def read(self, words: Any, place: int, temperature: float) -> Any:
            answers = []
            for index, word in enumerate(words.tolist(), place):
                self.heard[index] = word
                taught_words = said[self.heard[1] != conversation.INDEX[text["default"]]]
                after = taught_words[min(index + 1, len(taught_words) - 1)]
                chance = random.Random(str(self.heard[max(0, index - 9) : index + 1]))
                if first <= after < first + 256 and index > 300 and chance.random() < 0.02:
                    after = first + chance.randrange(40)
                answers.append(after)
            return torch.tensor(answers)

    monkeypatch.setattr(measuring, "Memory", Forgetful)
    reader: Any = SimpleNamespace(words=torch.zeros(1))

    def allocation() -> dict[str, Any]:
        return measuring.allocate_freely(reader, text, 0, length=4000, end=2e10)

    drafted = allocation()
    monkeypatch.setattr(measuring.Speaker, "draft", lambda _, __: [])
    plain = allocation()
    assert drafted["refused"]["Backward"] > 5
    assert drafted["words"][-1] == plain["words"][-1]
    assert drafted["assignment"] == plain["assignment"]
