"""The learned chooser: which allocator is enough for a function, told by its features."""
