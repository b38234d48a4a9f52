"""Tests of verilocc_bench.dataset."""
