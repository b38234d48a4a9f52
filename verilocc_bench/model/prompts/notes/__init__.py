"""What models that keep notes read of a text, backwards, and the lines that they note."""
