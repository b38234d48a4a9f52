"""The words of a model's card, around its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

TAGS = ("register-allocation", "compilers", "gpu", "code", "verilocc-bench")

BASE = "begun with `{pretrained}`"

LIMITS = (
    "It is not a compiler: it changes no instruction, splits and spills nothing, and where the "
    "registers do not suffice it has no answer. Every answer is to be judged by the verifier "
    "before it is used. Results with different assistance are "
    "not to be compared with each other."
)

SOURCES = (
    "The table says which prompts were learnt and whose answers: a label of the dataset. "
    "`of` counts the functions of the split that the source allows."
)

MORE = {
    "renamings": "with other names of physical registers {renamings} times more",
    "orderings": "with its blocks in other orders {orderings} times more",
}
"""What a key of a source adds to the examples, by key."""

RECIPE = "The whole recipe, as `verilocc-bench train` reads it:"

NOT_AT_HAND = (
    "The dataset was read from the Hub, and its {leakage} is not at hand here. With the dataset "
    "in a folder the card counts what its splits have in common with the training rows."
)

NOTHING_SHARED = (
    "No row of any other split is in the training data: none has an id, a text, a sweep group or "
    "a cluster of near-duplicates in common with a training row."
)

SOMETHING_SHARED = "Rows of {splits} have something in common with training rows; see the table."

DISTANCES = (
    "Counted over all rows of `{split}`, of which training may have taken a part. Distances are "
    "the dataset's own, to the nearest row of either track there: edit distance of instruction "
    "sequences over the longer length, 0 is the same and 1 has nothing in common."
)

RESULTS = (
    "*valid* is the share of kernels whose first answer the verifier accepts (pass@1); the rest "
    "is over these kernels alone. *registers*: vector registers over the compiler's, "
    "geometric mean; *fewer*, *more*: kernels with fewer or more than the compiler; *above "
    "bound*: registers above the most that are live at once, mean; *bank conflicts*: reads that "
    "wait for a register bank, weighted by loops, summed."
)

_PYTHON = """\
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("{name}")
tokenizer = AutoTokenizer.from_pretrained("{name}")
```"""


def widths(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about the widths of the windows that were learnt, for a recipe's sources."""
    for source in sources:
        if learnt := source.get("new_registers"):
            told = ", ".join(map(str, learnt))
            yield (
                f"Windows with at most {told} virtual registers that are new were learnt; it is "
                f"asked about {learnt[0]} at a time, where `--window-registers` says nothing else."
            )


def augmentation(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about the variants of each function that were learnt, for a recipe's sources."""
    for source in sources:
        told = [text for key, text in MORE.items() if source.get(key)]
        if told:
            yield f"`{source['format']}` was shown {' and '.join(told)}.".format(**source)


def usage(model_name: str, formats: Sequence[str]) -> Iterator[str]:
    """The parts of the card that say how to use the model of this name and these formats."""
    yield "## How to use it"
    commands = [
        f"verilocc-bench evaluate --model {model_name} --prompt-format {each} "
        "--decoding constrained --sampling greedy"
        for each in formats
    ]
    yield "With verilocc-bench and its extra `model` installed:"
    yield "```sh\n" + "\n".join(commands) + "\n```"
    told = "With `--decoding free` the model says what it likes. "
    yield f"{told}The model by itself, where FOLDER is its folder:"
    yield _PYTHON.format(name="FOLDER")
