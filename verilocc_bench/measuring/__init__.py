"""Measures two codes of one kernel on a user's own GPU: a folder out, its results back in."""
