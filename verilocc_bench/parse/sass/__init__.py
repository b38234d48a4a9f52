"""SASS, NVIDIA's machine code, as nvdisasm prints it: read, checked, normalized."""

from verilocc_bench.parse.sass.life_range_gate import Disagreement, check_marks
from verilocc_bench.parse.sass.life_ranges import LifeRanges, parse_life_ranges
from verilocc_bench.parse.sass.normalize import NormalizedSass, normalize_sass
from verilocc_bench.parse.sass.records import SassFunction, SassInstruction
from verilocc_bench.parse.sass.text import parse_sass

__all__ = [
    "Disagreement",
    "LifeRanges",
    "NormalizedSass",
    "SassFunction",
    "SassInstruction",
    "check_marks",
    "normalize_sass",
    "parse_life_ranges",
    "parse_sass",
]
