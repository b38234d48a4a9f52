"""The dataset card: configs for the Hub, and what a reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from dataset_builders.release.splits import SPLITS
from verilocc_bench.targets import get_target

__all__ = ["dataset_card"]

_TEXT = """
# Register allocation for GPU kernels

Pairs of normalized machine IR with virtual registers and the compiler's own
register assignment, for GEMM and multi-head attention kernels. Each label
was verified before it was written. Built with verilocc-bench; the task is
that of VeriLocc (arXiv 2506.17506).

| config | rows |
|---|---|
| `default` | the assign track: the compiler gave every virtual register one register |
| `{families}` | the same by family |
| `{archs}` | the same by architecture |
| `split` | kernels whose live ranges the compiler split: no label |
| `raw` | the compiler's machine IR (`mir`) or machine code (`cubin`, in base64), by `id` |

## Rows

| track | architecture | family | {splits} |
|---|---|---|{dashes}|
{table}

Splits keep sweep groups whole: kernels that differ only in stages, waves,
register budget, epilogue, layout or architecture are all in one split.

## Provenance

Kernels are our own Triton sources, compiled without line information, so
that the same sweep gives the same bytes anywhere.{vendors}

Versions: {versions}. Options: {flags}. Sweep `{sweep}`, {points} points; what was rejected
is in `rejected.jsonl` with its reason, the hashes of all files in
`manifest.json`.
"""

_AMD = """

gfx90a and gfx942: machine IR from LLVM before its register allocation; the
label is what LLVM's greedy allocator chose."""

_NVIDIA = """

sm_80: ptxas is closed, and shows nothing before its allocation. The function
is recovered from its machine code: webs of definitions and uses become
virtual registers, and the registers that ptxas chose are the label. So the
order of the instructions, and any spill code, are ptxas's own, made after (and
for) that very assignment. Every definition and use was checked against the
life ranges that NVIDIA's disassembler prints."""


def dataset_card(rows: Mapping[tuple[str, str, str, str], int], manifest: Mapping[str, Any]) -> str:
    """The README.md of a dataset folder: YAML head and text.

    `rows` counts by (track folder, architecture, family, split).
    """
    head = {
        "license": "apache-2.0",
        "pretty_name": "Register allocation for GPU kernels",
        "tags": ["compilers", "register-allocation", "gpu", "code"],
        "task_categories": ["text-generation"],
        "configs": list(_configs(rows)),
    }
    vendors = {get_target(key[1]).vendor for key in rows}
    present = [split for split in SPLITS if any(key[3] == split for key in rows)]
    groups = sorted({key[:3] for key in rows})
    table = "\n".join(
        f"| {'assign' if folder == 'data' else folder} | {arch} | {family} | "
        + " | ".join(str(rows.get((folder, arch, family, split), 0)) for split in present)
        + " |"
        for folder, arch, family in groups
    )
    text = _TEXT.format(
        families="`, `".join(sorted({key[2] for key in rows})),
        archs="`, `".join(sorted({key[1] for key in rows})),
        splits=" | ".join(present),
        dashes="|".join("---" for _ in present),
        table=table,
        vendors="".join(
            text for vendor, text in (("amd", _AMD), ("nvidia", _NVIDIA)) if vendor in vendors
        ),
        versions=", ".join(f"{k} {v}" for k, v in sorted(manifest["versions"].items())),
        flags="; ".join(f"{k}: `{' '.join(v)}`" for k, v in manifest["flags"].items()),
        sweep=manifest["sweep"],
        points=manifest["points"],
    )
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n{text}"


def _configs(rows: Mapping[tuple[str, str, str, str], int]) -> Iterator[dict[str, Any]]:
    archs = sorted({key[1] for key in rows})
    families = sorted({key[2] for key in rows})
    selections: list[tuple[str, list[tuple[str, str, str]]]] = [
        ("default", [("data", "*", "*")]),
        *((family, [("data", "*", family)]) for family in families),
        *((arch, [("data", arch, "*")]) for arch in archs),
        ("split", [("split", "*", "*")]),
        ("raw", [("raw/data", "*", "*"), ("raw/split", "*", "*")]),
    ]
    for name, patterns in selections:
        files = []
        for split in SPLITS:
            paths = [
                f"{folder}/{arch}/{family}/{split}-*.parquet"
                for folder, arch, family in patterns
                if _has_rows(rows, folder.removeprefix("raw/"), arch, family, split)
            ]
            if paths:
                files.append({"split": split, "path": paths if len(paths) > 1 else paths[0]})
        if files:
            config: dict[str, Any] = {"config_name": name, "data_files": files}
            yield config | ({"default": True} if name == "default" else {})


def _has_rows(
    rows: Mapping[tuple[str, str, str, str], int], folder: str, arch: str, family: str, split: str
) -> bool:
    return any(
        key[0] == folder and arch in ("*", key[1]) and family in ("*", key[2]) and key[3] == split
        for key in rows
    )
