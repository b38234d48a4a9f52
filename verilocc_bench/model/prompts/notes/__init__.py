"""The prompt format `notes`: a model reads backwards and keeps notes of what it gives."""
