"""The watcher's loop: a program to compile, then tests of it."""

import contextlib
import gc
import os
import sys
from typing import Any

from envs.coding.sandbox.inside.fork import compiling, running
from envs.coding.sandbox.inside.link import GoneError, Link
from envs.coding.sandbox.inside.meter import oom_kills
from envs.coding.sandbox.inside.seal import SEALED, harden
from envs.coding.sandbox.inside.watch import Watch
from envs.coding.sandbox.inside.wipe import wipe

PRELOADED = (
    "array bisect collections copy datetime decimal fractions functools heapq io itertools math operator random re "
    "statistics string typing"
)
"""Modules that programs often import: loaded once here instead of in every test."""


class Runner:
    """Answers requests, one at a time; keeps the last program as bytes."""

    def __init__(self, folder: str, count_processes: bool, harness: int) -> None:
        self.folder, self.count_processes = folder, count_processes
        self.source, self.code, self.harness = "", b"", harness
        os.chdir(self.folder)
        wipe(self.folder)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The report on a request: {source, limits}, {stdin, limits} or {function, arguments, limits}."""
        limits = {**request["limits"], "count_processes": self.count_processes}
        if "source" in request:
            self.source = request["source"]
            report = Watch(compiling(self.source), b"", limits, self.harness).supervise()
            self.code = report.pop("result")
        else:
            stdin = request.get("stdin", "").encode("utf-8", "surrogatepass")
            report = Watch(running(self.code, self.source, request), stdin, limits, self.harness).supervise()
            report["result"] = report["result"].decode("utf-8", "replace")
        wipe(self.folder)
        return report

    def leave(self) -> None:
        """Remove the work folder where it is an ordinary one; the harness may have been killed."""
        if not SEALED:
            wipe(self.folder)
            os.rmdir(self.folder)


def serve() -> None:
    """Serve until the harness closes the link, then clean up."""
    with contextlib.suppress(GoneError):
        link = Link()
        runner = prepared(link.read(), link.reader)
        try:
            link.write({"python": sys.version.split()[0], "sealed": SEALED, "uid": os.getuid()})
            while True:
                link.write(runner.answer(link.read()))
        finally:
            runner.leave()
    os._exit(0)


def prepared(settings: dict[str, Any], harness: int) -> Runner:
    """A runner in a hardened process that has loaded what programs import."""
    os.umask(0o22)
    sys.argv = ["program"]
    harden(settings)
    Watch.killed = oom_kills()
    runner = Runner(settings["folder"], settings["count_processes"], harness)
    for name in PRELOADED.split():
        __import__(name)
    gc.collect()
    gc.freeze()
    return runner
