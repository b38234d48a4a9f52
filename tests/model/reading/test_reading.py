import random
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import verilocc_bench as vb
from tests.model.scripted import TINY
from verilocc_bench.allocators import FailureKind, Feedback, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.model.reading import conversation, talk
from verilocc_bench.model.reading.cut import cut
from verilocc_bench.model.reading.reading_allocator import (
    BESIDE,
    ReadingAllocator,
    by_rule,
    first_conversation,
)
from verilocc_bench.model.reading.talk import Listener, NoRoom, Speaker, WrongWord, converse
from verilocc_bench.model.reading.teaching import taught
from verilocc_bench.settings.language_model import LocalModelSettings

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
    return cut(problem.normalized)


def spoken(talk: conversation.Conversation) -> Answers:
    return [[conversation.WORDS[word] for word in answer] for answer in taught(talk)[1]]


def placed(text: conversation.Text, speak: Any = spoken) -> dict[int, str]:
    names = conversation.FreshNames(random.Random(3)).of(text)
    words = conversation.discuss(text, names, speak)
    return {name: words[word] for name, word in names.items() if word in words}


@pytest.mark.parametrize(
    ("arch", "family"), [("gfx90a", "gemm"), ("gfx942", "mha"), ("sm_80", "gemm")]
)
def test_the_rule_and_the_copier_answer(arch: str, family: str) -> None:
    problem = problem_of(arch, family)
    assert vb.verify(problem, vb.allocate(problem, "reference-rule")).valid
    if arch == "gfx942":
        assert vb.verify(problem, vb.allocate(problem, "reference-copier")).valid
    if arch == "sm_80":
        with pytest.raises(AllocationFailed, match="never used"):
            vb.allocate(problem, "reference-copier")


def test_what_has_no_words_has_no_answer() -> None:
    text = TINY.replace("S2 2 s/2 vcc/2", "C2 2 vcc/2").replace(":S2", ":C2")
    lines = text.splitlines(keepends=True)
    lines[5], lines[6] = sorted((lines[5], lines[6]))
    problem = AllocationProblem.from_text("".join(lines))
    for allocator in BESIDE.values():
        with pytest.raises(AllocationFailed, match="no word for class C2"):
            allocator.allocate(Request(problem))
    with pytest.raises(AllocationFailed, match="no list has a block"):
        by_rule({**SPLIT, "budget": {"v": 3}}, random.Random(0))


def test_a_listener_knows_where_each_answer_ends() -> None:
    for text in (SPLIT, text_of(problem_of("gfx90a", "gemm"))):
        seen: list[str] = []

        def listen(talk: conversation.Conversation, seen: list[str] = seen) -> Answers:
            answers = spoken(talk)
            for turn, answer in zip(talk.turns, answers, strict=True):
                listener = Listener(turn)
                over = [listener.hear(word) for word in answer]
                assert over == [False] * (len(answer) - 1) + [True]
                seen.extend(answer)
            return answers

        placed(text, listen)
        assert ("S.v" in seen) == (text is SPLIT)


@pytest.mark.parametrize(
    ("ask", "shown", "words"),
    [
        ("mark", ("n1", "1 v"), "32 s"),
        ("mark", ("n1",), "v1"),
        ("back", ("->", "n1"), "v1"),
        ("around", ("1 v", "n1"), "1 v"),
        ("place", ("1 v", "n1"), "T.v1,n4"),
        ("place", ("1 v", "n1"), "T.v1,-,O.v1,v1"),
        ("place", ("1 v", "n1"), "T.v1" + 64 * ",-"),
        ("free", ("*1 v", "n1"), ""),
    ],
)
def test_a_word_that_no_answer_has_there_is_refused(
    ask: str, shown: tuple[str, ...], words: str
) -> None:
    listener = Listener(conversation.Showing(shown, ask))
    if not words:  # whatever is said of a free block, it is over after five words
        assert [listener.hear("v1") for _ in range(5)] == [False] * 4 + [True]
        return
    *before, last = words.split(",")
    for word in before:
        listener.hear(word)
    with pytest.raises(WrongWord):
        listener.hear(last)


def test_a_sweep_joins_free_blocks() -> None:
    places = placed(SPLIT)
    assert places[4] == "v0"
    assert len(set(places.values())) == len(places) - 1


