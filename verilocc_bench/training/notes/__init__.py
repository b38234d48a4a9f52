"""Training of models that keep notes: the teacher, the windows, the run."""
