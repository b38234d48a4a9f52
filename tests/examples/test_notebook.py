"""Every cell of the notebook runs, in order, and shows something."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import verilocc_bench as vb

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "first_results.ipynb"


def run_cells(path: Path) -> list[Any]:
    """The value of the last expression of each code cell; None where there is none."""
    names: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        values.append(value)
    return values


def test_the_notebook_runs() -> None:
    values = run_cells(NOTEBOOK)
    verdict = next(value for value in values if isinstance(value, vb.Verdict))
    assert verdict.valid
    results = next(value for value in values if isinstance(value, vb.Results))
    assert [d["results"]["overall"]["pass@1"] for d in results.documents] == [0.0, 1.0]
    assert any(isinstance(value, vb.RunComparison) for value in values)
