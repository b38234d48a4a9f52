"""The network of the prompt format `text-notes`, its decoding, and its allocator."""
