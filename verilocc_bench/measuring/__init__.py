"""Measures two codes of one kernel on a user's own GPU: writes the folder that does so.

`evaluation.gpu_measurement` reads the results.
"""
