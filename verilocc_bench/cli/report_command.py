"""`verilocc-bench report`."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.hub_results import eval_results_yaml
from verilocc_bench.files import STANDARD_OUTPUT, is_stream, write_output
from verilocc_bench.report.html import render_html
from verilocc_bench.report.markdown import render_markdown
from verilocc_bench.report.runs import make_sections, read_runs
from verilocc_bench.report.transcript_pages import write_transcript_pages

_RENDER = {"markdown": render_markdown, "html": render_html}


def run(options: argparse.Namespace) -> int:
    """Prints or writes a report on the runs in the folders."""
    if options.dataset_id is not None and options.format != "eval-results":
        raise InputError("--dataset-id is for --format eval-results")
    runs = read_runs(options.folders)
    if options.format == "eval-results":
        documents = {str(run.folder): run.document for run in runs}
        text = eval_results_yaml(documents, options.dataset_id)
    elif options.format == "html" and not (options.output is None or is_stream(options.output)):
        text = render_html(make_sections(runs), write_transcript_pages(runs, options.output))
    else:
        text = _RENDER[options.format](make_sections(runs))
    write_output(options.output, text)
    if options.output not in (None, STANDARD_OUTPUT):
        print(f"wrote {options.output}", file=sys.stderr)
    return 0
