"""Looking for inputs that are badly treated, and making them small."""

from __future__ import annotations

import hashlib
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fuzz_target import Target
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

LONGEST_S = 10.0
"""Seconds that one input may take."""
PROJECT = ("/rlanything/", "/envs/", "/tests/fuzz/")


class Hang(BaseException):
    """An input took longer than `LONGEST_S`. No handler of the project must catch it."""


@dataclass
class Found:
    """What a search came to. failures: where and what -> the smallest input."""

    tried: int = 0
    read: int = 0
    failures: dict[str, bytes] = field(default_factory=dict)


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Raise `Hang` in a block that takes longer, as soon as Python has the word again."""

    def late(*_: object) -> None:
        raise Hang(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def kind_of(error: BaseException) -> str:
    """What failed and where: failures of one kind have one cause, as a rule."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if any(part in f.filename for part in PROJECT)
    ]
    place = frames[-1] if frames else None
    where = f"{Path(place.filename).name}:{place.name}" if place else "?"
    return f"{type(error).__name__} in {where}"


def search(
    target: Target,
    enough: Callable[[Found], bool],
    beat: Callable[[bytes], None] = lambda data: None,
    batch: int = 300,
    start: int = 0,
) -> Found:
    """Try damaged inputs until `enough`. Each kind of failure is made small and reported once.

    beat: gets every input before it is tried.
    """
    found = Found()
    while not enough(found):
        _batch(target, found, enough, beat, batch, start)
        start += 1
    return found


class _Input:
    """An input that hypothesis does not print."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"{len(self.data)} bytes"


class _Failed(Exception):
    """A failure that is not known yet, as hypothesis shall see it: one kind a batch."""


def _batch(
    target: Target,
    found: Found,
    enough: Callable[[Found], bool],
    beat: Callable[[bytes], None],
    batch: int,
    start: int,
) -> None:
    this: list[str] = []
    smallest: dict[str, bytes] = {}

    @seed(start)
    @settings(
        max_examples=batch,
        deadline=None,
        database=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    @given(target.inputs.map(_Input))
    def attempt(input: _Input) -> None:
        data = input.data
        if not this and enough(found):
            return
        found.tried += 1
        beat(data)
        kind = _kind_of_failure(target, data, found)
        if kind is None or kind in found.failures or (this and this[0] != kind):
            return
        this[:] = [kind]
        if kind not in smallest or len(data) <= len(smallest[kind]):
            smallest[kind] = data
        raise _Failed(kind)

    try:
        attempt()
    except _Failed:
        found.failures |= smallest


def _kind_of_failure(target: Target, data: bytes, found: Found) -> str | None:
    """What is wrong with how an input is treated; None for nothing."""
    try:
        with in_time(LONGEST_S):
            found.read += not target.attempt(data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # also a panic of Polars or the tokenizers
        return kind_of(error)
    return None


def keep(folder: Path, kind: str, data: bytes) -> Path:
    """Write an input into the corpus; its name says what it did and what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    word = "".join(c if c.isalnum() else "-" for c in kind).strip("-").lower()
    path = folder / f"{word[:60]}-{hashlib.sha256(data).hexdigest()[:8]}"
    path.write_bytes(data)
    return path


def until(seconds: float) -> Callable[[Found], bool]:
    """Enough when so much time is over."""
    end = time.monotonic() + seconds
    return lambda found: time.monotonic() > end
