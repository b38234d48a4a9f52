"""Trains the adapter of an exported run: `python launcher.py --minutes 12`.

It needs torch, transformers and peft, and no network. The adapter is saved as
it goes, and goes on from what is saved; `--merge FOLDER` writes the whole model.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch
import transformers
from safetensors.torch import save_file

HERE = Path(__file__).parent
STATE = "state.json"


def main() -> None:
    """Reads the arguments, and trains or merges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=12.0, help="of training, at most")
    parser.add_argument("--save-minutes", type=float, default=2.0, help="between savings")
    parser.add_argument("--adapter", type=Path, default=HERE / "adapter")
    parser.add_argument("--merge", type=Path, help="write base and adapter as one model")
    options = parser.parse_args()
    settings = json.loads((HERE / "settings.json").read_text())
    if options.merge is not None:
        merge(settings, options.adapter, options.merge)
    else:
        train(settings, options)


def train(settings: dict[str, Any], options: argparse.Namespace) -> None:
    """Trains until the steps or the minutes are over."""
    began = time.monotonic()
    wanted = settings["training"]
    state: dict[str, Any] = {"step": 0, "row": 0, "seconds": 0.0}
    torch.manual_seed(settings["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(wanted["threads"])
    half = device.type == "cuda" or wanted["precision"] == "bfloat16"
    base = transformers.AutoModelForCausalLM.from_pretrained(
        HERE / "base",
        dtype=torch.bfloat16 if half else torch.float32,
        attn_implementation=settings["attention"],
        local_files_only=True,
    )
    if (options.adapter / STATE).exists():
        state = json.loads((options.adapter / STATE).read_text())
        network = peft.PeftModel.from_pretrained(base, options.adapter, is_trainable=True)
    else:
        network = peft.get_peft_model(base, peft.LoraConfig(**settings["lora"]))
    if wanted["checkpointing"]:
        base.gradient_checkpointing_enable({"use_reentrant": False})
        base.enable_input_require_grads()
    network.to(device).train()
    weights = [each for each in network.parameters() if each.requires_grad]
    betas = (0.9, wanted["adam_beta2"])
    optimizer = torch.optim.AdamW(weights, betas=betas, weight_decay=wanted["weight_decay"])
    rows, saved, before = packed_rows(settings), time.monotonic(), state["seconds"]
    for _ in range(state["row"]):
        next(rows)
    while state["step"] < wanted["steps"]:
        elapsed = time.monotonic() - began
        if elapsed >= 60 * options.minutes:
            break
        loss = 0.0
        # The schedule ends with the steps or with the minutes, whichever come first.
        done = max(state["step"] / wanted["steps"], elapsed / (60 * options.minutes))
        warm = min(1.0, (state["step"] + 1) / max(wanted["warmup_steps"], 1))
        for group in optimizer.param_groups:
            group["lr"] = wanted["learning_rate"] * warm * 0.5 * (1 + math.cos(math.pi * done))
        count = wanted["batch"] * wanted["accumulation"]
        for _ in range(count):
            row = {name: value.to(device) for name, value in next(rows).items()}
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                part = network(**row, use_cache=False).loss / count
            part.backward()
            loss += float(part)
        if wanted["gradient_norm"]:
            torch.nn.utils.clip_grad_norm_(weights, wanted["gradient_norm"])
        optimizer.step()
        optimizer.zero_grad()
        state["step"], state["row"] = state["step"] + 1, state["row"] + count
        state["seconds"] = round(before + time.monotonic() - began, 1)
        if state["step"] == 1 or state["step"] % wanted["log_steps"] == 0:
            print(json.dumps({**state, "loss": round(loss, 4)}), flush=True)
        if time.monotonic() - saved >= 60 * options.save_minutes:
            save(network, options.adapter, state)
            saved = time.monotonic()
    save(network, options.adapter, state)


def packed_rows(settings: dict[str, Any]) -> Iterator[dict[str, torch.Tensor]]:
    """Rows of several examples, again and again in other orders; they do not see each other."""
    parts = [dict(np.load(path)) for path in sorted((HERE / "shards").glob("*.npz"))]
    examples = [
        (part["input_ids"][a:b], part["labels"][a:b])
        for part in parts
        for a, b in zip(part["starts"][:-1], part["starts"][1:], strict=True)
    ]
    most = settings["training"]["maximum_tokens"]
    generator = random.Random(settings["seed"])  # noqa: S311  no secret depends on it
    row: list[tuple[Any, Any]] = []
    while True:
        generator.shuffle(examples)
        for example in examples:
            if row and sum(len(tokens) for tokens, _ in row) + len(example[0]) > most:
                yield packed(row)
                row = []
            row.append(example)


def packed(row: list[tuple[Any, Any]]) -> dict[str, torch.Tensor]:
    """One row: positions begin anew with each example, whose first token is not learnt."""
    ids = np.concatenate([tokens for tokens, _ in row]).astype(np.int64)
    labels = np.concatenate([own for _, own in row]).astype(np.int64)
    positions = np.concatenate([np.arange(len(tokens)) for tokens, _ in row])
    labels[positions == 0] = -100
    names = {"input_ids": ids, "labels": labels, "position_ids": positions}
    return {name: torch.from_numpy(values)[None] for name, values in names.items()}


def save(network: Any, folder: Path, state: dict[str, Any]) -> None:
    """Writes the adapter in bfloat16; the state last, so that it belongs to whole weights."""
    weights = peft.get_peft_model_state_dict(network, save_embedding_layers=False)
    half = {name: value.to(torch.bfloat16).contiguous() for name, value in weights.items()}
    folder.mkdir(parents=True, exist_ok=True)
    network.peft_config["default"].save_pretrained(folder)
    partial = folder / "partial.safetensors"
    save_file(half, partial, metadata={"format": "pt"})
    partial.replace(folder / "adapter_model.safetensors")
    (folder / STATE).write_text(json.dumps(state) + "\n")


def merge(settings: dict[str, Any], adapter: Path, folder: Path) -> None:
    """Writes base and adapter as one model, which `verilocc-bench evaluate --model` takes."""
    base = transformers.AutoModelForCausalLM.from_pretrained(HERE / "base", local_files_only=True)
    merged = peft.PeftModel.from_pretrained(base, adapter).merge_and_unload()
    merged.config.verilocc_bench = settings["advice"]
    merged.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(HERE / "base").save_pretrained(folder)


if __name__ == "__main__":
    main()
