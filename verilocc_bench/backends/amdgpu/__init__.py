"""gfx90a and gfx942: reads LLVM's machine IR, writes machine IR and llc's code."""
