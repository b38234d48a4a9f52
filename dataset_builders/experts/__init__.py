"""Kernels that experts wrote: open libraries, and how their kernels become rows."""
