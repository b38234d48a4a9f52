"""What a dataset card says in words."""

from __future__ import annotations

ABOUT = """\
GPU kernels (matrix products and attention) as normalized machine IR with virtual registers, each
with the register assignment that the vendor's own compiler chose. It is the data of
[VeriLocc](https://arxiv.org/abs/2506.17506)'s task: to translate the one into the other, so that a
verifier accepts it; built, verified and evaluated with verilocc-bench."""

COLUMNS: dict[str, str] = {
    "id": "the first 16 hex digits of the SHA-256 of `normalized`",
    "family": "`gemm` (matrix products) or `mha` (attention)",
    "arch": "`gfx90a`, `gfx942` (AMD), `sm_80` or `sm_90` (NVIDIA)",
    "kernel": "name of the kernel's source",
    "params": "the point of the sweep: tile, data type, epilogue, compile options, as JSON",
    "track": "`assign`, or `split` where the compiler did not do with one register for each value",
    "normalized": "the function as text: instructions, blocks, register classes, budget; enough "
    "to allocate and to verify",
    "assignment": 'the compiler\'s answer as JSON, `{"%12": "v4", …}`; null on the split track',
    "label_source": "who made it, such as `llvm-greedy 22.1.0`, `ptxas 13.5.37`",
    "alternatives": "further answers by source, as JSON",
    "best_assignment": "an answer better than the compiler's: fewer vector registers, or as many "
    "and a smaller combined cost, and never a lower occupancy; null where none is known",
    "best_source": "what found it; null where there is none",
    "best_registers_used": "vector registers of the best answer known, which is the compiler's "
    "where `best_assignment` is null; null on the split track, like all that follows",
    "best_lower_bound": "vector registers that every assignment needs at least",
    "best_is_optimal": "whether the two are equal",
    "best_certificate": "what proves the lower bound, as JSON",
    "best_bank_conflicts": "bank conflicts of the best answer known, as `bank_conflicts` counts "
    "them",
    "group": "the sweep group: kind of kernel, width of its elements, shape of its tile",
    "cluster": "rows of one cluster are nearly the same function",
    "n_blocks": "basic blocks",
    "n_instructions": "instructions",
    "n_virtual_registers": "virtual registers",
    "pressure": "the most lanes that must be live at one point, by register file, as JSON",
    "registers_used": "what the compiler used, by register file, as JSON",
    "occupancy": "waves of a SIMD (AMD) or warps of a multiprocessor (NVIDIA) that these "
    "registers leave room for",
    "bank_conflicts": "of the compiler's answer: instructions with three vector sources that want "
    "more of a bank than it delivers at once, each ten times for each loop around it; null on the "
    "split track",
    "license": "SPDX identifier of the kernel's source",
    "provenance": "versions, flags, hashes of the source and of every stage, as JSON",
}
"""Every column of a row, with what it holds."""

RAW_COLUMNS: dict[str, str] = {
    "id": "that of the row",
    "format": "`mir` or `cubin`",
    "content": "the text of the machine IR, or the machine code in base64",
}
"""The same for the config `raw`."""

GROUPS = """\
Every row is in one split. Splits keep sweep groups whole: kernels that differ only in stages,
waves, register budget, epilogue, layout or architecture are all in one split; so are clusters of
near-duplicates. A group is in the same split on every architecture, so one may train on one
architecture and test on another."""

ORIGIN = """\
Kernels are our own Triton sources, compiled over a sweep of tile shapes, data types, layouts,
epilogues, masks and compile options, without line information, so that the same sweep gives the
same bytes anywhere."""

