"""The prompt format `text-notes`: the notes of what is free are the model's own, too."""
