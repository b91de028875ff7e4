"""`python -m rlanything`: the command line from the sources of the folder that it runs in."""

import sys

from rlanything.cli import main

sys.exit(main())
