"""Measures how good the compilers' register allocators are.

    python -m benchmarks.allocation_study measure --dataset FOLDER -o FILE.jsonl [--split S]
    python -m benchmarks.allocation_study copy --dataset FOLDER FILE.jsonl -o FOLDER
    python -m benchmarks.allocation_study compiler-times FOLDER -o FILE.jsonl
    python -m benchmarks.allocation_study report FILE.jsonl -o FILE.md

`measure` asks every allocator about a systematic sample of the assign track,
`copy` makes a dataset of the sample for the measurements of benchmarks.runnable and
benchmarks.machine_code,
`compiler-times` asks llc's own timers how long its allocation of that sample takes,
`report` writes the document. docs/allocation-study.md is their result for the split `test`.
"""
