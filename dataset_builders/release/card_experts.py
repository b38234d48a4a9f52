"""What the card of a dataset of experts' kernels says in words, where it differs from others."""

from __future__ import annotations

ABOUT = """\
GPU kernels that experts wrote (matrix products, attention, mixtures of experts), from open
libraries: normalized machine IR with virtual registers, each with the register assignment that its
authors or their compiler chose. It measures what allocators learned elsewhere: all rows are
`test`, and no row is near a row of the embedded dataset `mini`. Built, verified and evaluated with
verilocc-bench."""

ORIGIN = """\
Each candidate is one kernel of a library, fetched as one exact file from its package index and
known by its SHA-256. The column `kernel` begins with the name of the library, `params` says which
of its kernels it is, and `provenance` has the hashes."""

VENDORS: dict[str, str] = {
    "amd": """\
**gfx942.** The code is the machine code that the library ships, written by hand or by its authors'
own generators; no compiler allocated its registers. The function is recovered from it.""",
    "nvidia": """\
**sm_80.** C++ templates of CUTLASS and FlashAttention-2, one explicit instantiation for each row,
compiled by nvcc with the library's own options and tiles. The function is recovered from the
machine code of ptxas: webs of definitions and uses become virtual registers, and the registers
that ptxas chose are the label. Spill code that ptxas added is part of the function. Every
definition and use was checked against the life ranges that NVIDIA's disassembler prints.
FlashAttention-2 includes three headers of PyTorch for a few names; headers of verilocc-bench stand
in for them. Kernels on which ptxas gave up (few registers and hundreds of spills) are rejected as
`compiler-gave-up`.""",
}

NOTICES = """\
The folder `licenses` has the notice of each library, which goes with every copy of its rows."""

LIMITS: dict[str, str] = {
    "kernels": """\
Experts do not minimise registers: they keep what the occupancy that they want leaves them. Their
answers are a base line of practice, not of the least registers.""",
}
