import random
from typing import Any

import pytest

import verilocc_bench as vb
from benchmarks.reading_model import data, made_up
from benchmarks.reading_model.extract import lengths
from verilocc_bench.model.reading.conversation import FreshNames, discuss
from verilocc_bench.model.reading.cut import cut
from verilocc_bench.model.reading.talk import Listener
from verilocc_bench.model.reading.teaching import taught

MADE_UP = {
    "made_up": lambda rng: made_up.made_up(rng, 120),
    "fragmented": made_up.fragmented,
    "waves": lambda rng: made_up.waves(rng, 300),
}


@pytest.mark.parametrize("make", MADE_UP.values(), ids=MADE_UP)
def test_what_is_taught_of_made_up_functions_is_an_answer(make: Any) -> None:
    rng = random.Random(5)
    for kind in ("forward", "loop", "opening", "backward"):
        text = data.with_default(make(rng), rng)
        talk = data.one_conversation(text, kind, rng, FreshNames(rng))
        for turn, answer in zip(talk.turns, data.answers(talk), strict=False):
            listener = Listener(turn)
            over = [listener.hear(word) for word in answer]
            assert over == [False] * (len(answer) - 1) + [True]


def test_names_that_overlap_do_not_fit() -> None:
    (problem,) = vb.load_problems("mini", arch="gfx90a", limit=1)
    text = cut(problem.normalized)
    assert lengths(text)["whole"]
    names = FreshNames(random.Random(3)).of(text)
    words = discuss(text, names, data.answers)
    places = {name: words[word] for name, word in names.items() if word in words}
    assert data.fits(text, places)
    assert not data.fits(text, places | {0: places[1]})
    assert not data.fits(text, {name: r for name, r in places.items() if name})


def test_an_order_drawn_by_chance_is_not_learnt() -> None:
    rng = random.Random(1)
    talk = data.one_conversation(made_up.fragmented(rng), "opening", rng, FreshNames(rng))
    assert any(taught(talk)[0].meanings)
    assert not any(taught(talk, rng)[0].meanings)
