"""Supervision of the fork that runs a test: its pipes, its limits, and how it ended."""

import contextlib
import os
import select
import signal
import time
from typing import Any

from envs.coding.sandbox.inside.fork import MEMORY_EXIT, READY, Body, become
from envs.coding.sandbox.inside.link import GoneError
from envs.coding.sandbox.inside.meter import Meter, oom_kills
from envs.coding.sandbox.inside.seal import SEALED

POLL_S = 0.05
"""How often the limits of a running test are checked; most tests end before the first time."""
PIPE = 65536
STDERR_KEPT = 4000


class Watch:
    """Forks at once; `supervise` returns the report."""

    killed = 0
    """Kills of the kernel for want of memory that are known already. Set when the watcher starts."""

    def __init__(self, body: Body, stdin: bytes, limits: dict[str, Any], harness: int) -> None:
        pipes = [os.pipe() for _ in range(4)]
        ends = (pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1])
        self.pid = os.fork()
        if self.pid == 0:
            become(body, ends, limits)
        for end in ends:
            os.close(end)
        self.feed, self.stdin = pipes[0][1], memoryview(stdin)
        self.pipes = {pipe[0]: bytearray() for pipe in pipes[1:]}
        for end in (self.feed, *self.pipes):
            os.set_blocking(end, False)
        self.life = os.pidfd_open(self.pid)
        self.meter, self.most = Meter(limits), limits["output_kb"] << 10
        self.end, self.wall, self.harness = "", 0.0, harness

    def supervise(self) -> dict[str, Any]:
        """Feed and read until the fork has ended or exceeded a limit, then kill what is left of it.

        Raises `GoneError` when the harness closes the link meanwhile.
        """
        poller = select.poll()
        for end in (self.life, *self.pipes):
            poller.register(end, select.POLLIN)
        poller.register(self.harness, 0)  # only its end
        if not self.fed():
            poller.register(self.feed, select.POLLOUT)
        checked = time.monotonic()
        while not self.end:
            ready = dict(poller.poll(POLL_S * 1000))
            if self.feed in ready:
                poller.unregister(self.feed)
                if not self.fed():
                    poller.register(self.feed, select.POLLOUT)
            for end in self.pipes.keys() & ready.keys():
                if not self.pull(end):
                    poller.unregister(end)
            if self.harness in ready:
                self.kill_and_wait()
                raise GoneError
            if self.life in ready:
                break
            if time.monotonic() - checked >= POLL_S:
                self.end = self.end or self.meter.exceeded()
                checked = time.monotonic()
        return self.report(self.kill_and_wait())

    def fed(self) -> bool:
        """Write standard input as far as the pipe takes it; True, and the pipe is closed, when all is written."""
        try:
            while self.stdin:
                self.stdin = self.stdin[os.write(self.feed, self.stdin[:PIPE]) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self.stdin = self.stdin[:0]
        os.close(self.feed)
        self.feed = -1
        return True

    def pull(self, end: int) -> bool:
        """Read what is there, up to the limit; True while the pipe is open."""
        kept = self.pipes[end]
        while len(kept) <= self.most:
            try:
                part = os.read(end, PIPE)
            except BlockingIOError:
                return True
            if not part:
                return False
            kept += part
        self.end = self.end or "output"
        return True

    def kill_and_wait(self) -> int:
        """Kill and wait for every process of the test; the wait status of the first one."""
        self.wall = self.meter.wall()
        kill_all(self.pid)
        status = os.waitpid(self.pid, 0)[1]
        reap_all()
        for end in self.pipes:
            self.pull(end)
        for end in (self.life, self.feed, *self.pipes):
            if end >= 0:
                os.close(end)
        return status

    def report(self, status: int) -> dict[str, Any]:
        """The report for the harness; `result` stays bytes."""
        cpu, (out, err, result) = self.meter.cpu(), self.pipes.values()
        code = os.waitstatus_to_exitcode(status)
        return {
            "end": self.ended(code, cpu, bytes(result[:1]) == READY),
            "code": code,
            "out": out[: self.most].decode("utf-8", "replace"),
            "err": err[: self.most][-STDERR_KEPT:].decode("utf-8", "replace"),
            "result": bytes(result[1:]),
            "cpu": round(cpu, 6),
            "wall": round(self.wall, 6),
        }

    def ended(self, code: int, cpu: float, ready: bool) -> str:
        """How it ended, in one word."""
        if not ready:
            return "setup"
        if cpu > self.meter.limits["cpu_s"]:
            return "cpu"
        if self.end:
            return self.end
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
