"""Random PTX kernels: all kinds of instructions beside each other, for the corpus of distances.

Kernels of one compiler write the same few sequences again and again. These mix what
others rarely mix. Every kernel loads its values, mixes them in a loop and around branches,
and stores all of them, so that hardly an instruction is useless. Numbers mean nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_WORDS, _PAIRS, _PREDICATES = 40, 6, 10

_HEAD = """.version 8.7
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry generated(
    .param .u64 in, .param .u64 out, .param .u32 rounds, .param .u32 other
)
"""
_PROLOGUE = f"""{{
.reg .b32 %r<{_WORDS}>;
.reg .b64 %d<{_PAIRS}>;
.reg .pred %p<{_PREDICATES}>;
.reg .b32 %u<7>;
.reg .b64 %a<3>;
.reg .pred %q;
ld.param.u64 %a0, [in];
ld.param.u64 %a1, [out];
ld.param.u32 %u0, [rounds];
ld.param.u32 %u1, [other];
mov.u32 %u2, %tid.x;
mov.u32 %u3, %ctaid.x;
mul.wide.u32 %a2, %u2, 512;
cvta.to.global.u64 %a0, %a0;
cvta.to.global.u64 %a1, %a1;
add.u64 %a0, %a0, %a2;
add.u64 %a1, %a1, %a2;
mov.u32 %u4, global_smem;
mad.lo.u32 %u5, %u2, 64, %u4;
mov.u32 %u6, 0;
"""

_INSTRUCTIONS = """
add.s32 $w, $w, $v
sub.s32 $w, $w, $v
min.s32 $w, $w, $v
and.b32 $w, $w, $v
xor.b32 $w, $w, $v
lop3.b32 $w, $w, $w, $v, 0x96
shl.b32 $w, $w, $v
shr.s32 $w, $w, $v
shf.l.wrap.b32 $w, $w, $w, $v
prmt.b32 $w, $w, $w, 0x5410
bfe.u32 $w, $w, 3, 5
mad.lo.s32 $w, $w, $v, $v
mul.hi.u32 $w, $w, $v
mad.wide.u32 $d, $w, $v, $d
mul.wide.s32 $d, $w, $v
add.s64 $d, $d, $d
mov.b64 {$w, $w}, $d
mov.b64 $d, {$w, $w}
selp.b32 $w, $w, $v, $p
fma.rn.f32 $w, $w, $w, $w
add.f32 $w, $w, $w
mul.f32 $w, $w, $w
max.f32 $w, $w, $w
fma.rn.f16x2 $w, $w, $w, $w
add.f16x2 $w, $w, $w
mul.f16x2 $w, $w, $w
cvt.rn.f16x2.f32 $w, $w, $w
cvt.rn.bf16x2.f32 $w, $w, $w
ex2.approx.f32 $w, $w
rcp.approx.f32 $w, $w
sqrt.approx.f32 $w, $w
cvt.rzi.s32.f32 $w, $w
cvt.rn.f32.s32 $w, $w
popc.b32 $w, $w
setp.lt.s32 $p, $w, $v
setp.eq.and.s32 $p, $w, $v, $p
setp.ge.f32 $p, $w, $w
setp.lt.s64 $p, $d, $d
and.pred $p, $p, $p
xor.pred $p, $p, $p
mad.lo.s32 %u1, %u1, $s, $s
add.s32 %u1, %u1, $s
xor.b32 %u1, %u1, $s
shl.b32 %u1, %u1, 3
ld.global.v4.b32 $4, [%a0+$x]
ld.global.b32 $w, [%a0+$x]
ld.global.b64 $d, [%a0+$x]
st.global.b32 [%a1+$x], $w
st.global.v2.b32 [%a1+$x], $2
st.shared.v4.b32 [%u5+$y], $4
st.shared.b32 [%u5+$y], $w
ld.shared.v4.b32 $4, [%u5+$y]
ld.shared.b32 $w, [%u5+$y]
atom.global.add.u32 $w, [%a1+$x], $w
red.global.add.u32 [%a1+$x], $w
cp.async.cg.shared.global [%u5+$y], [%a0+$x], 16
ldmatrix.sync.aligned.m8n8.x4.shared.b16 $4, [%u5+$y]
shfl.sync.bfly.b32 $w, $w, 4, 31, -1
vote.sync.ballot.b32 $w, $p, -1
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 $4, $4, $2, $4
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 $4, $4, $2, $4
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 $4, $4, $2, $4
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 $4, $4, $2, $4
"""
"""$w is a register of 32 bits, $v that or a number, $s a number that a block's threads share,
$d a register of 64 bits, $p a predicate, $2 and $4 are groups, $x and $y places in memory."""

_DOUBLES = """
fma.rn.f64 $d, $d, $d, $d;add.f64 $d, $d, $d;mul.f64 $d, $d, $d;setp.lt.f64 $p, $d, $d
cvt.f64.f32 $d, $w;cvt.rn.f32.f64 $w, $d;cvt.rzi.s32.f64 $w, $d;rcp.approx.ftz.f64 $d, $d
min.f64 $d, $d, $d;neg.f64 $d, $d;selp.b64 $d, $d, $d, $p;st.global.b64 [%a1+$x], $d
"""
_FIRST_DOUBLES = 1900  # seeds from here on mix double precision in

_WRITTEN = re.compile(r"\S+ (%[rdp]\d+),")
_TEMPLATES = _INSTRUCTIONS.strip().splitlines()
_WITH_DOUBLES = [*_TEMPLATES, *3 * _DOUBLES.strip().replace("\n", ";").split(";")]


def generated_kernel(seed: int) -> str:
    """The PTX module of one kernel, the same for the same seed."""
    templates = _TEMPLATES if seed < _FIRST_DOUBLES else _WITH_DOUBLES
    return _HEAD + "\n".join(_Generator(random.Random(seed), templates).lines()) + "\n"


class _Generator:
    """A kernel with its own number of registers and its own favourites among the instructions."""

    def __init__(self, chance: random.Random, templates: Sequence[str]) -> None:
        self.chance, self.templates = chance, templates
        self.weights = [chance.choice((0.1, 1, 2, 6)) for _ in templates]
        self.words = chance.randint(16, _WORDS)
        self.predicates = chance.randint(2, _PREDICATES)
        self.recent: list[str] = []

    def lines(self) -> Iterator[str]:
        chance = self.chance
        yield f".reqntid {chance.choice((32, 64, 128, 256))}\n{_PROLOGUE}"
        yield from (f"ld.global.b32 %r{n}, [%a0+{4 * n}];" for n in range(_WORDS))
        yield from (f"ld.global.b64 %d{n}, [%a0+{256 + 8 * n}];" for n in range(_PAIRS))
        yield from (f"setp.gt.s32 %p{n}, %r{n}, {n};" for n in range(_PREDICATES))
        yield "again:"
        for part in range(chance.randint(1, 4)):
            yield from self._mixed(chance.randint(20, 90))
            if chance.random() < 0.5:
                # Where threads part, instructions of a whole warp need code to meet again.
                yield f"setp.lt.u32 %q, %u{chance.choice((0, 1, 3))}, {part};\n@%q bra over{part};"
                yield from self._mixed(chance.randint(3, 15))
                yield f"over{part}:"
            if chance.random() < 0.3:
                yield "bar.sync 0;"
        yield "add.u32 %u6, %u6, 1;\nsetp.lt.u32 %q, %u6, %u0;\n@%q bra again;"
        yield from self._mixed(chance.randint(0, 40))
        yield "add.s32 %r0, %r0, %u1;"
        yield from (f"selp.b32 %r{n}, %r{n}, 1, %p{n};" for n in range(_PREDICATES))
        yield from (f"st.global.b32 [%a1+{4 * n}], %r{n};" for n in range(_WORDS))
        yield from (f"st.global.b64 [%a1+{256 + 8 * n}], %d{n};" for n in range(_PAIRS))
        yield "ret;\n}"

    def _mixed(self, count: int) -> Iterator[str]:
        """Instructions; one under a guard often overwrites what was written just before it."""
        for template in self.chance.choices(self.templates, self.weights, k=count):
            line = re.sub(r"\$(\w)", self._filled, template)
            guarded = ".sync" not in template and self.chance.random() < 0.25
            written = _WRITTEN.match(line)
            if written:
                recent = [each for each in self.recent if each[:2] == written[1][:2]]
                if guarded and recent:
                    start, end = written.span(1)
                    line = line[:start] + self.chance.choice(recent) + line[end:]
                self.recent = [*self.recent[-5:], written[1]]
            yield f"@{self._guard()} {line};" if guarded else f"{line};"

    def _guard(self) -> str:
        return self.chance.choice(("", "!")) + f"%p{self.chance.randrange(self.predicates)}"

    def _filled(self, match: re.Match[str]) -> str:
        chance, kind = self.chance, match[1]
        if kind == "v" and chance.random() < 0.2:
            kind = "s" if chance.random() < 0.5 else "n"
        match kind:
            case "w" | "v":
                return f"%r{chance.randrange(self.words)}"
            case "n":
                return str(chance.randint(1, 99))
            case "s":
                return chance.choice(("%u0", "%u1", "%u3", "%u6"))
            case "d":
                return f"%d{chance.randrange(_PAIRS)}"
            case "p":
                return f"%p{chance.randrange(self.predicates)}"
            case "x":
                return str(16 * chance.randrange(20))
            case "y":
                return str(16 * chance.randrange(4))
        chosen = chance.sample(range(self.words), int(kind))
        return "{" + ", ".join(f"%r{n}" for n in chosen) + "}"
