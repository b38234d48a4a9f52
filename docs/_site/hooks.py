"""What mkdocs does besides: generated pages, and links to files outside of docs/."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from verilocc_bench.cli import build_parser
from verilocc_bench.machine.decoding import known_opcodes

ROOT = Path(__file__).resolve().parents[2]
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")
_EXPORTS = ROOT / "verilocc_bench" / "__init__.pyi"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the code."""
    for name, content in (
        ("python", python_page()),
        ("command-line", command_line_page()),
        ("results-schema", schema_page()),
        ("opcodes", opcodes_page()),
    ):
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Makes links that leave docs/ links into the repository; they must lead to a file."""
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        target = (folder / match[1] / match[2]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return match[0]
        if not target.exists():
            raise FileNotFoundError(f"{page.file.src_uri}: {match[2]} is not in the repository")
        kind = "tree" if target.is_dir() else "blob"
        path = target.relative_to(ROOT).as_posix()
        return f"]({config.repo_url}/{kind}/main/{path}{match[3] or ''})"

    return _OUTSIDE.sub(link, markdown)


def python_page() -> str:
    """One entry for each name that the package exports, from its docstring."""
    names = re.findall(r"^from (\S+) import (\w+) as (\w+)$", _EXPORTS.read_text(), re.M)
    entries = [f"::: {module}.{name}\n" for module, name, _ in names]
    return (
        "# The Python interface, name by name\n\n"
        "For whoever writes scripts. `import verilocc_bench as vb` gives these names; "
        "[the guide](../python-api.md) shows them at work.\n\n" + "\n".join(entries)
    )


def command_line_page() -> str:
    """The help of every command, from the parsers."""
    lines = [
        "# The command line",
        "",
        "For whoever asks for an option. Exit status: 0 done, 1 an answer that is wrong, 2 bad",
        "input or usage, 69 a server or the machine failed every time, 70 an error of this",
        "program, 130 interrupted.",
    ]
    for name, parser in _commands(build_parser()):
        lines += ["", f"## {name}", "", "```text", _help(parser), "```"]
    return "\n".join(lines) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command.prog, command
                yield from _commands(command)


def _help(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=96)
    return parser.format_help().rstrip()


def schema_page() -> str:
    """The JSON schema of results.json as a table of keys."""
    path = ROOT / "verilocc_bench" / "evaluation" / "results.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text())
    rows = [
        f"| `{key}` | {_kind(value)} | {' '.join(value.get('description', '').split())} |"
        for key, value in _properties(schema, schema)
    ]
    return "\n".join(
        [
            "# The schema of results.json",
            "",
            "For whoever reads results by program. [Results](../results.md) explains the figures;",
            f"the schema itself is [results.schema.json](../../{path.relative_to(ROOT)}).",
            "",
            "| key | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _properties(
    part: dict[str, Any], schema: dict[str, Any], prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, dict[str, Any]]]:
    part = _resolved(part, schema)
    children = [*part.get("properties", {}).items()]
    if isinstance(other := part.get("additionalProperties"), dict):
        children.append(("…", other))
    for key, value in children:
        yield f"{prefix}{key}", {**_resolved(value, schema), **value}
        if depth < 3:
            yield from _properties(value, schema, f"{prefix}{key}.", depth + 1)


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = part.get("$ref")
    if reference is None:
        return part
    found: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)


def _kind(value: dict[str, Any]) -> str:
    kind = value.get("type", "enum" if "enum" in value else "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def opcodes_page() -> str:
    """The opcodes that the interpreter of machine code knows."""
    names = sorted(known_opcodes())
    return "\n".join(
        [
            "# Opcodes that can be executed",
            "",
            f"For whoever executes a kernel of their own: the {len(names)} opcodes of gfx90a and",
            "gfx942 that [the interpreter](../execution.md) knows. It refuses any other by name",
            "before anything runs.",
            "",
            *(f"- `{name}`" for name in names),
            "",
        ]
    )
