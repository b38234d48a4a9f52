"""The self-test: random functions, mutated answers, and every judge against every other."""
