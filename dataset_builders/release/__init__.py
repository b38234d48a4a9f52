"""From compiled kernels to a dataset: duplicates, splits, files, card."""

__all__ = ["RELEASE_PACKAGES"]

RELEASE_PACKAGES = {
    "matplotlib": "matplotlib",
    "numba": "numba",
    "ortools": "ortools",
    "rapidfuzz": "rapidfuzz",
    "scikit-learn": "sklearn",
}
"""What a release needs beside what compiles, with the modules' names; all in the extra `build`."""
