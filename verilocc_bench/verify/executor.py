"""The executor."""
