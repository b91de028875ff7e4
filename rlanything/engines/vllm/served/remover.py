"""Removes folders when the process that made them has ended, however it did."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rlanything.engines.vllm.served.keeper import GRACE_S, LOOK_S, alone


def main(folders: Sequence[Path]) -> None:
    """Wait until nobody wants the folders any more, then remove them.

    Servers may still write to them, so it is tried again for as long as they may take to end.
    """
    parent = os.getppid()
    while not alone(parent):
        pass
    end = time.monotonic() + GRACE_S + LOOK_S
    remove(folders)
    while any(folder.exists() for folder in folders) and time.monotonic() < end:
        time.sleep(LOOK_S)
        remove(folders)


def remove(folders: Sequence[Path]) -> None:
    """Remove what can be removed of them."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
