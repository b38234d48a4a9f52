"""`verilocc-bench train`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verilocc_bench.cli.output_stream import reserved_stdout


def run(options: argparse.Namespace) -> int:
    """Trains a model by a recipe; goes on where an earlier run of it was interrupted."""
    from verilocc_bench.training.packages import check_packages

    check_packages()
    from verilocc_bench.training.recipe import read_recipe

    recipe = read_recipe(Path(options.recipe), base=options.base)
    with reserved_stdout() as stdout:  # the Trainer prints its losses
        from verilocc_bench.training.export import export
        from verilocc_bench.training.run import DatasetRequest, train

        data = DatasetRequest(options.dataset, options.revision, options.jobs)
        if options.export is not None:
            folder = export(recipe, data, options.export)
            advice = f"train there with: python {folder}/launcher.py --minutes 12"
            print(f"the run is in {folder}; {advice}", file=stdout)
            return 0

        def verdicts(
            identifiers: Sequence[str], style: str
        ) -> tuple[list[dict[str, Any]], Callable[..., list[float]]]:
            from verilocc_bench.api import environment
            from verilocc_bench.api.problems import load_problems

            loaded = load_problems(data.dataset, split=recipe.split, revision=data.revision)
            wanted = set(identifiers)
            problems = [problem for problem in loaded if problem.id in wanted]
            return (
                environment.prompts(problems, prompt_format=style),
                environment.reward_function(problems, prompt_format=style),
            )

        services = [name for name in options.report_to.split(",") if name]
        folder = train(recipe, data, options.output, verdicts=verdicts, report_to=services)
        advice = f"score it with: verilocc-bench evaluate --model {folder}"
        print(f"the model is in {folder}; {advice}", file=stdout)
    return 0
