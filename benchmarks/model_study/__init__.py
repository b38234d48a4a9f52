"""The worth of the reference models, beside baselines without a model.

    python -m benchmarks.model_study train --dataset DATASET --output DIR [--only NAME,…] [--jobs N]
    python -m benchmarks.model_study run --dataset DATASET --output DIR [--limit N] [--jobs N]
    python -m benchmarks.model_study render --output DIR --document FILE [--images FOLDER]

`train` makes the models to compare with into `DIR/models`; other models put
there are asked, too. `run` asks for the samples of every configuration, one
`verilocc-bench evaluate` after the other. Both go on if they were interrupted.
`render` writes their results as tables into a document that begins as a copy of
`template.md`, and a picture.
"""
