"""The bytes of a test move between the link and its pipes inside the kernel.

The watcher never reads one of them, so none is in its memory, which every later test inherits.
"""

import fcntl
import os
import select
import termios

from envs.coding.sandbox.inside.link import GoneError, Link

PIPE = 65536
NOW, PATIENT = os.SPLICE_F_NONBLOCK, 0
"""Whether to move only what moves at once."""


class Inflow:
    """The bytes of a test on their way from the link to its standard input."""

    def __init__(self, link: Link, target: int, size: int) -> None:
        self.link, self.target, self.left = link, target, size

    def move(self) -> None:
        """Move what moves at once; close the pipe when all has arrived or nobody reads. Raises `GoneError`."""
        if self.target < 0:
            return
        try:
            while self.left:
                self._splice(self.target, NOW)
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass  # nobody reads it
        self.close()

    def late(self) -> bool:
        """Whether the test waits for the harness: some bytes have not been sent."""
        return self.target >= 0 and not any(fcntl.ioctl(self.link.reader, termios.FIONREAD, bytes(4)))

    def close(self) -> None:
        """Close the pipe."""
        if self.target >= 0:
            os.close(self.target)
            self.target = -1

    def drop(self) -> None:
        """Take what nobody has read from the link, after `close`. Raises `GoneError`."""
        while self.left:
            self._splice(self.link.null, PATIENT)

    def _splice(self, target: int, flags: int) -> None:
        moved = os.splice(self.link.reader, target, self.left, flags=flags)
        if not moved:
            raise GoneError
        self.left -= moved


class Outflow:
    """The outputs of a test on their way to the link, in chunks. `most`: bytes that each output may have.

    A chunk first goes to a pipe of the watcher: until a program has ended, it can take back what it wrote, and the
    length of a chunk must not become wrong after it was told.
    """

    def __init__(self, link: Link, pipes: dict[int, int], most: int) -> None:
        self.link, self.pipes = link, pipes
        self.left = dict.fromkeys(pipes, most + 1)
        self.staged = 0

    @property
    def exceeded(self) -> bool:
        """Whether an output was longer than allowed. One byte more is sent than that."""
        return 0 in self.left.values()

    @property
    def late(self) -> bool:
        """Whether the test may have to wait for the harness: the link is full."""
        return self.staged > 0 or not writable(self.link.writer)

    def move(self, flags: int = NOW) -> None:
        """Move what there is, or as much of it as moves at once. Raises `GoneError`."""
        try:
            for kind in list(self.pipes):
                while self._send(flags) and self._stage(kind):
                    self.link.announce(kind, self.staged)
        except BlockingIOError:
            pass
        except BrokenPipeError:
            raise GoneError from None

    def close(self) -> None:
        """Close the pipes."""
        for end in self.pipes.values():
            os.close(end)
        self.pipes.clear()

    def _send(self, flags: int) -> bool:
        """Send the chunk that is staged; whether another may follow."""
        while self.staged:
            self.staged -= os.splice(self.link.stage[0], self.link.writer, self.staged, flags=flags)
        return flags == PATIENT or writable(self.link.writer)

    def _stage(self, kind: int) -> bool:
        """Stage the next chunk of an output; False when there is none now."""
        if kind not in self.pipes or not self.left[kind]:
            return False
        try:
            self.staged = os.splice(
                self.pipes[kind], self.link.stage[1], min(PIPE, self.left[kind]), flags=NOW
            )
        except BlockingIOError:
            return False
        if not self.staged:
            os.close(self.pipes.pop(kind))
        self.left[kind] -= self.staged
        return self.staged > 0


def writable(end: int) -> bool:
    """Whether a pipe takes a few bytes at once."""
    poller = select.poll()
    poller.register(end, select.POLLOUT)
    return bool(poller.poll(0))
