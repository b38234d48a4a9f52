"""Results documents made up for tests: consistent, and the same for the same seed."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

SIZES = (("1-255", 1), ("256-511", 256), ("512-1023", 512), ("1024-2047", 1024), ("2048-", 2048))


def make_document(
    model: str = "linear-scan",
    *,
    seed: int = 0,
    kernels: int = 24,
    samples: int = 1,
    k: tuple[int, ...] = (1,),
    chance: float = 0.7,
    assistance: str = "text",
    decoding: str = "free",
    track: str = "assign",
    dataset: str = "mini",
    dataset_hash: str = "ab" * 32,
) -> dict[str, Any]:
    """A run whose larger kernels are valid less often."""
    generator = random.Random(seed)
    calls = 4 if decoding == "guided" else None
    rows = [
        make_kernel(generator, i, samples, chance, track, guided=calls is not None)
        for i in range(kernels)
    ]
    config: dict[str, Any] = {"assistance": assistance, "decoding": decoding, "k": list(k)}

    def record(chosen: list[dict[str, Any]]) -> dict[str, Any]:
        return make_record(chosen, config, calls, seed)

    def by(key: Any) -> dict[str, Any]:
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(key(row), []).append(row)
        return {name: record(found[name]) for name in sorted(found)}

    return {
        "results": {**by(lambda row: row["task"]), "overall": record(rows)},
        "groups": {
            "architecture": by(lambda row: row["task"].split("/")[0]),
            "family": by(lambda row: row["task"].split("/")[1]),
            "size": by(size_of),
            "split": by(lambda row: row["split"]),
        },
        "kernels": rows,
        "config": {
            "model": model,
            "revision": "3ef162f9f8839adb",
            "assistance": assistance,
            "decoding": decoding,
            "options": {"temperature": 0.8, "verifier_calls": calls},
            "prompt": {"format": "whole", "version": 1, "hash": "cd" * 32, "few_shot": 0},
            "track": track,
            "budget": "full",
            "split": "test",
            "arch": None,
            "family": None,
            "limit": None,
            "samples": samples,
            "k": list(k),
        },
        "versions": {"python": "3.11.7", "verilocc-bench": "0.1.0"},
        "dataset": {"name": dataset, "revision": None, "hash": dataset_hash},
        "seed": seed,
        "git_revision": None,
        "timing": {
            f"{part}_seconds": 1.5 for part in ("prepare", "allocate", "verify", "measure", "wall")
        },
        "date": "2026-11-21T17:00:00Z",
    }


def make_kernel(
    generator: random.Random, number: int, samples: int, chance: float, track: str, *, guided: bool
) -> dict[str, Any]:
    registers = 40 * 2 ** (number % 7)
    odds = chance ** (1 + number % 7 / 3)
    drawn = [generator.random() < odds for _ in range(samples)]
    valid = any(drawn)
    bound = 16 + 12 * (number % 7)
    label = bound + generator.randrange(6)
    occupancy = 8 - number % 7 // 2

    def measured(value: int) -> int | None:
        return value if valid else None

    return {
        "id": f"{number:016x}",
        "task": f"{('gfx90a', 'gfx942', 'sm_80')[number % 3]}/{('gemm', 'mha')[number % 2]}",
        "split": "test",
        "n_instructions": 2 * registers,
        "n_virtual_registers": registers,
        "samples": samples,
        "valid": sum(drawn),
        "infrastructure_failures": 0,
        "first_valid": drawn.index(True) if valid else None,
        "verifier_calls": measured(1 + number % 4) if guided else None,
        "registers": measured(bound + generator.randrange(9)),
        "label_registers": measured(label),
        "bound": measured(bound),
        "occupancy": measured(occupancy - number % 2),
        "label_occupancy": measured(occupancy),
        "identity_copies": measured(number),
        "spill_cost": measured(10 * number) if track == "split" else None,
        "move_cost": measured(number) if track == "split" else None,
        "bank_conflicts": measured(3 * number),
        "bank_conflicts_all": measured(number),
    }


def size_of(row: dict[str, Any]) -> str:
    return [name for name, first in SIZES if row["n_virtual_registers"] >= first][-1]


def make_record(
    rows: list[dict[str, Any]], config: dict[str, Any], calls: int | None, seed: int
) -> dict[str, Any]:
    found = [row for row in rows if row["valid"]]
    samples = sum(row["samples"] for row in rows)
    valid = sum(row["valid"] for row in rows)
    ratios = [row["registers"] / row["label_registers"] for row in found]
    record: dict[str, Any] = {"n": len(rows), "samples": samples}
    record |= {key: config[key] for key in ("assistance", "decoding")}
    for k in config["k"]:
        chances = [chance_of_success(row["samples"], row["valid"], k) for row in rows]
        average = sum(chances) / len(chances)
        record |= {f"pass@{k}": average}
        record |= {f"pass@{k}_low": average * 0.8, f"pass@{k}_high": average * 0.8 + 0.2}
    share = 1 / len(found) if found else None
    record |= {
        "registers_ratio": math.prod(ratios) ** (1 / len(found)) if found else None,
        "share_better": share and share * sum(ratio < 1 for ratio in ratios),
        "share_equal": share and share * sum(ratio == 1 for ratio in ratios),
        "share_worse": share and share * sum(ratio > 1 for ratio in ratios),
        "gap_to_bound": share and share * sum(row["registers"] - row["bound"] for row in found),
        "occupancy_gained": 0 if found else None,
        "occupancy_lost": sum(row["occupancy"] < row["label_occupancy"] for row in found),
        "copies_removed": sum(row["identity_copies"] for row in found),
        "bank_conflicts": sum(row["bank_conflicts"] for row in found),
        "bank_conflicts_all": sum(row["bank_conflicts_all"] for row in found),
        "spill_cost": 12.5 if found and found[0]["spill_cost"] is not None else None,
        "move_cost": 1.5 if found and found[0]["move_cost"] is not None else None,
        "verifier_calls": 1.75 if calls else None,
        "success_by_calls": {str(n): n / (n + 1) for n in range(1, calls + 1)} if calls else None,
        "totals": {"completion_tokens": 120 * samples},
        "allocate_seconds": 0.01 * samples + seed,
        "verify_seconds": 0.002 * samples,
        "failures": {"invalid": samples - valid, "unparsable": 1},
        "unparsable": {"no JSON": 1},
        "findings": {"overlap": samples - valid},
        "infrastructure_failures": 0,
    }
    return record


def chance_of_success(samples: int, valid: int, k: int) -> float:
    """pass@k by its product form, 1 - prod (1 - k / i) for i from n - c + 1 to n."""
    if samples - valid < k:
        return 1.0
    return 1.0 - math.prod(1 - k / i for i in range(samples - valid + 1, samples + 1))


def write_document(folder: Path, document: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(document))
    return folder
