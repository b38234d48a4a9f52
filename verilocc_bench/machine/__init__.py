"""Execution of gfx90a and gfx942 machine code on a CPU."""
