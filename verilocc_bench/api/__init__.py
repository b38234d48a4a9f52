"""The Python interface. `import verilocc_bench` gives its names; the command line uses it, too."""
