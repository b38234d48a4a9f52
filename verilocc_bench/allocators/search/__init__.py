"""Search for assignments: a model of nodes and legal bases, and compiled searches on it."""
