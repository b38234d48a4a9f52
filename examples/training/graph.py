"""Trains a small graph network to choose registers, and scores its answers.

    python graph.py --dataset mini --split test

Needs torch (the extra `model`: `pip install -e '.[model]'`). The network sees a
function as a graph: operands join instructions and virtual registers, and
interference joins virtual registers. For each virtual register it gives every
base a score. Decoding goes through the registers in the order of their first
live points and takes the best base that is still legal, so an answer is valid
or missing. It is a beginning: two rounds of messages, no search, and a loss
that counts every other register as wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from loading import rows_of
from torch import nn

from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verification import Verifier
from verilocc_bench.views import (
    OpcodeVocabulary,
    ProblemGraph,
    answer_from_arrays,
    graph_of,
    problem_of,
)

FILES = 8
UNITS = 512
"""At least the number of files of any target, and of units in a file."""

ROLES = 3
FEATURES = 7


@dataclass(frozen=True)
class GraphExample:
    """A row, its graph, and the graph as tensors."""

    problem: AllocationProblem
    graph: ProblemGraph
    features: torch.Tensor
    opcodes: torch.Tensor
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    neighbours: tuple[torch.Tensor, torch.Tensor]
    label: torch.Tensor


def example_of(row: dict[str, Any], vocabulary: OpcodeVocabulary) -> GraphExample:
    """A row with its label, the best that is known."""
    graph = graph_of(row, vocabulary, label="best")
    left, right = torch.from_numpy(graph.interference.astype(np.int64))
    instruction, role, register = (
        torch.from_numpy(array.astype(np.int64))
        for array in (graph.operand_instruction, graph.operand_role, graph.operand_register)
    )
    label = graph.label_file.astype(np.int64) * UNITS + graph.label_base
    return GraphExample(
        problem_of(row),
        graph,
        features_of(graph),
        torch.from_numpy(graph.instruction_opcode.astype(np.int64)),
        (instruction, role, register),
        (torch.cat([left, right]), torch.cat([right, left])),
        torch.from_numpy(label),
    )


def features_of(graph: ProblemGraph) -> torch.Tensor:
    """The features of each virtual register, shape (registers, FEATURES)."""
    count, points = graph.register_count, graph.point_count
    first = np.full(count, points)
    last = np.zeros(count)
    live = np.zeros(count)
    np.minimum.at(first, graph.live_register, graph.live_first)
    np.maximum.at(last, graph.live_register, graph.live_last)
    np.add.at(live, graph.live_register, graph.live_last - graph.live_first + 1)
    degree = np.bincount(graph.interference.ravel(), minlength=count)
    columns = [
        first / points,
        last / points,
        np.log1p(live),
        np.log1p(degree),
        graph.register_width / 16,
        graph.register_alignment / 4,
        np.log1p(graph.register_files),
    ]
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


class GraphNetwork(nn.Module):
    """Messages from instructions to registers, and among registers that interfere."""

    def __init__(self, opcodes: int, size: int, rounds: int) -> None:
        super().__init__()
        self.opcodes = nn.Embedding(opcodes, size)
        self.begin = nn.Linear(FEATURES, size)
        self.to_instruction = nn.ModuleList(nn.Linear(size, ROLES * size) for _ in range(rounds))
        self.to_register = nn.ModuleList(nn.Linear(size, ROLES * size) for _ in range(rounds))
        self.update = nn.ModuleList(nn.Linear(3 * size, size) for _ in range(rounds))
        self.scores = nn.Linear(size, FILES * UNITS)

    def forward(self, example: GraphExample) -> torch.Tensor:
        """A score of every base of every file for each register: (registers, FILES * UNITS)."""
        registers = torch.relu(self.begin(example.features))
        instructions = self.opcodes(example.opcodes)
        instruction, role, register = example.operands
        source, target = example.neighbours
        for to_instruction, to_register, update in zip(
            self.to_instruction, self.to_register, self.update, strict=True
        ):
            sent = by_role(to_instruction(registers)[register], role)
            instructions = instructions + torch.relu(mean_at(sent, instruction, instructions))
            sent = by_role(to_register(instructions)[instruction], role)
            read = mean_at(sent, register, registers)
            near = mean_at(registers[source], target, registers)
            registers = registers + torch.relu(update(torch.cat([registers, read, near], dim=1)))
        scores: torch.Tensor = self.scores(registers)
        return scores


def by_role(messages: torch.Tensor, role: torch.Tensor) -> torch.Tensor:
    """The part of each message that belongs to its role."""
    parts = messages.view(len(messages), ROLES, -1)
    return parts[torch.arange(len(messages)), role]


def mean_at(messages: torch.Tensor, target: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The mean of the messages to each target; 0 where there are none."""
    total = torch.zeros_like(like).index_add(0, target, messages)
    return total / torch.bincount(target, minlength=len(like)).clamp(min=1)[:, None]


