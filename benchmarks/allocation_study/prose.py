"""The text around the tables of the document."""

TITLE = """\
# How good are the compilers' register allocators?

For readers who ask how good LLVM and ptxas are.

LLVM's greedy allocator (gfx90a, gfx942) and ptxas (sm_80) stand here beside proved lower bounds
and beside `best`, the search of [search.md](search.md). `make study` makes this page."""

METHOD = """\
Every allocator gets the same instruction order and the same classes. It may not split or spill.
Budgets of search are steps and a solver's deterministic time with one worker (`--effort 1`), so
answers are the same on any machine. The fast check and the independent checker judged every
answer of `best`; the fast check judged every other answer. *Registers* are vector registers as
occupancy counts them. The *gap* is the distance to the lower bound. *Optimal* means a gap of 0.
A label with a gap may still be optimal: the bound is what could be proved."""

OPTIMAL = """\
*fewer*: kernels where `best` takes fewer registers than the compiler; *most saved*: the largest
saving in registers; *occupancy up*: kernels that get more waves (warps on sm_80)."""

PROOFS = """\
[search.md](search.md) explains the proofs."""

CONFLICTS = """\
A conflict is an instruction with three different vector sources that want more of one bank than
the bank delivers at once: two registers of one of four banks on gfx90a and gfx942, three of one of
two banks on sm_80. Operands that sm_80's reuse cache holds do not count. Each counts ten times for
each loop around it; ten rounds are an assumption. `best` takes the fewest registers first and
conflicts second. *for conflicts* is `best --objective bank-conflicts`, which may use every
register that costs no occupancy against the fewest."""

COPIES = """\
A copy whose two sides get one register needs no instruction."""

TIME = """\
Processor time of one process on one core, without compilation and imports. Architectures have the
median, the last column the longest time of all."""

COMPILER_TIME = """\
LLVM's own allocation of the same kernels, by the timers of `llc -time-passes` (least of three
runs, processor time): the greedy passes, and these with all that runs between the machine IR
before them and the rewriting after them. `best` counts with reading the text and its analyses.
LLVM's allocator answers once; `best` searches and proves."""

TIGHT = """\
The same kernels with as many registers as the lower bound (`bound`), one more (`bound+1`), or the
most that give one more wave or warp than the label has (`occupancy`, where the bound allows that).
Shares solved: of all kernels, and of those where some allocator, or `best` at the full budget, has
an answer within the budget. One kernel of three was asked, chosen by its id. `verilocc-bench
evaluate --budget` asks any allocator this way."""

RUNNABLE = """\
The sm_80 kernels of the sample with `best` and with `best --runnable`
([sm_80.md](sm_80.md), "Answers that run by the compiler's own rules"). Registers are sums over
kernels. *Hazards* are pairs of instructions that rely on a wait or a distance that ptxas does not
rely on; *values destroyed* are what the timing model, the second judge, reports."""

MACHINE_CODE = """\
The kernels for gfx90a and gfx942 of the sample: `best --objective machine-code` beside LLVM's own
assignment, compiled by llc and weighted by loops ([machine-code.md](machine-code.md)). *compiled*
is the same with `--compiled 16`: it takes an answer with worse code in some count only if the
answer gives more waves. *less*, *equal* and *more* count kernels; cycles within 0.5 % are equal."""

UNKNOWN = """\
- Nothing here was run on a GPU: what a bank conflict, a wave, a copy or a wait state costs there
  is not measured. `llvm-mca` does not model banks, memory, caches or other waves, and sm_80 has no
  static estimate.
- The order of instructions is the compiler's, made for its own allocation. A scheduler that knew
  of fewer registers could use them.
- Kernels of the split track, which do not fit without spilling, are not in the sample.
- The sample is of one family of sources (Triton, and inline machine code of this repository's
  builders). Other kernels may differ."""

REPEAT = """\
```
make study DATASET=FOLDER
```

An interrupted run goes on where it was. `python -m benchmarks.allocation_study --help` names the
steps: `measure`, `copy`, `compiler-times` and `report`."""
