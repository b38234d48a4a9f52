"""Measures two codes of one kernel on a user's own GPU: writes the folder. evaluation.gpu_measurement reads it back."""