def train(network: GraphNetwork, examples: Sequence[GraphExample], steps: int) -> None:
    """Trains with one function a step."""
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        example = examples[step % len(examples)]
        loss = nn.functional.cross_entropy(network(example), example.label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def decode(graph: ProblemGraph, scores: np.ndarray) -> dict[str, str] | None:
    """The best base of each register that is still legal; None if none is left.

    It needs the graph alone. Kernels have no ties that are left to the
    allocator; a function with such ties is not decoded.
    """
    if len(graph.tie_left) or len(graph.fixed_tie_register):
        return None
    taken: list[set[tuple[int, int]]] = [set() for _ in range(graph.register_count)]
    for register, file, base in columns(
        graph.blocked_register, graph.blocked_file, graph.blocked_base
    ):
        taken[register].add((file, base))
    conflicts: list[list[tuple[int, int]]] = [[] for _ in range(graph.register_count)]
    for left, right, distance in columns(
        graph.conflict_left, graph.conflict_right, graph.conflict_distance
    ):
        conflicts[left].append((right, distance))
        conflicts[right].append((left, -distance))
    files, bases = [-1] * graph.register_count, [-1] * graph.register_count
    first = np.full(graph.register_count, graph.point_count)
    np.minimum.at(first, graph.live_register, graph.live_first)
    for register in np.lexsort((-graph.register_width, first)).tolist():
        number = graph.register_class[register]
        part = slice(graph.class_first[number], graph.class_first[number + 1])
        legal = [
            place
            for place in columns(graph.base_file[part], graph.base_index[part])
            if place not in taken[register]
        ]
        if not legal:
            return None
        file, base = max(legal, key=lambda place: scores[register, place[0] * UNITS + place[1]])
        files[register], bases[register] = file, base
        for other, distance in conflicts[register]:
            taken[other].add((file, base + distance))
    return answer_from_arrays(graph, files, bases)


def columns(*arrays: np.ndarray) -> Iterable[tuple[int, ...]]:
    """The rows of arrays of one length."""
    return zip(*(array.tolist() for array in arrays), strict=True)


def registers_used(problem: AllocationProblem, answer: dict[str, str] | None) -> str:
    """The vector registers of an answer, by the verifier; or the fault of the answer."""
    if answer is None:
        return "no answer"
    verdict = Verifier(problem).verify(answer)
    if not verdict.valid or verdict.registers_used is None:
        return f"wrong: {len(verdict.findings)} findings"
    return str(verdict.registers_used["vector"])


def scanned(problem: AllocationProblem) -> dict[str, str] | None:
    """The answer of linear scan."""
    try:
        return answer_from_assignment(problem, linear_scan(problem))
    except AllocationFailed:
        return None


def report(network: GraphNetwork, examples: Sequence[GraphExample], title: str) -> None:
    """A line for each function: vector registers of the network, linear scan and the label."""
    print(f"{title}\n{'id':18}{'network':>10}{'linear-scan':>13}{'label':>8}")
    for example in examples:
        graph, problem = example.graph, example.problem
        with torch.inference_mode():
            answer = decode(graph, network(example).numpy())
        label = answer_from_arrays(graph, graph.label_file, graph.label_base)
        found = [registers_used(problem, each) for each in (answer, scanned(problem), label)]
        print(f"{graph.id:18}{found[0]:>10}{found[1]:>13}{found[2]:>8}", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Train a graph network on kernels.")
    parser.add_argument("--dataset", default="verilocc/regalloc")
    parser.add_argument("--config", default="gfx90a", help="default, or an architecture")
    parser.add_argument("--split", default="train")
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--largest", type=int, default=2000, help="instructions")
    parser.add_argument("--steps", type=int, default=60)
    return parser.parse_args()


def main() -> None:
    """Loads, trains, and scores functions of sweep groups that were not trained on."""
    arguments = parse_arguments()
    torch.manual_seed(0)
    stream = rows_of(arguments.dataset, arguments.config, arguments.split)
    stream = stream.filter(lambda row: row["n_instructions"] <= arguments.largest)
    rows = list(stream.take(arguments.rows))
    groups = sorted({row["group"] for row in rows})
    held_out = set(groups[::4])
    seen = [row for row in rows if row["group"] not in held_out]
    vocabulary = OpcodeVocabulary.build(seen)
    network = GraphNetwork(vocabulary.size, size=32, rounds=2)
    train(network, [example_of(row, vocabulary) for row in seen], arguments.steps)
    others = [example_of(row, vocabulary) for row in rows if row["group"] in held_out]
    report(network, others, "vector registers used, in sweep groups that were not trained on")


if __name__ == "__main__":
    main()