def test_fixed_registers_are_said_one_by_one() -> None:
    text = {**SPLIT, "budget": {"v": 9}, "fixed": ["v7", "v3", "v6"], "lines": []}
    assert placed(text) == {}
    (opening,) = spoken(conversation.Backward(text, {}, [], {}))
    said = " ".join(opening)
    assert said.startswith("v8 Q.v1 - H.v1 v8 v7 - v6 - v4 Q.v2 - H.v2 v4 v3 - v2 Q.v1 v8 H.v1 v2")
    assert said.endswith("v0 Q.v2 v4 H.v2 v0 H.v4 - H.v8 - H.v16 - H.v32 - .")


def turns_of(
    text: conversation.Text, speak: Any = spoken
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
    shown = first_conversation("reference-llm", Request(problem), LocalModelSettings())
    assert [line[-3:] for line in shown.splitlines()[1:]] == [" =>"] * len(plain[0])

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
    lines = [[[n, "2 v"] if n % 3 else n, n // 2] for n in range(30)]
    text: dict[str, Any] = {**SPLIT, "lines": lines}
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


class Forgetful:
    """Says the teacher's words, but now and then another register: by the words before."""

    def __init__(self, text: conversation.Text, names: dict[int, str]) -> None:
        self._said: list[list[int]] = []
        conversation.discuss(text, names, self._teach)
        self._heard: list[int] = []

    def _teach(self, talk: conversation.Conversation) -> Answers:
        self._said.append(taught(talk)[0].words)
        return spoken(talk)

    def begin(self) -> None:
        self._heard = []

    def read(self, words: Sequence[int], place: int, _: Any = None) -> list[int]:
        del self._heard[place:]
        first, answers = conversation.INDEX["v0"], []
        for word in words:
            self._heard.append(word)
            right = next((said for said in self._said if said[:4] == self._heard[:4]), [0])
            after = right[min(len(self._heard), len(right) - 1)]
            chance = random.Random(str(self._heard[-10:]))
            if first <= after < first + 256 and len(self._heard) > 300 and chance.random() < 0.02:
                after = first + chance.randrange(40)
            answers.append(after)
        return answers


def test_a_draft_changes_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(problem_of("gfx90a", "gemm"))
    names = conversation.FreshNames(random.Random(0)).of(text)
    network = Forgetful(text, names)

    def allocation(most: int = 4000) -> tuple[list[list[int]], int, conversation.Places]:
        words, refused = [], 0

        def speak(of: conversation.Conversation) -> Answers:
            nonlocal refused
            network.begin()
            speaker = Speaker(of)
            converse(speaker, network.read, most)
            words.append(speaker.words)
            refused += speaker.refused
            return speaker.answers

        places = conversation.discuss(text, names, speak)
        return words, refused, places

    drafted = allocation()
    monkeypatch.setattr(Speaker, "draft", lambda _, __: [])
    with pytest.raises(WrongWord, match="more than 400 words"):
        allocation()
    monkeypatch.setattr(talk, "MOST_REFUSED", 10_000)
    plain = allocation()
    assert 5 < drafted[1] < 400 < plain[1]
    assert drafted[::2] == plain[::2]
    with pytest.raises(NoRoom):
        allocation(len(drafted[0][-1]) - 9)
    with pytest.raises(NoRoom, match="more than 50 words"):  # and nothing is read
        converse(Speaker(conversation.Forward(text, names)), lambda *_: pytest.fail("read"), 50)


class Slipping:
    """Says each draft, but takes the register before once more, the thirtieth time it takes one."""

    def begin(self) -> None:
        self._heard: list[int] = []
        self._right = 0

    def read(
        self, words: Sequence[int], place: int, _: Any = None, banned: Sequence[int] = ()
    ) -> list[int]:
        del self._heard[place:]
        said, take = [], conversation.INDEX["T.v1"]
        for word, after in zip(words, [*words[1:], 0], strict=True):
            self._heard.append(word)
            said.append(after)
            takes = [place for place, heard in enumerate(self._heard) if heard == take]
            if word == take and len(takes) == 30:
                before = self._heard[takes[-2] + 1]
                said[-1], self._right = (self._right if banned else before), after
        return said


def test_a_guided_model_does_not_repeat_what_was_wrong() -> None:
    problem = problem_of("gfx90a", "gemm")
    allocator = ReadingAllocator.__new__(ReadingAllocator)
    allocator.begin("slipping", Slipping(), LocalModelSettings())  # type: ignore[arg-type]
    first = allocator.allocate(Request(problem))
    verdict = vb.verify(problem, first.assignment)
    assert {finding.kind.value for finding in verdict.findings} == {"overlap"}
    told = Feedback(first, verdict.findings), Feedback(None, failure=FailureKind.UNPARSABLE)
    again = allocator.allocate(Request(problem, seed=1, feedback=told))
    assert vb.verify(problem, again.assignment).valid
