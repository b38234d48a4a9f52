"""Language models as allocators: prompts, decoding, and what runs the model."""
