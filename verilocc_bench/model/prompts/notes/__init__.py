"""The prompt format `notes`: registers from the text alone, by a model that keeps notes."""
