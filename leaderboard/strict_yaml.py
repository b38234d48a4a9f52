"""YAML of strangers as plain data: no aliases, tags or repeated keys; bounded size and depth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from verilocc_bench.errors import InputError
from verilocc_bench.files import decode_text

LIMIT_BYTES = 64 << 10
DEPTH = 8
_KEY = re.compile(r"[A-Za-z0-9_@./ -]{1,60}", re.ASCII)
"""The form of a key: messages show keys."""


class _Refused(Exception):
    """A refusal of this reader, with the place."""

    def __init__(self, message: str, mark: yaml.Mark) -> None:
        super().__init__(message)
        self.message, self.mark = message, mark


NUMBER_LENGTH = 40


class _Loader(yaml.SafeLoader):
    """SafeLoader without aliases, which can expand without bounds, and without repeated keys."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node. Raises _Refused for an alias, which could repeat it without end."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _Refused("anchors and aliases are not taken", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _Refused("tags are not taken", event.start_mark)
        self.depth += 1
        if self.depth > DEPTH:
            raise _Refused(f"nested more than {DEPTH} deep", event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        """A mapping of texts. Raises _Refused for a repeated key, which SafeLoader would accept."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str) or not _KEY.fullmatch(name):
                raise _Refused("expected a plain name as a key", key.start_mark)
            if name in seen:
                raise _Refused(f"the key {name[:40]!r} stands twice", key.start_mark)
            seen.add(name)
        return dict(super().construct_mapping(node, deep=True))

    def construct_number(self, node: Any) -> Any:
        """A whole number. Raises _Refused for one that is too long for Python to write."""
        if len(node.value) > NUMBER_LENGTH:
            raise _Refused(f"a number of {len(node.value):,} characters", node.start_mark)
        return self.construct_yaml_int(node)

    def flatten_mapping(self, node: Any) -> None:
        """Treats merge keys (`<<`) as plain keys."""


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)


def parse_yaml(data: bytes, source: Path) -> Any:
    """The one document in some bytes. Raises InputError, with file and line, for anything else."""
    if len(data) > LIMIT_BYTES:
        raise InputError(
            f"the file has {len(data):,} bytes, more than the {LIMIT_BYTES:,} accepted",
            source=source,
        )
    text = decode_text(data, source)
    try:
        return yaml.load(text, _Loader)  # noqa: S506  a SafeLoader
    except _Refused as refused:
        mark = refused.mark
        raise InputError(
            refused.message, source=source, line=mark.line + 1, column=mark.column + 1
        ) from None
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        line = None if place is None else place.line + 1
        raise InputError(f"expected YAML: {error.problem}", source=source, line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        # Characters that YAML does not have, numbers with too many digits, impossible dates.
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"expected YAML: {reason}", source=source) from None
