"""From compiled kernels to a dataset: duplicates, splits, files, card."""
