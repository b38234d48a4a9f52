"""Machine code of gfx90a and gfx942 back into machine IR with virtual registers."""
