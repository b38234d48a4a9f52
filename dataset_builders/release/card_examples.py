"""How a dataset is loaded: the examples of a card. What is printed there runs as it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dataset_builders.statistics.summary import in_order
from dataset_builders.sweeps.experts import EXPERT_SWEEPS, OLD_LAYOUT
from dataset_builders.sweeps.splits import SPLITS

EMBEDDED = "mini"
_ARCHITECTURE_PAIR = ("gfx90a", "sm_80")
_LOADED = re.compile(r'load_dataset\("([\w.-]+/[\w.-]+)"', re.ASCII)


def usage(counts: Mapping[tuple[str, str, str, str], int], sweep: str, repository: str) -> str:
    """The section on loading, for a dataset on the Hub or for the embedded one.

    `counts` are rows by (track folder, architecture, family, split).
    """
    if sweep == EMBEDDED:
        text = _EMBEDDED
    elif sweep in EXPERT_SWEEPS:
        text = _OF_EXPERTS
    else:
        text = _ON_THE_HUB + _pair(counts) + _generalization(counts) + _COMMANDS
    if sweep not in OLD_LAYOUT:
        text = text.replace("import json\n", "")
        text = text.replace('json.loads(rows[0]["assignment"])', 'rows[0]["assignment"]')
    split = in_order(SPLITS, {key[3] for key in counts})[0]
    test = "test" if any(key[3] == "test" for key in counts) else split
    return text.replace("@NAME", repository).replace("@SPLIT", split).replace("@TEST", test)


def named(card: str, repository: str) -> str:
    """A card with its examples about another repository than the one that it names, if any."""
    found = _LOADED.search(card)
    if found is None:
        return card
    name = re.compile(rf"(?<![\w./-]){re.escape(found[1])}(?![\w/-])", re.ASCII)
    return name.sub(repository, card)


def _pair(counts: Mapping[tuple[str, str, str, str], int]) -> str:
    first, second = _ARCHITECTURE_PAIR
    there = {(arch, split) for folder, arch, _, split in counts if folder == "data"}
    return _PAIR if {(first, "train"), (second, "test")} <= there else ""


def _generalization(counts: Mapping[tuple[str, str, str, str], int]) -> str:
    """An example of one architecture's rows in a split that asks for generalization."""
    for split in in_order(SPLITS, {key[3] for key in counts if key[3].startswith("test_")}):
        archs = sorted(arch for folder, arch, _, s in counts if s == split and folder == "data")
        if archs:
            return _GENERALIZATION.replace("@ARCH", archs[-1]).replace("@UNSEEN", split)
    return ""


_EMBEDDED = """\
The dataset comes with verilocc-bench, as `mini`, and needs no network:

```
verilocc-bench evaluate --dataset mini --model linear-scan
```

```python
import json
from datasets import load_dataset
from verilocc_bench.dataset import embedded_path

rows = load_dataset(str(embedded_path()), split="test")  # of the config `default`
print(rows[0]["normalized"])  # what a model is shown
print(json.loads(rows[0]["assignment"]))  # the compiler's answer
```
"""

_OF_EXPERTS = """\
```python
import json
from datasets import load_dataset

rows = load_dataset("@NAME", "expert", split="@SPLIT")
print(rows[0]["normalized"])  # what a model is shown
print(json.loads(rows[0]["assignment"]))  # the answer of its authors or their compiler
```

An allocator is scored, every answer verified, with

```
verilocc-bench evaluate --dataset @NAME:expert --model linear-scan
```

The name `DATASET:expert` stands for these rows of a dataset on the Hub, and for the folder
`expert` of a dataset folder.
"""

_ON_THE_HUB = """\
```python
import json
from datasets import load_dataset

rows = load_dataset("@NAME", split="@SPLIT")  # of the config `default`
print(rows[0]["normalized"])  # what a model is shown
print(json.loads(rows[0]["assignment"]))  # the compiler's answer
```

Row by row, without downloading all of it first:

```python
from datasets import load_dataset

rows = load_dataset("@NAME", split="@SPLIT", streaming=True)
print(next(iter(rows))["id"])
```
"""

_PAIR = """
To train on one architecture and test on another:

```python
from datasets import load_dataset

name = "@NAME"
train, test = load_dataset(name, "gfx90a", split="train"), load_dataset(name, "sm_80", split="test")
```
"""

_GENERALIZATION = """
One architecture, on a split that asks for generalization:

```python
from datasets import load_dataset

rows = load_dataset("@NAME", "@ARCH", split="@UNSEEN")
```
"""

_COMMANDS = """
An allocator is scored, every answer verified, with

```
verilocc-bench evaluate --dataset @NAME --split @TEST --model linear-scan
```

What was loaded once is loaded again without a network (`HF_HUB_OFFLINE=1`). A downloaded folder is
loaded by its path, in Python and on the command line:

```
hf download @NAME --repo-type dataset --local-dir regalloc
verilocc-bench evaluate --dataset ./regalloc --split @TEST --model linear-scan
```
"""
