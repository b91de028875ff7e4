"""Run a subprocess with a timeout and capped output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

PART = 1 << 16


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended. Bytes that are not UTF-8 become replacement characters."""

    code: int
    timed_out: bool
    output: str
    """The beginning of its standard output."""
    errors: str
    """The end of its standard error."""


def run_bounded(command: Sequence[str], stdin: bytes, timeout_s: float, most_bytes: int) -> ProcessResult:
    """Run a command with an empty environment; it is killed after `timeout_s`.

    At most `most_bytes` of each output are kept, however much it writes. Raises `OSError` when it cannot start.
    """
    pipe, timed_out = subprocess.PIPE, False
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={}, cwd="/") as process,
        ThreadPoolExecutor(3) as pool,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pool.submit(_write, process.stdin, stdin)
        output = pool.submit(_read_beginning, process.stdout, most_bytes)
        errors = pool.submit(_read_end, process.stderr, most_bytes)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            process.kill()
        texts = (data.result().decode("utf-8", "replace") for data in (output, errors))
        return ProcessResult(process.wait(), timed_out, *texts)


def _write(stream: IO[bytes], data: bytes) -> None:
    """Write all of it, unless the process ends before it has read it."""
    try:
        with stream:
            stream.write(data)
    except BrokenPipeError:
        pass


def _read_beginning(stream: IO[bytes], most: int) -> bytes:
    kept = bytearray()
    while part := stream.read1(PART):  # type: ignore[attr-defined] # a pipe's reader has it
        kept += part[: most - len(kept)]
    return bytes(kept)


def _read_end(stream: IO[bytes], most: int) -> bytes:
    kept = b""
    while part := stream.read1(PART):  # type: ignore[attr-defined] # a pipe's reader has it
        kept = (kept + part)[-most:]
    return kept
