"""Small kernels for sm_80, assembled once, and the registers of assignments."""

from __future__ import annotations

import base64
import random
from functools import cache

from tests import conftest
from verilocc_bench import allocators
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.kernel import SassCode
from verilocc_bench.backends.nvidia.normalize import NormalizedSass, normalize_sass
from verilocc_bench.backends.nvidia.read import disassembled_function
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.tools import assemble
from verilocc_bench.backends.nvidia.write_back import LoweredCubin, write_assignment
from verilocc_bench.dataset import Row, load_raw_row
from verilocc_bench.ir import Assignment, FixedUnits, PhysicalRegister

require_tools = conftest.require_tools
_HEAD = ".version 8.7\n.target {}\n.address_size 64\n"
_REGISTERS = (
    ".reg .b32 %r<40>; .reg .b64 %d<9>; .reg .f32 %f<20>; .reg .f64 %e<9>; .reg .pred %p<4>;\n"
)
START = """
    ld.param.u64 %d0, [data];
    cvta.to.global.u64 %d1, %d0;
"""


def entry(name: str, body: str, parameters: str = ".param .u64 data", directives: str = "") -> str:
    """A kernel of PTX, with registers of all kinds."""
    head = f".visible .entry {name}({parameters})\n{directives}"
    return f"{head}\n{{\n{_REGISTERS}{body}    ret;\n}}\n"


def module(*parts: str, target: str = "sm_80") -> str:
    """A file of PTX."""
    return _HEAD.format(target) + "".join(parts)


LOOP = module(
    entry(
        "sums",
        """
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %d0, [data];
    ld.param.u32 %r0, [n];
    cvta.to.global.u64 %d1, %d0;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 16;
    add.s64 %d3, %d1, %d2;
    mov.f32 %f0, 0f00000000;
    mov.f32 %f5, %f0;
    mov.u32 %r2, 0;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 16, %r3;
again:
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d3];
    setp.gt.f32 %p1, %f1, %f2;
    @%p1 add.f32 %f1, %f1, %f3;
    fma.rn.f32 %f0, %f1, %f2, %f0;
    ex2.approx.f32 %f6, %f4;
    sqrt.approx.f32 %f7, %f3;
    st.shared.v4.f32 [%r4], {%f0, %f6, %f7, %f4};
    bar.sync 0;
    ld.shared.f32 %f8, [%r3+16];
    fma.rn.f32 %f5, %f8, %f6, %f5;
    shfl.sync.bfly.b32 %r5, %r2, 1, 31, -1;
    add.s32 %r2, %r2, 1;
    add.s64 %d3, %d3, 2048;
    setp.lt.s32 %p2, %r2, %r0;
    @%p2 bra again;
    add.f32 %f0, %f0, %f5;
    cvt.rn.f32.s32 %f1, %r5;
    add.f32 %f0, %f0, %f1;
    st.global.f32 [%d1], %f0;
""",
        ".param .u64 data, .param .u32 n",
        ".reqntid 128",
    )
)
SUBROUTINES = module(
    """
.extern .func (.param .b32 result) vprintf (.param .b64 text, .param .b64 values);
.func (.reg .f64 %r) ratio(.reg .f64 %x, .reg .f64 %y)
{
    .reg .f64 %f<3>;
    div.rn.f64 %f0, %x, %y;
    add.f64 %f1, %f0, %x;
    div.rn.f64 %r, %f1, %f0;
    ret;
}
""",
    entry(
        "ratios",
        """
    ld.param.u64 %d0, [data];
    ld.global.f64 %e0, [%d0];
    ld.global.f64 %e1, [%d0+8];
    call (%e2), ratio, (%e0, %e1);
    add.f64 %e3, %e2, %e1;
    call (%e4), ratio, (%e3, %e2);
    sub.f64 %e5, %e4, %e3;
    st.global.f64 [%d0], %e5;
""",
    ),
    entry(
        "says",
        """
    ld.param.u64 %d0, [data];
    ld.global.u32 %r0, [%d0];
    {
    .param .b64 p0; .param .b64 p1; .param .b32 r0;
    st.param.b64 [p0], %d0;
    st.param.b64 [p1], %d0;
    call (r0), vprintf, (p0, p1);
    ld.param.b32 %r1, [r0];
    }
    add.s32 %r2, %r1, %r0;
    st.global.u32 [%d0], %r2;
""",
    ),
)
"""`ratios` calls a function twice, which divides twice; `says` calls printf."""

