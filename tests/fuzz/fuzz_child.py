"""One target, searched in a process of its own with bounded memory. It says every input before it tries it.

The process that started it takes the last input from there when this one hangs outside Python, or crashes.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from pathlib import Path

import psutil
from fuzz_search import Found, keep, search, until
from fuzz_target import CORPUS, Target
from fuzz_targets import TARGETS

GROWTH_MB = 1024
"""Memory that an input may take."""
NOW = "now"
"""The input that is tried."""
DONE = "done"
"""What came out: a line of numbers, then a line a failure."""


def run(target: Target, seconds: float, folder: Path) -> Found:
    """Search, and write what was found to `folder` and to the corpus."""
    for data in (*target.valid, *(path.read_bytes() for path in target.corpus())):
        target.attempt(data)  # what is imported and cached on the way is no growth
    limit = psutil.Process().memory_info().vms + (GROWTH_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    place, begun = folder / NOW, time.monotonic()
    found = search(target, until(seconds), place.write_bytes, start=random.randrange(1 << 32))
    kept = [f"{kind}: {keep(CORPUS / target.name, kind, data)}" for kind, data in found.failures.items()]
    head = f"{found.tried} {found.read} {time.monotonic() - begun:.1f}"
    (folder / DONE).write_text("\n".join([head, *kept]))
    return found


if __name__ == "__main__":
    run(TARGETS[sys.argv[1]], float(sys.argv[2]), Path(sys.argv[3]))
