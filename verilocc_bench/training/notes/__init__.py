"""Training of models that keep notes: the windows, the run, the card."""
