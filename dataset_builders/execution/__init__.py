"""Where the work of a build runs: processes of this machine, or a Dask cluster."""
