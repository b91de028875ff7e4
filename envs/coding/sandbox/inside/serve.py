"""The watcher's loop: one test after the other."""

import contextlib
import gc
import os
import sys
from typing import Any

from envs.coding.sandbox.inside.link import GoneError, Link
from envs.coding.sandbox.inside.meter import oom_kills
from envs.coding.sandbox.inside.seal import SEALED, harden
from envs.coding.sandbox.inside.watch import Watch
from envs.coding.sandbox.inside.wipe import WorkFolder

PRELOADED = (
    "array bisect collections copy datetime decimal fractions functools heapq io itertools math operator random re "
    "statistics string typing"
)
"""Modules that programs often import: loaded once here instead of in every test."""


def serve() -> None:
    """Serve until the harness closes the link, then clean up."""
    with contextlib.suppress(GoneError):
        link = Link()
        settings = link.read()
        folder = prepared(settings)
        try:
            link.write({"python": sys.version.split()[0], "sealed": SEALED, "uid": os.getuid()})
            while True:
                link.write(answer(link, folder, settings))
        finally:
            folder.remove()
    os._exit(0)


def answer(link: Link, folder: WorkFolder, settings: dict[str, Any]) -> dict[str, Any]:
    """The report on the next test. Its request has numbers only: {limits, sizes}."""
    request = link.read()
    limits = {**request["limits"], "count_processes": settings["count_processes"]}
    report = Watch(link, request["sizes"], limits).supervise()
    folder.clear()
    return report


def prepared(settings: dict[str, Any]) -> WorkFolder:
    """The empty work folder of a hardened process that has loaded what programs import."""
    os.umask(0o22)
    sys.argv = ["program"]
    harden(settings)
    Watch.killed = oom_kills()
    folder = WorkFolder(settings["folder"])
    for name in PRELOADED.split():
        __import__(name)
    gc.collect()
    gc.freeze()
    return folder