PRODUCT = module(
    entry(
        "product",
        f"""{START}
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%d1];
    ld.global.v2.b32 {{%r4, %r5}}, [%d1+16];
    ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%d1+32];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {{%f4, %f5, %f6, %f7}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};
    ld.global.v2.f64 {{%e0, %e1}}, [%d1+64];
    fma.rn.f64 %e2, %e0, %e1, %e0;
    st.global.f64 [%d1+64], %e2;
    st.global.v4.f32 [%d1+96], {{%f4, %f5, %f6, %f7}};
    atom.global.add.u32 %r6, [%d1+128], %r0;
    mad.lo.s32 %r7, %r6, %r4, %r5;
    st.global.b32 [%d1+132], %r7;
""",
    )
)
_BODY = "\n    ld.param.u64 %d1, [data]; ld.global.b32 %r0, [%d1]; {} st.global.b32 [%d1], %r1;\n"
SEVERAL = module(
    """
.visible .func (.reg .b32 %out) squared(.reg .b32 %in)
{
    mul.lo.s32 %out, %in, %in;
    ret;
}
""",
    entry("plain", _BODY.format("add.s32 %r1, %r0, 1;")),
    entry("calls", _BODY.format("call (%r1), squared, (%r0);")),
)
"""Two kernels, one of which calls a function."""


@cache
def assembled(ptx: str, arch: str = "sm_80") -> bytes:
    """The cubin of a kernel above."""
    require_tools()
    return assemble(ptx, architecture=arch)


def embedded(row: Row) -> bytes:
    """The cubin of a row of the embedded dataset."""
    require_tools()
    return base64.b64decode(load_raw_row("mini", row.id).content)


@cache
def code(cubin: bytes, name: str | None = None) -> SassFunction:
    """The disassembled kernel of a cubin."""
    return disassembled_function(cubin, "<cubin>", name)


def lowered_kernel(cubin: bytes, problem: NormalizedSass, assignment: Assignment) -> LoweredCubin:
    """An assignment written into the kernel of a problem."""
    place = read_cubin(cubin).kernel(problem.name)
    return write_assignment(SassCode(cubin, place, code(cubin, problem.name), problem), assignment)


def normalized(cubin: bytes, limit: int = 255) -> NormalizedSass:
    """The problem of a cubin's only kernel."""
    return normalize_sass(code(cubin, read_cubin(cubin).kernel(None).name), limit)


def permuted(problem: NormalizedSass, seed: int) -> Assignment:
    """The compiler's assignment after a permutation of aligned groups of registers.

    Quads of R and UR but the first, which hold what is reserved, and single
    predicates but those that the code names by their number.
    """
    chance = random.Random(seed)
    tables: dict[str, dict[int, int]] = {}
    limits = {"R": range(4, 252, 4), "UR": range(4, 60, 4), "P": range(7), "UP": range(7)}
    for file, starts in limits.items():
        old = [index for index in starts if (file, index) not in _fixed(problem)]
        new = chance.sample(old, len(old))
        tables[file] = dict(zip(old, new, strict=True))
    found: Assignment = {}
    for number, base in problem.assignment.items():
        step = 4 if base.file in {"R", "UR"} else 1
        start = base.index - base.index % step
        start = tables[base.file].get(start, start)
        found[number] = PhysicalRegister(base.file, start + base.index % step)
    return found


def _fixed(problem: NormalizedSass) -> set[tuple[str, int]]:
    return {
        (operand.location.file, index)
        for block in problem.function.blocks
        for instruction in block.instructions
        for operand in (*instruction.definitions, *instruction.uses)
        if isinstance(operand.location, FixedUnits)
        for index in range(operand.location.first, operand.location.first + operand.location.count)
    }


def linear_scan(problem: NormalizedSass) -> Assignment:
    """What linear-scan answers."""
    return allocators.linear_scan(AllocationProblem(problem.function))
