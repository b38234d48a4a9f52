"""From kernels of our own to datasets: sweeps, compilation, labels, Parquet files."""
