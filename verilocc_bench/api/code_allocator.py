"""An allocator in the middle of a compiler: asked about code, judged, and never trusted."""

from __future__ import annotations

import hashlib
import json
import threading
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.api.models import AnyModel, allocator_of, model_name, settings_of
from verilocc_bench.api.problems import LABEL_OF_CODE, Problem
from verilocc_bench.api.working import FINDINGS, prepared_for
from verilocc_bench.backends import Kernel
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.evaluation import settled_samples
from verilocc_bench.evaluation.fingerprints import UNKNOWN
from verilocc_bench.settings.search import (
    OBJECTIVE_OF_CODE,
    Objective,
    PlacementSettings,
    SearchSettings,
)
from verilocc_bench.verification import Verifier


class CodeAllocator:
    """Asks one allocator about kernels, one at a time, from any thread.

    `settings` are the settings of the allocator's kind, by their names on the command line. The
    answers go into code that runs: a built-in allocator keeps to machine live ranges, and
    a search has the objective `machine-code`, unless settings say something else. Raises
    InputError for an unknown model or setting.
    """

    def __init__(self, model: AnyModel, settings: dict[str, Any], seed: int = 0) -> None:
        chosen = settings_of(model, {})
        if isinstance(chosen, SearchSettings):
            settings = {"objective": OBJECTIVE_OF_CODE, **settings}
        if isinstance(chosen, PlacementSettings):
            settings = {"runnable": True, **settings}
        self.name, self.seed = model_name(model), seed
        self._settings = settings_of(model, settings)
        self._allocator = allocator_of(model, self._settings)
        self._lock = threading.Lock()

    @property
    def objective(self) -> Objective:
        """What better code means: the allocator's setting, or `machine-code` if it has none."""
        found = getattr(self._settings, "objective", OBJECTIVE_OF_CODE)
        return Objective(found)

    @property
    def key(self) -> str:
        """A hash of all that answers depend on: this package, the allocator, its settings.

        An allocator that holds more than plain data counts as another one in each process.
        """
        revision = self._allocator.revision
        described = {
            "version": __version__,
            "name": self.name,
            "revision": revision if revision != UNKNOWN else f"{id(self._allocator)}",
            "settings": self._settings.described(),
            "seed": self.seed,
        }
        text = json.dumps(described, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def answer(self, kernel: Kernel[Any]) -> Answer:
        """The allocator's verified answer.

        Raises AllocationFailed if it has none, or a wrong one.
        """
        problem = Problem(
            kernel.problem.function,
            kernel.problem.normalized,
            title=kernel.name,
            label=kernel.label,
            label_source=LABEL_OF_CODE,
            kernel=kernel,
        )
        with self._lock:
            prepared = prepared_for(problem, self._allocator)
            ((_, judged),) = settled_samples([(prepared, 0)], self._allocator, self.seed)
        if judged.answer is None:
            sample = judged.sample
            raise AllocationFailed(f"{self.name}: {sample.failure}: {sample.message}")
        verdict = Verifier(problem).verify(judged.answer, FINDINGS)
        if not verdict.valid:
            finding = verdict.findings[0].message
            raise AllocationFailed(f"{self.name}: the answer is wrong: {finding}")
        return judged.answer

    def close(self) -> None:
        """Ends what the allocator has started."""
        self._allocator.close()
