from verilocc_bench import triton as triton
from verilocc_bench.analysis import AllocationProblem as AllocationProblem
from verilocc_bench.api.environment import Environment as Environment
from verilocc_bench.api.evaluating import evaluate as evaluate
from verilocc_bench.api.problems import Problem as Problem
from verilocc_bench.api.problems import load_problem as load_problem
from verilocc_bench.api.problems import load_problems as load_problems
from verilocc_bench.api.results import Results as Results
from verilocc_bench.api.results import load_results as load_results
from verilocc_bench.api.working import allocate as allocate
from verilocc_bench.api.working import bound as bound
from verilocc_bench.api.working import lower as lower
from verilocc_bench.api.working import opinion as opinion
from verilocc_bench.api.working import show as show
from verilocc_bench.api.working import verify as verify
from verilocc_bench.edits import Answer as Answer
from verilocc_bench.errors import AllocationFailed as AllocationFailed
from verilocc_bench.errors import ContradictionError as ContradictionError
from verilocc_bench.errors import InputError as InputError
from verilocc_bench.errors import MissingExtraError as MissingExtraError
from verilocc_bench.errors import VerilocError as VerilocError
from verilocc_bench.evaluation.comparison import RunComparison as RunComparison
from verilocc_bench.machine.execution import run as run
from verilocc_bench.triton.capturing import capture as capture
from verilocc_bench.verification import Verdict as Verdict

__version__: str
