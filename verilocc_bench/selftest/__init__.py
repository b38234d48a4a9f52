"""The self-test: compares all judges on random functions, real kernels and mutated answers."""
