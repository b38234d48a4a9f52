"""From compilers' output to the IR."""
