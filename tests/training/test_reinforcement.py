"""Reinforcement from the verifier: rewards, advantages, the same run twice, and that it learns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from verilocc_bench.allocators import (
    Request,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.dataset.parquet import write_parquet
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy
from verilocc_bench.training.recipe import ModelRecipe
from verilocc_bench.training.recipe_files import find_recipe_file, read_document
from verilocc_bench.training.reinforcement_recipe import (
    ReinforcementRecipe,
    RewardWeights,
    training_rows,
)
from verilocc_bench.verification import IndependentVerifier

pytest.importorskip("torch")

import torch

from verilocc_bench.model.allocator import language_model_allocator
from verilocc_bench.model.transformers_model.loading import load_parts
from verilocc_bench.training.network import begin, write_model
from verilocc_bench.training.policy_gradient import LearntDecision, PolicyGradient
from verilocc_bench.training.reinforcement import reinforce
from verilocc_bench.training.rewards import RolloutJudge, RolloutOutcome, advantages, summarize
from verilocc_bench.training.rollouts import Decision, Encoder, Rollout, Start, roll_out

CHAINS, LENGTH = 3, 6
CONFIGURATION = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 512,
}
RECIPE = ReinforcementRecipe(
    name="test",
    description="test",
    steps=4,
    functions=1,
    group=3,
    learnt_decisions=8,
    learning_rate=1e-3,
    save_steps=2,
    threads=1,
    validation_functions=1,
)


def chains_text() -> str:
    """Chains of sums side by side: one register a chain will do, and any more are waste."""
    lines = ["verilocc-bench 1", "target gfx942", "registers v:16 a:0 s:0 vcc:2=vcc_lo,vcc_hi"]
    lines += ["class V 1 v", "bb0"]
    lines += [f"%{chain}=V_MOV_B32" for chain in range(CHAINS)]
    for number in range(CHAINS, CHAINS * LENGTH):
        lines.append(f"%{number}=V_ADD_U32 %{number - CHAINS},%{number - CHAINS}")
    last = CHAINS * LENGTH
    lines.append("USE " + ",".join(f"%{n}" for n in range(last - CHAINS, last)))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def row() -> Row:
    text = chains_text()
    problem = AllocationProblem.from_text(text)
    label = {f"%{n}": f"v{n % CHAINS}" for n in range(CHAINS * LENGTH)}
    return replace(
        load_rows("mini").rows[0],
        id=problem.id,
        arch="gfx942",
        family="gemm",
        normalized=text,
        assignment=json.dumps(label),
        n_blocks=1,
        n_instructions=problem.function.instruction_count,
        n_virtual_registers=len(label),
        best_lower_bound=CHAINS,
    )


@pytest.fixture(scope="module")
def dataset(row: Row, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("dataset")
    (folder / "data/gfx942/gemm").mkdir(parents=True)
    for split in ("train", "validation"):
        write_parquet([row], folder / f"data/gfx942/gemm/{split}-00000-of-00001.parquet")
    return str(folder)


def new_model() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return begin(ModelRecipe(CONFIGURATION, "decisions"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("model")
    write_model(*new_model(), folder, "candidates")
    return folder


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def answer_of(bases: list[int]) -> Rollout:
    return Rollout((), {f"%{n}": f"v{base}" for n, base in enumerate(bases)}, 0)


def test_rewards_are_ordered_as_answers_are_good(row: Row) -> None:
    judge, count = RolloutJudge(row), CHAINS * LENGTH
    least = answer_of([n % CHAINS for n in range(count)])
    one_more = answer_of([n % (CHAINS + 1) for n in range(count)])
    collides = answer_of([0] * count)
    dead_ends = replace(least, dead_ends=3)
    none = Rollout((), None, 101)
    found = [
        judge.reward(judge.outcome(rollout), RewardWeights())
        for rollout in (least, dead_ends, one_more, collides, none)
    ]
    assert found[0] == pytest.approx(-1.0)
    assert found[0] > found[1] > found[2] > found[3] == found[4] == RewardWeights().invalid
    assert found[2] == pytest.approx(-(CHAINS + 1) / CHAINS)


def test_conflicts_cost_and_needless_copies_pay() -> None:
    judge = RolloutJudge(load_rows("mini").rows[0])
    plain = RolloutOutcome(True, 0, judge.bound, 10, 0)
    base = judge.reward(plain, RewardWeights())
    assert judge.copies
    assert judge.reward(replace(plain, conflicts=20), RewardWeights()) < base
    assert judge.reward(replace(plain, copies=1), RewardWeights()) > base
    assert judge.reward(replace(plain, registers=10**6), RewardWeights()) == RewardWeights().invalid


def test_a_label_is_judged_as_the_label(row: Row) -> None:
    for each in (row, *load_rows("mini").rows[:2]):
        judge = RolloutJudge(each)
        outcome = judge.outcome(Rollout((), each.label, 0))
        found = summarize([(judge, outcome), (judge, RolloutOutcome(False, 7))])
        assert (found["functions"], found["valid"], found["dead_ends"]) == (2, 1, 7)
        assert found["registers_ratio"] == found["conflicts_ratio"] == found["share_equal"] == 1.0
        assert each.bank_conflicts in (None, found["conflicts"]) or each is row


def test_advantages() -> None:
    assert advantages([-3.0, -1.0]) == [-1.0, 1.0]
    assert advantages([0.1 + 0.2, 0.3, 0.3]) == [0.0] * 3
    found = advantages([-1.0, -2.0, -10.0, -1.5])
    assert sum(found) == pytest.approx(0.0)
    assert sum(each * each for each in found) == pytest.approx(4.0)
    assert found[0] > found[3] > found[1] > 0 > found[2]


def test_rollouts_are_valid_and_their_own_whoever_is_beside_them() -> None:
    network, tokenizer = new_model()
    encoder, seeds = Encoder(tokenizer), range(6)
    functions = [random_function(seed, target="gfx942") for seed in seeds]
    problems = [AllocationProblem(function) for function in functions]
    starts = [Start(problem, Random(seed)) for seed, problem in enumerate(problems)]
    together = roll_out(network, encoder, starts, 10)
    answered = 0
    for seed, problem, rollout in zip(seeds, problems, together, strict=True):
        alone = roll_out(network, encoder, [Start(problem, Random(seed))], 10)
        assert alone == [rollout]
        assert all(0 <= d.taken < len(d.offered) for d in rollout.decisions)
        if rollout.answer is None:
            assert rollout.dead_ends > 0
        else:
            answered += 1
            assert IndependentVerifier(problem).verify(rollout.answer).valid
    assert answered > len(seeds) // 2


def test_greedy_rollouts_are_what_constrained_decoding_says(model: Path) -> None:
    options = LocalModelSettings(
        prompt_format="candidates",
        decoding=Decoding.CONSTRAINED,
        backtracks=10,
        strategy=SamplingStrategy.GREEDY,
        dtype="float32",
        device="cpu",
    )
    allocator = language_model_allocator(str(model), options)
    problems = [AllocationProblem(random_function(seed, target="gfx942")) for seed in range(3)]
    problems.append(AllocationProblem.from_text(chains_text()))
    network, tokenizer = load_parts(str(model))
    starts = [Start(problem) for problem in problems]
    expected = dict(allocator.respond([Request(problem, 0) for problem in problems]))
    for number, rollout in enumerate(roll_out(network, Encoder(tokenizer), starts, 10)):
        response = expected[number]
        assert response.answer == (None if rollout.answer is None else Answer(rollout.answer))
        if rollout.answer is not None:
            assert rollout.dead_ends == response.details["backtracks"]
    assert rollout.answer is not None


def test_a_step_makes_the_better_likelier_and_keeps_near_the_start() -> None:
    def chance_after(advantage: float, divergence: float) -> float:
        network, _ = new_model()
        policy = PolicyGradient(
            network,
            1,
            learning_rate=1e-3,
            gradient_norm=1.0,
            divergence=divergence,
            batch_tokens=8,
        )
        decisions = [Decision((5, 6, 7), (20, 21), 0), Decision((5, 6, 7, 8), (20, 21, 22), 1)]
        learnt = [LearntDecision(each, advantage, 0.5) for each in decisions]
        for _ in range(8):
            update = policy.step(learnt)
        assert (update.divergence > 1e-6) == (advantage != 0)
        scores = torch.log_softmax(network(torch.tensor([[5, 6, 7]])).logits[0, -1, [20, 21]], 0)
        return float(scores[0].detach().exp())

    before = chance_after(0.0, 0.02)
    assert chance_after(-1.0, 0.02) < before < chance_after(1.0, 0.02)
    assert before < chance_after(1.0, 100.0) < chance_after(1.0, 0.0)


def test_the_same_run_twice_and_one_interrupted(
    model: Path, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reinforce(RECIPE, model, dataset, tmp_path / "whole")
    again = reinforce(RECIPE, model, dataset, tmp_path / "again")
    assert weights(whole) == weights(again) != weights(model)

    step = PolicyGradient.step

    def interrupt(policy: PolicyGradient, learnt: list[LearntDecision]) -> Any:
        monkeypatch.setattr(PolicyGradient, "step", fail_at_the_next)
        return step(policy, learnt)

    def fail_at_the_next(policy: PolicyGradient, learnt: list[LearntDecision]) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(policy, learnt)

    calls: list[int] = []
    monkeypatch.setattr(PolicyGradient, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        reinforce(RECIPE, model, dataset, tmp_path / "cut")
    monkeypatch.setattr(PolicyGradient, "step", step)
    assert len((tmp_path / "cut/log.jsonl").read_text().splitlines()) == 3  # one past the last save
    cut = reinforce(RECIPE, model, dataset, tmp_path / "cut")
    assert weights(cut) == weights(whole)
    logs = [
        [
            {key: value for key, value in json.loads(line).items() if key != "seconds"}
            for line in (folder / "log.jsonl").read_text().splitlines()
        ]
        for folder in (whole, again, cut)
    ]
    assert logs[0] == logs[1] == logs[2]
    assert [line["step"] for line in logs[0]] == [1, 2, 3, 4]

    told = json.loads((cut / "training.json").read_text())
    assert told["measured"]["resumed"]
    assert told["measured"]["before"]["functions"] == told["measured"]["after"]["valid"] == 1
    assert told["recipe"] == json.loads(json.dumps(RECIPE.as_json()))
    assert not (cut / "checkpoint.pt").exists()
    with pytest.raises(InputError, match="another recipe"):
        reinforce(replace(RECIPE, seed=1), model, dataset, cut)
    assert reinforce(RECIPE, model, dataset, cut) == cut  # there is nothing left to do
    assert weights(cut) == weights(whole)


def test_a_few_steps_raise_the_reward(model: Path, dataset: str, tmp_path: Path) -> None:
    recipe = replace(
        RECIPE, steps=24, group=8, learnt_decisions=20, learning_rate=3e-3, validation_functions=0
    )
    folder = reinforce(recipe, model, dataset, tmp_path / "learnt")
    rewards = [
        json.loads(line)["reward"] for line in (folder / "log.jsonl").read_text().splitlines()
    ]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.3


def test_a_tokenizer_that_cuts_names_is_refused() -> None:
    class Letters:
        eos_token_id = pad_token_id = unk_token_id = None

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": [ord(letter) for letter in text]}

        def decode(self, tokens: list[int], **_: Any) -> str:
            return "".join(map(chr, tokens))

    with pytest.raises(InputError, match="cuts 'v1' into 2 tokens"):
        Encoder(Letters()).decision("a prompt", ["v1", "v2"])


def test_recipes_are_read_and_checked(tmp_path: Path) -> None:
    own = find_recipe_file("reference-reinforced", folder="reinforcement")
    recipe = read_document(ReinforcementRecipe, own)
    rows = training_rows(recipe, load_rows("mini").rows)
    assert len({(row.arch, row.family) for row in rows}) > 3
    assert max(row.n_virtual_registers for row in rows) <= (recipe.largest or 0)
    with pytest.raises(InputError, match="no function that the recipe allows"):
        training_rows(replace(recipe, largest=1), rows)
    for text, message in (
        ("name: a\ndescription: b\nsteps: 2\ngroup: 1\n", "at least 2"),
        ("name: a\ndescription: b\nsteps: 0\n", "steps must be"),
        ("name: a\ndescription: b\nsteps: 2\nlearning_rate: -1\n", "learning_rate must not"),
        ("name: a\ndescription: b\nsteps: 2\ngradient_norm: 0\n", "gradient_norm must be above"),
        ("name: a\ndescription: b\nsteps: 2\nrewards: {copies: -1}\n", "copies must not"),
        ("name: a\ndescription: b\nsteps: 2\narchs: [gfx]\n", "unknown arch 'gfx'"),
        ("name: a\ndescription: b\nsteps: 2\nmodel: c\n", "unknown key 'model'"),
    ):
        path = tmp_path / "recipe.yaml"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_document(ReinforcementRecipe, path)
