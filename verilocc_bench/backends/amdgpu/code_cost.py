"""The cost of an answer by the machine code that llc makes of it.

For search, which compiles many answers of one kernel and keeps the best. Waves come
first: more are better. The cost of the rest is a sum of what loops do, each instruction
times ten for each loop around it:

| counts | for |
|---|---|
| 1 | each instruction, waits and s_nop among them |
| 2 | each s_waitcnt, once more |
| 2 | each wait state of s_nop |
| 20 | each move from register to register, once more |
| 2 | each bank conflict |
| 10 | each cycle that llvm-mca estimates for a round of an innermost loop, if there is llvm-mca |
"""

from __future__ import annotations

from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT, count_bank_conflicts
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.backends.amdgpu.code_worth import analyse_assembly
from verilocc_bench.backends.amdgpu.cycles import Analyzer, find_analyzer
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.label import LlcInput
from verilocc_bench.backends.amdgpu.lower import run_llc_on, write_answer
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS
from verilocc_bench.edits import Answer, NamedAssignment

_OPTIONS = tuple(option for option in LLC_OPTIONS if option != "-verify-machineinstrs")

_WEIGHTS = {"instructions": 1, "waits": 2, "wait states": 2, "moves": 20, "bank conflicts": 2}


class CompiledCosts:
    """The costs of valid answers to one kernel.

    If llvm-mca has no estimate for the first, it is not asked again: it may have
    taken its longest time for nothing.
    """

    def __init__(self, kernel: MachineKernel) -> None:
        self._kernel = kernel
        self._analyzer = find_analyzer()
        self._asked = False

    def __call__(self, answer: NamedAssignment) -> CodeCost:
        """The cost of an answer. Raises InputError if llc refuses the code."""
        kernel = self._kernel
        lowered = write_answer(kernel, Answer(answer))
        options = (*_OPTIONS, *lowered.llc_options)
        code = LlcInput(lowered.text, "kernel.mir", options)
        assembly = run_llc_on(kernel, code, "asm").decode()
        arch = kernel.problem.target.name
        worth = analyse_assembly(assembly, kernel.name, arch, self._analyzer)
        found, cycles = worth.code, worth.loop_cycles
        if not self._asked and cycles is None:
            self._analyzer = Analyzer(None, None, "llvm-mca has no estimate for another answer")
        self._asked = True
        counts = {
            "instructions": found.weighted_instructions,
            "waits": found.weighted_waits,
            "wait states": found.weighted_wait_states,
            "moves": found.weighted_register_moves,
            "bank conflicts": count_bank_conflicts(kernel.problem, answer).any,
        }
        total = sum(_WEIGHTS[name] * count for name, count in counts.items())
        total += round(LOOP_WEIGHT * cycles) if cycles is not None else 0
        return CodeCost(found.metadata.get("waves", 0), total, tuple(counts.values()), cycles)
