"""How experts' kernels differ from ours, and how far their registers are from bounds and `best`.

    python -m benchmarks.expert_study DATASET/expert --sweep DATASET -o docs/expert-study.md

reads datasets; it compiles and searches nothing.
"""
