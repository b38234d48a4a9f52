"""The prompt format text-notes."""
