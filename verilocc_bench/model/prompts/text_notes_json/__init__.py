"""The prompt format `text-notes-json`: the notes of `text-notes`, for any language model."""
