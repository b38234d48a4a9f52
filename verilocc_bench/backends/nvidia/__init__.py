"""sm_80: cubins in, as nvdisasm prints them, and cubins out."""
