"""Kernels of sm_90 with many answers each, to be measured on a GPU."""