VENDORS: dict[str, str] = {
    "amd": """\
**gfx90a, gfx942.** Machine IR from LLVM before its register allocation; the label is what LLVM's
greedy allocator chose, read off the same code behind it. Where it split live ranges or spilled, no
mapping says what it did: such kernels are on the split track. The alternative is the answer of
LLVM's basic allocator, where it has one.""",
    "nvidia": """\
**sm_80, sm_90.** ptxas is closed, and shows nothing before its allocation. The function is
recovered from its machine code: webs of definitions and uses become virtual registers, and the
registers that ptxas chose are the label. So the order of the instructions, and any spill code, are
ptxas's own, made after (and for) that very assignment. Every definition and use was checked
against the life ranges that NVIDIA's disassembler prints. On the split track a function compiled
with plenty of registers is asked at fewer. Triton has two ways to sm_90: `capability` 80 in
`params` is its PTX for sm_80 (`mma.sync`), 0 its PTX for sm_90a (`wgmma`).""",
}
"""How rows were made, by the vendor of their target."""

LABELS = """\
A label is what a production compiler does, not an optimum. The columns `best_…` say how far it is
from one: `best_lower_bound` is a number of vector registers that no valid assignment goes below,
and `best_certificate` what proves it (values that must be in different registers, and why they do
not fit in fewer), which `verilocc_bench.analysis.lower_bounds` checks without any search.
`best_assignment` is another answer where a better one is known, from the allocator `best` or from
the alternatives: with fewer vector registers, or with as many and less combined cost (bank
conflicts, copies, long encodings, weighted by loop depth), and with no lower occupancy.
`best_is_optimal` says that the best answer known uses as few registers as the bound. No claim is
made about the least cost at that number."""

VERIFICATION = """\
An assignment is right when no value is lost on any path: every virtual register has a register
that its class allows, and none is overwritten while it is still needed. Every label and every
further answer was judged by the *fast check*, on liveness by register unit, before it was written;
a kernel whose label failed is rejected as `label-contradicts-text`. `verilocc-bench dataset check`
judges them all again, by the fast check and by the *independent checker*, which shares no analysis
with it and follows what every register unit holds. It checks the proofs of lower bounds as well."""

DISTANCE = """\
Distance is the edit distance of the sequences of instructions, as they are printed but for the
numbers of virtual registers and blocks, over the longer length."""

INTENDED = """\
Meant for: training models that allocate registers; measuring allocators of any kind, on splits
that tell memory from generalization; studying what compilers leave to be gained."""

INTENDED_WITHOUT_TRAINING = """\
Meant for: trying out allocators and tools, and for quick measurements; nothing here is to be
trained on."""

UNINTENDED = """\
Not meant for: claims about speed, for nothing was run; comparing LLVM with ptxas, whose functions
are not the same problem. A valid assignment is right for the normalized text: before it goes into
a kernel that is used, lower it and test that. There are no data about persons."""

UNINTENDED_CHOICE = """\
 Models are chosen on `validation`, never on a test split."""

CANARY = "verilocc-bench canary 3d6f0c1e-8a57-4b92-9e41-5c7d20b6fa13"

KEPT_OUT = f"""\
Leave documents with this string out of what language models are trained on: `{CANARY}`"""

LIMITS: dict[str, str] = {
    "running": """\
Kernels were compiled, not run: there are no times, and occupancy counts registers alone, neither
local memory nor the size of work-groups.""",
    "kernels": """\
All kernels are ours and written in Triton: no library kernels, no hand-written assembly, nothing
but matrix products and attention.""",
    "versions": """\
One version of each compiler, with one set of flags: another allocates in its own way.""",
    "nvidia": """\
On sm_80 and sm_90 the order of instructions was made by ptxas for the very assignment that is the
label; an allocator is asked for another answer to a problem that was cut to fit this one. Uniform
registers are taken thread by thread.""",
    "text": """\
Immediates, constants, memory operands and debug information are not in the normalized text: it
says what allocation depends on, and cannot be executed. The config `raw` has the rest.""",
    "bound": """\
A lower bound is what is proved, from few points of the function at a time: an answer above it may
be the best there is, and only registers have a bound, not conflicts or copies.""",
}
"""Known limits, by topic. A topic that is a vendor is for datasets with its targets alone."""
