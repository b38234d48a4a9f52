"""sm_80: reads cubins as nvdisasm prints them, and writes patched cubins."""
