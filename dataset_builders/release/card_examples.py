"""How a dataset is loaded: the examples of a card. What is printed there runs as it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dataset_builders.release.card_text import card_words
from dataset_builders.statistics.summary import in_order
from dataset_builders.sweeps.experts import EXPERT_SWEEPS, OLD_LAYOUT
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.dataset import EMBEDDED

_LOADED = re.compile(r'load_dataset\("([\w.-]+/[\w.-]+)"', re.ASCII)


def usage(counts: Mapping[tuple[str, str, str, str], int], sweep: str, repository: str) -> str:
    """The section on loading, for a dataset on the Hub or for the embedded one.

    `counts` are rows by (track folder, architecture, family, split).
    """
    examples: Mapping[str, str] = card_words()["load"]
    splits = in_order(SPLITS, {key[3] for key in counts})
    archs = {s: sorted(a for t, a, _, s_ in counts if (t, s_) == ("data", s)) for s in splits}
    if sweep == EMBEDDED:
        parts = [examples["embedded"]]
    elif sweep in EXPERT_SWEEPS:
        parts = [examples["experts"]]
    else:
        parts = [examples["hub"]]
        if "gfx90a" in archs.get("train", ()) and "sm_80" in archs.get("test", ()):
            parts.append(examples["pair"])
        unseen = next((s for s in splits if s.startswith("test_") and archs[s]), None)
        if unseen is not None:
            example = examples["generalization"]
            parts.append(example.replace("@ARCH", archs[unseen][-1]).replace("@UNSEEN", unseen))
        parts.append(examples["commands"])
    test = "test" if "test" in splits else splits[0]
    text = "\n".join(parts)
    if sweep not in OLD_LAYOUT:
        text = text.replace("import json\n", "")
        text = text.replace('json.loads(rows[0]["assignment"])', 'rows[0]["assignment"]')
    return text.replace("@NAME", repository).replace("@SPLIT", splits[0]).replace("@TEST", test)


def named(card: str, repository: str) -> str:
    """A card with its examples about another repository than the one that it names, if any."""
    found = _LOADED.search(card)
    if found is None:
        return card
    name = re.compile(rf"(?<![\w./-]){re.escape(found[1])}(?![\w/-])", re.ASCII)
    return name.sub(repository, card)
