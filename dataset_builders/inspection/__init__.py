"""Finished dataset folders: checking one, comparing two, and rebuilding rows."""
