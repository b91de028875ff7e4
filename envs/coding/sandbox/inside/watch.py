"""Supervision of the fork that runs a test: its pipes, its limits, and how it ended.

Untrusted code runs in forks only, which have none of the descriptors that reports go through. A fork inherits all
memory of the watcher, so the watcher holds only numbers of a test: limits, lengths, times, and how it ended.
"""

import contextlib
import os
import select
import signal
import time
from typing import Any

from envs.coding.sandbox.inside.flow import PATIENT, Inflow, Outflow
from envs.coding.sandbox.inside.fork import MEMORY_EXIT, become
from envs.coding.sandbox.inside.link import GoneError, Link
from envs.coding.sandbox.inside.meter import Meter, oom_kills
from envs.coding.sandbox.inside.seal import SEALED

POLL_S = 0.05
"""How often the limits of a running test are checked; most tests end before the first time."""


class Watch:
    """Forks at once; `supervise` moves the test's bytes and returns the report.

    sizes: bytes of the program, the call and the standard input, which follow on the link in this order.
    """

    killed = 0
    """Kills of the kernel for want of memory that are known already. Set when the watcher starts."""

    def __init__(self, link: Link, sizes: list[int], limits: dict[str, Any]) -> None:
        pipes = [os.pipe() for _ in range(5)]
        ends = (pipes[0][0], *(pipe[1] for pipe in pipes[1:]))
        self.pid = os.fork()
        if self.pid == 0:
            become(ends, sizes, limits)
        for end in ends:
            os.close(end)
        self.link, self.life, self.meter = link, os.pidfd_open(self.pid), Meter(limits)
        self.inflow = Inflow(link, pipes[0][1], sum(sizes))
        self.outflow = Outflow(link, {kind: pipes[kind][0] for kind in (1, 2, 3)}, limits["output_kb"] << 10)
        self.end, self.looked, self.stage = "", False, pipes[4][0]

    def supervise(self) -> dict[str, Any]:
        """Move bytes until the fork has ended or exceeded a limit, then kill what is left of it.

        Raises `GoneError` when the harness closes the link meanwhile.
        """
        try:
            self._run()
        finally:
            wall, status = self.meter.wall(), self._kill_and_wait()
        try:
            self.outflow.move(PATIENT)
            self.inflow.drop()
        finally:
            self.outflow.close()
            reached = self._reached()
        return {**self._report(status, wall), "stage": reached}

    def _run(self) -> None:
        checked = time.monotonic()
        self.inflow.move()
        while not self.end and not self._wait():
            self.inflow.move()
            if time.monotonic() - checked >= POLL_S:
                self.end, self.looked = self.meter.exceeded(), True
                checked = time.monotonic()
            if self.looked:
                self.outflow.move()
                self.end = self.end or ("output" if self.outflow.exceeded else "")

    def _wait(self) -> bool:
        """Wait until something can be moved, at most `POLL_S`; whether the fork has ended. Raises `GoneError`.

        Outputs stay in their pipes until the limits are checked for the first time: most tests have ended by then. The
        time that a test waits for the harness is not its own.
        """
        poller, start = select.poll(), time.monotonic()
        poller.register(self.life, select.POLLIN)
        unsent, full = self.inflow.late(), self.looked and self.outflow.late
        poller.register(self.link.reader, select.POLLIN if unsent else 0)
        if self.inflow.target >= 0 and not unsent:
            poller.register(self.inflow.target, select.POLLOUT)
        if full:
            poller.register(self.link.writer, select.POLLOUT)
        for end in self.outflow.pipes.values() if self.looked and not full else ():
            poller.register(end, select.POLLIN)
        ready = dict(poller.poll(POLL_S * 1000))
        if unsent or full:
            self.meter.excuse(time.monotonic() - start)
        if ready.get(self.link.reader, 0) & ~select.POLLIN:
            raise GoneError
        return self.life in ready

    def _kill_and_wait(self) -> int:
        """Kill and wait for every process of the test; the wait status of the first one."""
        kill_all(self.pid)
        status = os.waitpid(self.pid, 0)[1]
        reap_all()
        os.close(self.life)
        self.inflow.close()
        return status

    def _reached(self) -> int:
        """How far the fork came: the bytes in the pipe of which it has told it. 0, 1 or 2."""
        try:
            return len(os.read(self.stage, 3))
        finally:
            os.close(self.stage)

    def _report(self, status: int, wall: float) -> dict[str, Any]:
        cpu, code = self.meter.cpu(), os.waitstatus_to_exitcode(status)
        return {
            "end": self._ended(code, cpu),
            "code": code,
            "cpu": round(cpu, 6),
            "wall": round(wall, 6),
        }

    def _ended(self, code: int, cpu: float) -> str:
        """How it ended, in one word."""
        if cpu > self.meter.limits["cpu_s"]:
            return "cpu"
        if self.end or self.outflow.exceeded:
            return self.end or "output"
        if code == -signal.SIGKILL and (killed := oom_kills()) > Watch.killed:
            Watch.killed = killed
            return "oom"
        return "memory" if code == MEMORY_EXIT else "exit" if code >= 0 else "signal"


def kill_all(pid: int) -> None:
    """End every process of a test; unsealed, those of its process group."""
    with contextlib.suppress(ProcessLookupError):
        if SEALED:
            os.kill(-1, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
            os.killpg(pid, signal.SIGKILL)


def reap_all() -> None:
    """Wait for everything that is left. Orphans come to this process; unsealed, they are ended here."""
    with contextlib.suppress(ChildProcessError):
        while True:
            if not SEALED:
                with open(f"/proc/self/task/{os.getpid()}/children") as file:
                    for child in map(int, file.read().split()):
                        os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)
