"""Packs what `sides` found into a folder for `measure`: launches of the sizes that users run.

    python -m benchmarks.silicon.pack WORK -o FOLDER [--scale N]

Grids fill the card several times. Where the tiles of one launch do not, the grid is deeper:
kernels do not ask for that number, so its layers compute the same.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from verilocc_bench.backends.nvidia.tools import tool_version
from verilocc_bench.edits.answer_files import read_answer
from verilocc_bench.files import write_atomically
from verilocc_bench.measuring.blocks import MULTIPROCESSORS
from verilocc_bench.measuring.folder import (
    MeasuredKernel,
    MeasuredLaunch,
    MeasuredSide,
    write_folder,
)
from verilocc_bench.references import launch_for

_MULTIPROCESSORS = 132
_FILLED = 4
_LENGTH, _TOKENS = 4096, 2048


def sizes_of(document: dict[str, Any], scale: int) -> tuple[int, int]:
    """The tiles and the depth of a launch; `scale` divides the lengths."""
    kernel, parameters = document["kernel"], document["parameters"]
    rows, columns = parameters.get("block_m", 64), parameters.get("block_n", 64)
    if kernel.startswith("gemm"):
        common = kernel == "gemm" and rows >= 64 and columns >= 64
        is_slow = parameters["dtype"] == "fp32" or document["spills"] > 50
        length = (_LENGTH if common and not is_slow else _LENGTH // 4) // scale
        if kernel == "gemm_experts":
            length = min(length, 512)
        tiles = max(2, min(64, length // max(rows, columns)))
        depth = max(5, length // parameters.get("block_k", 32))
        if kernel == "gemm_split_k":
            depth = max(5, depth // parameters["split_k"])
        return tiles, depth
    tokens = _TOKENS // scale
    if kernel == "mha_forward" and not parameters["matrix_bias"] | parameters["variable_length"]:
        tokens *= 2
    if kernel in {"mha_backward_dq", "mha_backward_dkdv"}:
        tokens //= 2
    if kernel == "mha_backward_dkdv":
        rows, columns = columns, rows
    if kernel == "mha_decode":
        return 2, max(5, tokens // 2 // columns)
    return max(2, tokens // rows), max(5, tokens // columns)


def packed(folder: Path, scale: int) -> MeasuredKernel | None:
    """The kernel of a folder; None for one that is not finished."""
    if not (folder / "sides.json").exists():
        return None
    document = json.loads((folder / "sides.json").read_text())
    tiles, depth = sizes_of(document, scale)
    reference = {
        "kernel": document["kernel"], "parameters": document["parameters"],
        "tiles": tiles, "depth": depth,
    }  # fmt: skip
    kept = folder / f"grid-{tiles}.json"
    if not kept.exists():
        # The grid does not depend on the depth, and a shallow launch is made sooner.
        launch = launch_for(document["kernel"], document["parameters"], tiles=tiles, depth=2)
        write_atomically(kept, json.dumps(launch.grid) + "\n")
    x, y, z = json.loads(kept.read_text())
    blocks = MULTIPROCESSORS["sm_90"].holds(
        document["sides"]["own"]["registers"], document["threads"], document["shared"]
    )
    atomic = document["parameters"].get("reduction") == "atomic"
    layers = 1 if atomic else max(1, -(-_FILLED * _MULTIPROCESSORS * blocks // (x * y * z)))
    sides = []
    for name, facts in document["sides"].items():
        answer = folder / f"{name}.answer.json"
        sides.append(
            MeasuredSide(
                name=name,
                title=f"ptxas {tool_version('ptxas')}" if name == "own" else name,
                role=facts["role"],
                code=(folder / f"{name}.cubin").read_bytes(),
                answer=read_answer(answer)[1] if answer.exists() else None,
                registers=facts["registers"],
                runnable=facts.get("runnable"),
                shared_memory_bytes=facts.get("shared"),
            )
        )
    return MeasuredKernel(
        document["key"], document["id"], "sm_90", document["kernel"],
        MeasuredLaunch((x, y, z * layers), document["threads"], document["shared"], reference),
        sides,
    )  # fmt: skip


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--scale", type=int, default=1, help="divides the lengths, to rehearse")
    options = parser.parse_args()
    if options.output.exists():
        shutil.rmtree(options.output)
    kernels = []
    for folder in sorted(options.work.iterdir(), key=lambda each: each.stat().st_mtime):
        found = packed(folder, options.scale) if folder.is_dir() else None
        if found is not None:
            print(found.key, found.launch.grid, f"{len(found.sides)} sides", flush=True)
            kernels.append(found)
    tools = {name: tool_version(name) for name in ("ptxas", "nvdisasm")}
    write_folder(kernels, options.output, tools)
    shutil.copy(Path(__file__).parent / "measure.sh", options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
