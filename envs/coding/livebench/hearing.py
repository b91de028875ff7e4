"""A process that is told something and heard to its end: however much it says, only so much is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

PART = 1 << 16


@dataclass(frozen=True, slots=True)
class Heard:
    """How a process ended and what it said, as text: bytes that are none become replacement characters."""

    code: int
    late: bool
    """It was killed, because it was not done in time."""
    output: str
    """The beginning of its standard output."""
    errors: str
    """The end of its standard error."""


def hear(command: Sequence[str], told: bytes, limit_s: float, most: int) -> Heard:
    """Run a command with an empty environment; keep at most so many bytes of each of its outputs. Raises OSError."""
    pipe, late = subprocess.PIPE, False
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={}, cwd="/") as process,
        ThreadPoolExecutor(3) as pool,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pool.submit(_tell, process.stdin, told)
        output = pool.submit(_beginning, process.stdout, most)
        errors = pool.submit(_end, process.stderr, most)
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            process.kill()
        return Heard(process.wait(), late, _text(output.result()), _text(errors.result()))


def _tell(stream: IO[bytes], told: bytes) -> None:
    """Write all of it, unless the process ends before it has read it."""
    try:
        with stream:
            stream.write(told)
    except BrokenPipeError:
        pass


def _beginning(stream: IO[bytes], most: int) -> bytes:
    kept = bytearray()
    while part := stream.read1(PART):  # type: ignore[attr-defined] # a pipe's reader has it
        kept += part[: most - len(kept)]
    return bytes(kept)


def _end(stream: IO[bytes], most: int) -> bytes:
    kept = b""
    while part := stream.read1(PART):  # type: ignore[attr-defined] # a pipe's reader has it
        kept = (kept + part)[-most:]
    return kept


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
