"""Who works on what, on any number of machines that share a folder.

A claim is a small file that its worker touches every few seconds. It lapses at once when its process is gone from this
machine, and after `LAPSE_S` without a touch anywhere else; times are compared on the file server's clock. Claims are
taken while the study's lock is held, so that two workers never take the same one.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from rlanything.core.ids import content_id

LAPSE_S = 60.0
"""How long a worker may be silent before another takes over its trial."""


@dataclass(frozen=True)
class Worker:
    """One process: where it runs, its number there, and when it started (process numbers come again).

    `born`: seconds after the machine's start, which stay the same when somebody sets the clock.
    """

    host: str
    pid: int
    born: float

    @classmethod
    def here(cls) -> Worker:
        """This process."""
        return cls(_host(), os.getpid(), _born(psutil.Process()))

    @property
    def name(self) -> str:
        """For file names and people."""
        return f"{self.host.partition(':')[0]}-{content_id(self.host)[:8]}-{self.pid}"


def _host() -> str:
    """A name, the namespace of its process numbers (containers share a name) and its start (so do virtual machines).

    A machine that was started again is another one: claims on it lapse with time.
    """
    try:
        space = os.readlink("/proc/self/ns/pid")
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux
        space = started = ""
    return f"{socket.gethostname()}:{space}:{started}"


def _born(process: psutil.Process) -> float:
    return round(process.create_time() - psutil.boot_time(), 2)


class Claims:
    """The claims in one folder."""

    def __init__(self, folder: Path, worker: Worker, lapse_s: float = LAPSE_S) -> None:
        self.folder = folder
        self.worker = worker
        self.lapse_s = lapse_s
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, name: str) -> bool:
        """Claim `name` unless a living worker has it; what its last worker left running here is stopped."""
        holder = self._read(name)
        if holder is not None and not self._lapsed(name, holder):
            return False
        if holder is not None:
            _stop(holder, self.worker)
        self._write(name)
        return True

    def started(self, name: str, child: psutil.Process) -> None:
        """Note the child that works on `name`, for whoever takes over."""
        self._write(name, {"pid": child.pid, "born": _born(child)})

    def keep(self, name: str) -> bool:
        """Touch the claim; False when another worker has taken it, because this one was silent for too long."""
        holder = self._read(name)
        if holder is None or holder["worker"] != asdict(self.worker):
            return False
        os.utime(self._path(name))
        return True

    def release(self, name: str) -> None:
        """Give up the claim."""
        if self.keep(name):
            self._path(name).unlink(missing_ok=True)

    def held(self, name: str) -> bool:
        """Whether a living worker has it."""
        holder = self._read(name)
        return holder is not None and not self._lapsed(name, holder)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._path(name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):  # the latter: a full disk when it was written
            return None
        return found

    def _write(self, name: str, child: dict[str, Any] | None = None) -> None:
        temporary = self.folder / f".{name}.{self.worker.name}"
        temporary.write_text(json.dumps({"worker": asdict(self.worker), "child": child}))
        temporary.replace(self._path(name))

    def _lapsed(self, name: str, holder: dict[str, Any]) -> bool:
        found = Worker(**holder["worker"])
        if found == self.worker:
            return False
        if found.host == self.worker.host:
            return not _alive(found.pid, found.born)
        clock = self.folder / f".clock.{self.worker.name}"
        clock.touch()
        try:
            return clock.stat().st_mtime - self._path(name).stat().st_mtime > self.lapse_s
        except FileNotFoundError:  # given up in this moment
            return True


def _alive(pid: int, born: float) -> bool:
    try:
        process = psutil.Process(pid)
        return _born(process) == born and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _stop(holder: dict[str, Any], worker: Worker) -> None:
    """Kill the child that a killed worker left behind on this machine."""
    child = holder["child"]
    if child is None or holder["worker"]["host"] != worker.host or not _alive(child["pid"], child["born"]):
        return
    try:
        process = psutil.Process(child["pid"])
        process.kill()
        process.wait(timeout=30)
    except psutil.NoSuchProcess:
        return
