"""The text around the tables of the document."""

TITLE = """\
# How good are the compilers' register allocators?

For readers who ask how good LLVM and ptxas are.

LLVM's greedy allocator (gfx90a, gfx942) and ptxas (sm_80) on GEMM and attention kernels,
against proved lower bounds and against the searches of [search.md](search.md); and what
better assignments are worth as machine code. All figures here are made by `make study`."""

METHOD = """\
Every allocator gets the same instruction order and the same classes; nothing is split or
spilled. Budgets of search are steps and a solver's deterministic time with one worker
(`--effort 1`), so that answers are the same on any machine; only the times depend on it. Every
answer of `best` was judged by the fast check and by the independent checker, every other by the
fast check. *Registers* are those of the vector files, as occupancy counts them; the *gap* is
the distance to the lower bound, and *optimal* means a gap of 0. What is not optimal here may
still be: the bound is what could be proved."""

OPTIMAL = """\
*fewer*, *equal*, *more*: kernels where `best` takes fewer, as many or more registers than the
compiler; *saved*: registers saved a kernel, on the mean and at most; *occupancy up*, *down*:
kernels that get more, or fewer, waves (warps on sm_80)."""

PROOFS = """\
*pressure*: so many lanes hold values at one point. *residues*: alike, with alignment: lanes
want units of certain residues, and there are too few. *blocks*: aligned blocks of units cannot hold
the tuples and single registers of a few points. *residue schedule*: several points
together, by CP-SAT. *placement*: CP-SAT finds no place for all. See [search.md](search.md)."""

CONFLICTS = """\
Instructions with three different vector sources that want more of one bank than it delivers at
once (gfx90a, gfx942: two registers of one of four banks; sm_80: three of one of two banks, less
operands that the reuse cache holds by the rules of [verification.md](verification.md)), each 10
times for each loop around it. `best` takes the fewest registers first and conflicts second;
*for conflicts* is `best` with `--objective bank-conflicts`, which takes all registers that cost
no occupancy against the fewest. Loops of ten rounds are an assumption."""

COPIES = """\
Copies that the assignment makes identities, which need no instruction: more is better. *for
copies* is `--objective copies`. Then what the two objectives cost against the compiler:
registers more (on the mean) and kernels with a lower occupancy."""

TIME = """\
Seconds of processor time of one process on one core, compilation and imports apart. The
objectives other than registers are asked without proofs where proofs did not find fewer
registers: their answers are the same."""

COMPILER_TIME = """\
Beside LLVM's own allocation of the same kernels, by the timers of `llc -time-passes` (least of
three runs, processor time): the greedy passes, and these with all that runs between the machine IR
before them and the rewriting after them. `best` counts with reading the text and its analyses. The
ratio is that of the two sums, kernel by kernel. LLVM's allocator answers once; `best` searches,
and proves."""

TIGHT = """\
The same kernels with no more registers than the lower bound (`bound`), one more (`bound+1`),
and the most that give one more wave or warp than the compiler's label (`occupancy`, where the
bound does not rule that out). *Known to be possible*: some allocator, or `best` at the full
budget, has an answer within the budget. One kernel of three was asked so, by its id.
`verilocc-bench evaluate --budget` asks any allocator so."""

WORTH = """\
{amd} assignments for gfx90a and gfx942 and {nvidia} for sm_80, chosen by rule among {kernels}
kernels of the sample, from the smaller half of each target's: GEMM and attention in turn, and
in turn those that save the most registers (`best`) and the most bank conflicts (`--objective
bank-conflicts`). Both sides are taken to machine code, and to object files, by `verilocc-bench
compare` ([comparison.md](comparison.md); {versions}). Shown are the compiler's figure → the
answer's where they differ; *loop cycles* are `llvm-mca`'s estimate, of innermost loops times 10
for each loop around."""

CUBINS = """\
Written back into the cubin. Instructions keep their order and their control words, which ptxas
has computed for its own registers: a *hazard* is a wait that another register would need. Only
permutations of the compiler's registers can be run, and answers of `--runnable`,
which this table does not have."""

RUNNABLE = """\
The sm_80 kernels of the sample with `best` and with `best --runnable`
([sm_80.md](sm_80.md), "Answers that run by the compiler's own rules"). Registers are sums over
kernels. *Hazards* are pairs of instructions that rely on a wait or a distance that ptxas does not
rely on; *values destroyed* are those of the timing model, the second judge."""

MACHINE_CODE = """\
The kernels for gfx90a and gfx942 of the sample: `best --objective machine-code` beside LLVM's own
assignment, compiled by llc and weighted by loops ([machine-code.md](machine-code.md)). *compiled*
is the same with `--compiled 16`: it takes no answer whose code is worse than LLVM's in any count,
unless that gives more waves. *less*, *equal* and *more* count kernels; cycles within 0.5 % are
equal."""

UNKNOWN = """\
Nothing here was run on a GPU. What a bank conflict, a wave, a copy or a wait state costs on the
hardware is not measured; `llvm-mca` knows nothing of banks, memory, caches or other waves, and
there is no static estimate for sm_80. The order of instructions is the compiler's: a scheduler
that knew of fewer registers could use them, and the labels' own order was made with the
compiler's allocation in mind. Kernels of the split track, which do not fit without spilling,
are not in the sample. Where an assignment is not proved optimal, nobody knows whether it is.
The sample is of one family of sources (Triton and inline machine code of this repository's
builders): other kernels may differ."""

REPEAT = """\
```
make study DATASET=FOLDER
```

An interrupted run goes on where it was. `python -m benchmarks.allocation_study --help` names the
steps: `measure`, `compare`, `copy`, `compiler-times` and `report`."""
