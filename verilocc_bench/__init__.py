"""Register allocation on GPU kernels: datasets, a verifier and an evaluation harness.

    import verilocc_bench as vb

    problems = vb.load_problems("mini", arch="gfx942")   # or a folder, or an id of the Hub
    answer = vb.allocate(problems[0], "best")
    vb.verify(problems[0], answer)                       # valid, or what is wrong where
    vb.evaluate(my_function, dataset="mini")             # scores my_function(problem, seed)

Problems: `load_problems`, `load_problem`, `Problem`. Work on one problem:
`allocate`, `verify`, `opinion`, `bound`, `lower`, `show`. Scores: `evaluate`,
`load_results`, `Results`. Rewards for a model that learns: `Environment`. Machine
code on the CPU: `run`. Triton's kernels as problems: `capture`; our registers in its own
compile: `triton.allocator`.
Errors: `InputError`
for input that cannot be used, `AllocationFailed` where an allocator has no
answer; both are `VerilocError`s.

The names are imported when they are first used. Their types are in __init__.pyi. This
module imports nothing else either, for the sake of early interrupts; see __main__.py.
"""

__version__ = "0.2.0"

_HOME = {
    "AllocationProblem": "verilocc_bench.analysis",
    "AllocationFailed": "verilocc_bench.errors",
    "Answer": "verilocc_bench.edits",
    "RunComparison": "verilocc_bench.evaluation.comparison",
    "ContradictionError": "verilocc_bench.errors",
    "Environment": "verilocc_bench.api.environment",
    "InputError": "verilocc_bench.errors",
    "MissingExtraError": "verilocc_bench.errors",
    "Problem": "verilocc_bench.api.problems",
    "Results": "verilocc_bench.api.results",
    "Verdict": "verilocc_bench.verification",
    "VerilocError": "verilocc_bench.errors",
    "allocate": "verilocc_bench.api.working",
    "bound": "verilocc_bench.api.working",
    "capture": "verilocc_bench.triton.capturing",
    "evaluate": "verilocc_bench.api.evaluating",
    "load_problem": "verilocc_bench.api.problems",
    "load_problems": "verilocc_bench.api.problems",
    "load_results": "verilocc_bench.api.results",
    "lower": "verilocc_bench.api.working",
    "opinion": "verilocc_bench.api.working",
    "run": "verilocc_bench.machine.execution",
    "show": "verilocc_bench.api.working",
    "verify": "verilocc_bench.api.working",
}

_ROOMS = ("triton",)
"""Packages of this one that are names of the interface."""

__all__ = ["__version__", *_HOME, *_ROOMS]  # noqa: PLE0604  they are strings


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
