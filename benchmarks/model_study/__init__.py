"""What the reference models are worth, beside what needs no model.

    python -m benchmarks.model_study train --dataset DATASET --output DIR [--only NAME,…] [--jobs N]
    python -m benchmarks.model_study run --dataset DATASET --output DIR [--limit N] [--jobs N]
    python -m benchmarks.model_study render --output DIR --document FILE [--images FOLDER]

`train` makes the models that the reference models are compared with, into
`DIR/models`; other models put there are asked as well. `run` asks for the
samples of every configuration, one `verilocc-bench evaluate` after the other.
Both go on where they were interrupted. `render` writes the tables of a
document that begins as a copy of `template.md`, and a picture, from what the
two have kept.
"""
