"""Makes the leaderboard's page from revalidated submissions.

    python -m leaderboard.render ENTRIES --output SITE [--dataset DATASET]

ENTRIES is a folder with documents that leaderboard.revalidate wrote. SITE is a
folder of static files that need no server and nothing from elsewhere: ready as
a static Space. With a copy of the dataset, example kernels are drawn.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from leaderboard.boards import Board, boards
from leaderboard.rendering.entries import BoardEntry, read_entries
from leaderboard.rendering.pages import BoardPage, board_page, check_packages, entry_page
from leaderboard.rendering.register_picture import register_picture
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import EMBEDDED, Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.report.occupation import occupation_of

MADE_BY = "Made by `python -m leaderboard.render`"

SPACE = f"""\
---
title: verilocc-bench leaderboard
emoji: 🧮
colorFrom: blue
colorTo: green
sdk: static
app_file: index.html
pinned: false
license: apache-2.0
short_description: Register allocation on GPU kernels, verified again
---

# verilocc-bench leaderboard

Register allocators for GPU kernels: every answer is verified again by two checkers that share no
code.
{MADE_BY}; how to submit: docs/leaderboard.md of verilocc-bench.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.render", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("entries", type=Path, help="a folder of revalidated submissions (*.json, however deep)")
    add("--output", type=Path, required=True, help="the folder of the site")
    add("--dataset", help="a copy of the boards' dataset, to draw examples from")
    options = parser.parse_args(arguments)
    try:
        written = render(options.entries, options.output, dataset=options.dataset)
    except (InputError, OSError) as error:
        print(f"render: {error}", file=sys.stderr)
        return 2
    print(f"written: {options.output}/index.html and {written - 1} files more")
    return 0


def render(entries: Path, output: Path, *, dataset: str | None = None) -> int:
    """Writes the site, says how many files it has, and deletes other files of the folder.

    Raises InputError for entries that cannot be read, and for a folder that
    does not hold a site.
    """
    if not entries.is_dir():
        raise InputError("expected a folder of revalidated submissions", source=entries)
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise InputError("expected a folder to write to", source=output)
    # Only what an earlier run wrote may be deleted.
    read_me = output / "README.md"
    is_site = read_me.is_file() and MADE_BY in read_me.read_text("utf-8", errors="replace")
    if output.exists() and any(output.iterdir()) and not is_site:
        raise InputError("expected a new folder, or one of an earlier site", source=output)
    check_packages()
    found = read_entries(entries)
    if dataset not in (None, EMBEDDED):
        _check_dataset(dataset)
    with tempfile.TemporaryDirectory(prefix="verilocc-bench-") as temporary:
        # A folder of its own: the temporary one is closed to all others, a web server among them.
        site = Path(temporary) / "site"
        site.mkdir()
        for path, content in _files(found, dataset, site):
            write_atomically(site / path, content)
        count = sum(path.is_file() for path in site.rglob("*"))
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(site, output)
    return count


def _files(
    entries: Sequence[BoardEntry], dataset: str | None, site: Path
) -> Iterator[tuple[str, str]]:
    known = boards()
    for entry in entries:
        if (entry.board, entry.hash) not in [(board.name, board.hash) for board in known]:
            name = entry.submission["name"]
            raise InputError(f"{name!r} is of no board, or of another revision: {entry.board}")
    shown = [board for board in known if any(entry.board == board.name for entry in entries)]
    for number, board in enumerate(shown or known[:1]):
        page = BoardPage(board, [entry for entry in entries if entry.board == board.name], shown)
        text = board_page(page)
        yield f"{board.name}.html", text
        if number == 0:
            yield "index.html", text
        rows = {row.id: row for row in _rows(board, dataset)}
        for entry in tqdm(
            page.entries, desc=board.name, unit=" entries", leave=False, disable=None
        ):
            pictures = _draw(entry, rows, site)
            yield entry.path, entry_page(entry, page, pictures)
    yield "README.md", SPACE


def _check_dataset(dataset: str) -> None:
    """Raises InputError if the copy has the functions of no board, or cannot be read."""
    errors = []
    for board in boards():
        if not board.is_embedded:
            copy = board.copy_in(dataset)
            try:
                if load_rows(copy, split=board.split, track=board.track).hash == board.hash:
                    return
            except InputError as error:
                errors.append(error)
    if errors:
        raise errors[0]
    raise InputError("has the functions of no board, as it was frozen", source=dataset)


def _rows(board: Board, dataset: str | None) -> tuple[Row, ...]:
    """The functions of a board; empty without a copy of its dataset."""
    if dataset is None and not board.is_embedded:
        return ()
    try:
        found = load_rows(board.copy_in(dataset), split=board.split, track=board.track)
    except InputError:  # a copy may have one track alone
        return ()
    return found.rows if found.hash == board.hash else ()


def _draw(entry: BoardEntry, rows: Mapping[str, Row], site: Path) -> dict[str, str]:
    """Pictures of an entry's examples: addresses relative to its page, by kernel."""
    found = {}
    for example in entry.document.get("examples", ()):
        row = rows.get(example["id"])
        if row is None:
            continue
        path = Path(entry.path).with_suffix("") / f"{row.id}.svg"
        problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
        title = f"{row.arch} {row.family}, {entry.submission['name']}"
        occupation = occupation_of(problem, example["assignment"])
        write_atomically(site / path, register_picture(problem, occupation, title))
        found[row.id] = f"{path.parent.name}/{path.name}"
    return found


if __name__ == "__main__":
    sys.exit(main())
