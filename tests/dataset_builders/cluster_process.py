"""A Dask cluster of two worker processes until standard input ends.

Prints the address of its scheduler. A task that takes a worker down is not tried again.
"""

from __future__ import annotations

import sys


def main() -> None:
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
