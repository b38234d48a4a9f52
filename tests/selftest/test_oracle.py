"""The brute-force judge on rules that its own walk does not see."""

from __future__ import annotations

from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.oracle import Oracle

HEADER = """verilocc-bench 1
target gfx942
registers v:4 a:0 s:0 vcc:2=vcc_lo,vcc_hi
"""


def test_tied_operands_are_in_one_register_undefined_ones_too() -> None:
    for use in ("%0", "%0!"):
        function = parse_function(HEADER + f"class V 1 v\nbb0\n%0=OP\n%1=OP {use}~0\n")
        oracle = Oracle(function)
        assert oracle.judge({"%0": "v1", "%1": "v1"})
        assert not oracle.judge({"%0": "v1", "%1": "v2"})


def test_tied_lanes_need_not_be_tied_registers() -> None:
    function = parse_function(
        HEADER + "class V 1 v\nclass V2.by1 2 v\nbb0\n%0=OP\n%1:V2.by1.1=OP %0~0\n"
    )
    oracle = Oracle(function)
    assert oracle.judge({"%0": "v2", "%1": "v1"})
    assert not oracle.judge({"%0": "v1", "%1": "v1"})
    assert not oracle.judge({"%0": "v3", "%1": "v3"})
