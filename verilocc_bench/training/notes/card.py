"""The card of a model that keeps notes, from its folder's training.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.model.shipped import ALIASES, SHIPPED

CARD = """\
---
license: apache-2.0
library_name: verilocc-bench
tags: [register-allocation, compilers]
---
# {name}

{description}

A network of {parameters:,} parameters that allocates the registers of a GPU kernel, reading it
backwards, window by window. It copies a rule, linear scan over text intervals: the allocator
`reference-rule`. The program works out lists of free registers, first mentions and loops, and shows
them (assistance `intervals`): the prompt format `text-notes` of
[verilocc-bench](https://github.com/verilocc/verilocc-bench) (docs/prompt-formats.md). When it
answers, the rule drafts its words; the network reads the draft, and its own words count. It is not
a model of transformers; nothing in this folder is code.

```sh
pip install 'verilocc-bench[model]'
verilocc-bench evaluate --model {model}
```

## Training

By the recipe `{recipe}` from {begun}: {windows:,} windows ({tokens:,} tokens),
{share:.0%} of them of functions of the split `{split}` of `{dataset}` (hash `{hash}`), the others
made up. The answers are the rule's, never the compiler's.
At the end of training {wrong:.4%} of its words were not the rule's.

{validation}

Versions: {versions}.
"""

FURTHER = "-further"
"""The name of a recipe that trains a model further ends with this."""


def write_notes_card(folder: Path) -> None:
    """Writes README.md."""
    training: dict[str, Any] = read_json(folder / "training.json")
    recipe, measured, dataset = training["recipe"], training["measured"], training["dataset"]
    made = recipe["name"].removesuffix(FURTHER)
    name = ALIASES.get(made, made)
    text = CARD.format(
        name=name,
        recipe=recipe["name"],
        begun=_begun(training.get("base")),
        model=name if name in SHIPPED else "FOLDER",
        description=recipe["description"],
        parameters=measured["parameters"],
        windows=measured["windows"],
        tokens=measured["tokens"],
        share=recipe["function_share"],
        split=recipe["split"],
        dataset=dataset["name"],
        hash=dataset["hash"],
        wrong=measured["last_wrong"],
        validation=_validation(measured["validation"]),
        versions=", ".join(f"{name} {number}" for name, number in training["versions"].items()),
    )
    write_atomically(folder / "README.md", text)


def _begun(base: dict[str, str] | None) -> str:
    if base is None:
        return "random weights"
    return f"the weights of `{base['name']}`\n(revision `{base['revision'][:16]}`)"


def _validation(validation: dict[str, Any] | None) -> str:
    if validation is None:
        return "It was not validated."
    text = (
        f"Of the {validation['functions']} smallest functions of the validation split, decoded "
        f"freely, {validation['valid']} are valid"
    )
    ratio = validation["registers_ratio"]
    if ratio is not None:
        text += f", with {ratio:.3f} times the label's vector registers (geometric mean)"
    return text + "."
