"""Answers as machine code that runs: lowered, executed, and compared with what must come out."""

from verilocc_bench.execution.answers import AnswerExecutor, ExecutedAnswer

__all__ = ["AnswerExecutor", "ExecutedAnswer"]
"""What other rooms use."""
