"""gfx90a and gfx942: LLVM's machine IR in, machine IR and llc's code out."""
