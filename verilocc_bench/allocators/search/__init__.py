"""Search for assignments: a model of what may be placed where, and compiled searches on it."""
