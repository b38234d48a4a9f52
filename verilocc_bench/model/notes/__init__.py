"""The network of the prompt format `notes`, its decoding, and its allocator."""
