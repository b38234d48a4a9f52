"""`python -m verilocc_bench`."""

import sys

from verilocc_bench.cli import main

sys.exit(main())
