"""`python -m verilocc_bench`, and the program `verilocc-bench`.

It imports nothing at its head: an interrupt while the command line is being
loaded ends as any other does, without a traceback.
"""

INTERRUPTED = 130
"""The exit status of shells for a program that an interrupt ended."""


def main() -> int:
    """Runs the command line and returns its exit status."""
    try:
        from verilocc_bench.interrupts import interrupts_arrive

        with interrupts_arrive():
            from verilocc_bench.cli import main as run

            return run()
    except KeyboardInterrupt:
        import contextlib
        import os

        # By no stream of Python's: what is loaded may be half loaded.
        with contextlib.suppress(OSError):
            os.write(2, b"verilocc-bench: interrupted\n")
        return INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
