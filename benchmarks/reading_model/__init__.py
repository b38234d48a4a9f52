"""A language model that reads machine IR backwards, and speaks its lists of free registers aloud.

    python -m benchmarks.reading_model.extract OUT DATASET
    python -m benchmarks.reading_model.train --plan PLAN --out OUT
    python -m benchmarks.reading_model.evaluate RESULTS GENERATIONS

README.md says how these belong together, and what came of it.
"""
