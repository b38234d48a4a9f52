"""Training of language models that allocate registers (extra `train`).

`recipe` says what is learnt; `run` trains by it; `export` prepares a run for a
machine without this package.
"""
