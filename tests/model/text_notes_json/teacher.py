"""A model that answers by the rule, and has read nothing but the prompt."""

from __future__ import annotations

import json
from typing import Any

Lists = dict[str, dict[str, list[str]]]


def answer(prompt: str) -> str:
    """The answer to a prompt of the format `text-notes-json`."""
    asked, _ = json.JSONDecoder().raw_decode(prompt)
    return json.dumps(_loop(asked) if "loop" in asked else _Sheet(asked).read())


def _loop(asked: dict[str, Any]) -> list[dict[str, str]]:
    noted, said = set(asked["noted"]), []
    for name, *more in asked["loop"]:
        if more == ["begins"]:
            noted.discard(name)
            said.append({name: "crossed out"})
        else:
            said.append({name: "known" if name in noted else "new"})
            noted.add(name)
    return said


class _Sheet:
    """The notes of one window."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.lines: dict[str, str] = asked["notes"]
        self.free: Lists = asked["free"]
        self.items: list[list[str]] = asked["read"]
        self.changed: list[tuple[str, str]] = []

    def read(self) -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = []
        for place, (name, size, *marks) in enumerate(self.items):
            width, _, files = size.partition(" of ")
            is_new = name not in self.lines
            if is_new:
                block = self._first(int(width), files.split(" or "))
                if block is None:
                    return [*said, {name: None}]
                self.lines[name] = block[2]
            element: dict[str, Any] = {name: self.lines[name]}
            said.append(element)
            register = self.lines[name]
            if "begins" in marks:
                del self.lines[name]
            self.changed = []
            file = register.rstrip("0123456789")
            number = int(register[len(file) :])
            wanted = is_new and file in self._wanted(place, with_line=name)
            if is_new and wanted:
                assert block is not None
                self.free[file][block[1]].remove(register)
                self.changed.append((file, block[1]))
                self._put(file, range(number + int(width), number + int(block[1])))
            if file in self._wanted(place):
                for lanes in freed_lanes(marks, int(width)):
                    self._put(file, range(number + lanes.start, number + lanes.stop))
            if self.changed:
                element["free"] = self._written()
        return said

    def _first(self, width: int, files: list[str]) -> tuple[str, str, str] | None:
        for file in files:
            for size, blocks in self.free.get(file, {}).items():
                if int(size) >= width and blocks:
                    return None if blocks[0] == "+" else (file, size, blocks[0])
        return None

    def _wanted(self, place: int, with_line: str = "") -> set[str]:
        """The files from which those without a line that are still to come may take."""
        return {
            file
            for name, size, *_ in self.items[place + 1 :]
            if name not in self.lines and name != with_line
            for file in size.partition(" of ")[2].split(" or ")
        }

    def _put(self, file: str, units: range) -> None:
        blocks: list[tuple[int, int]] = []
        first = units.start
        while first < units.stop:
            sizes = map(int, self.free[file])
            fitting = [s for s in sizes if not first % s and first + s <= units.stop]
            blocks += [(max(fitting), first)] if fitting else []
            first += max(fitting, default=1)
        for size, number in sorted(blocks):
            self.free[file][str(size)].insert(0, f"{file}{number}")
            self.changed.append((file, str(size)))

    def _written(self) -> Lists:
        return {
            file: {s: list(blocks) for s, blocks in lists.items() if (file, s) in self.changed}
            for file, lists in self.free.items()
            if any(file == other for other, _ in self.changed)
        }


def freed_lanes(marks: list[str], width: int) -> list[range]:
    """The runs of lanes that are free after an item with these marks."""
    for mark in marks:
        if mark.startswith("gives "):
            runs = mark.removeprefix("gives ").replace("nothing", "").split(",")
            ends = [[int(end) for end in run.split("-")] for run in runs if run]
            return [range(run[0], run[-1] + 1) for run in ends]
    return [range(width)] if "begins" in marks else []
