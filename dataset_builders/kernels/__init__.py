"""The project's own kernels, in Triton, and what is known of them without Triton.

`specifications` is plain data and may be imported anywhere; the other modules
import Triton and are loaded by the compiler alone.
"""
