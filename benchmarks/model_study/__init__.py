"""What the reference model is worth, beside what needs no model.

    python -m benchmarks.model_study run --dataset DATASET --output DIR [--limit N] [--jobs N]
    python -m benchmarks.model_study render --output DIR --document FILE

`run` asks for the samples of every configuration, one `verilocc-bench
evaluate` after the other, and goes on where it was interrupted; `render`
writes the tables of a document that begins as a copy of `template.md` from
what `run` has kept.
"""
