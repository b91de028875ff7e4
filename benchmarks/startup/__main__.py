"""`python -m benchmarks.startup`."""

import sys

from benchmarks.startup.starts import main

if __name__ == "__main__":
    sys.exit(main())
