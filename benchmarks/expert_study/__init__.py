"""How experts' kernels differ from ours, and how far their registers are from bounds and `best`.

    python -m benchmarks.expert_study DATASET/expert --sweep DATASET --images docs/images

reads datasets, prints the tables of docs/expert-study.md and draws its picture; it compiles and
searches nothing.
"""
