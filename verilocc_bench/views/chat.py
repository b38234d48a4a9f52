"""The config `chat`: rows as conversations for trainers, such as TRL's SFTTrainer.

A row gives one conversation in the prompt format `whole`, and one for each prompt in `window`;
they are what evaluation asks, with the compiler's answer. Rows of test splits have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.dataset import Row, read_parquet
from verilocc_bench.dataset.parquet import save_table
from verilocc_bench.dataset.parquet_batches import parquet_batches
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.targets import PUBLISHED
from verilocc_bench.views.training_turns import training_turns
from verilocc_bench.views.view_rows import problem_of

if TYPE_CHECKING:
    import pyarrow

CHAT = "chat"
"""The config, and the folder of its files."""

CHAT_FORMATS = ("whole", "window")
CHAT_SPLITS = ("train", "validation")


def chat_file(path: Path) -> Path | None:
    """The file with the conversations of a file of rows; None if these have none."""
    folder, arch, family, name = path.parts
    has_any = folder == "data" and arch in PUBLISHED and name.partition("-")[0] in CHAT_SPLITS
    return Path(CHAT, arch, family, name) if has_any else None


def chat_splits(places: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """The splits with conversations, of rows by (track folder, architecture, family, split)."""
    found = {place[3] for place in places if chat_file(Path(*place)) is not None}
    return [split for split in CHAT_SPLITS if split in found]


def write_chat(rows: Sequence[Row], path: Path) -> None:
    """Writes the conversations of some rows, first all in `whole`.

    The same rows give the same bytes.
    """
    import pyarrow as pa

    text, version = pa.string(), pa.int64()
    kinds = {"id": text, "arch": text, "family": text, "format": text, "version": version}
    schema = pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
        + [pa.field("messages", _messages(), nullable=False)]
    )
    table = pa.Table.from_pylist(list(_conversations(rows)), schema=schema)
    save_table(table, path, level=9, dictionaries=[*kinds])


def _messages() -> pyarrow.DataType:
    import pyarrow as pa

    kinds = [pa.field(name, pa.string(), nullable=False) for name in ("role", "content")]
    return pa.list_(pa.struct(kinds))


def wrong_conversation(folder: Path, file: str) -> tuple[str, str] | None:
    """The first conversation of a folder that a file of rows with labels does not give.

    The id of its row, and a message; None if there is no such conversation.
    """
    chat = chat_file(Path(file))
    if chat is None or not (folder / chat).is_file():
        return None
    try:
        expected = _conversations(read_parquet(folder / file, Row))
        batches = parquet_batches(folder / chat, lists=_messages())
        found = (each for batch in batches for each in batch.to_pylist())
        for number, (own, other) in enumerate(zip_longest(expected, found)):
            if own != other:
                row = str((own or other).get("id"))
                return row, f"conversation {number} of the file is not what its row gives"
    except InputError as error:
        return "", error.message
    return None


def _conversations(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for name in CHAT_FORMATS:
        style = get_prompt_format(name)
        for row in rows:
            about = {"id": row.id, "arch": row.arch, "family": row.family, "format": name}
            assert row.label is not None
            for turn in training_turns(style, problem_of(row), row.label):
                messages = [{"role": each.role, "content": each.content} for each in turn.messages]
                answer = {"role": "assistant", "content": turn.completion}
                yield {**about, "version": style.version, "messages": [*messages, answer]}
