"""The pools of this process: one for each setting, started by its first use and stopped when the process ends."""

from __future__ import annotations

import atexit
import os

from envs.web.browser.pool import Pool, Settings

_POOLS: dict[tuple[int, Settings], Pool] = {}


def shared(settings: Settings) -> Pool:
    """The pool of this process. Processes that were forked get one of their own."""
    key = (os.getpid(), settings)
    if key not in _POOLS:
        _POOLS[key] = Pool(settings)
    return _POOLS[key]


def shut() -> None:
    """Stop the browsers of this process."""
    for (process, _), pool in list(_POOLS.items()):
        if process == os.getpid():
            try:
                pool.close()
            except Exception:  # the process ends; Chromium ends with its driver
                continue


atexit.register(shut)
