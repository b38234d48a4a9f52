"""NVIDIA: reads cubins as nvdisasm prints them, and writes patched cubins."""
