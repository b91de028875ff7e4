"""Reading files that may be anybody's: regular files only, of bounded size, their JSON of bounded depth.

The limits hold for what a file unpacks to. A file that is larger for good reason is read when the limit is raised by an
environment variable, which the message names.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from rlanything.core.errors import ConfigError
from rlanything.core.types import Json

MOST_MB = 256
PANEL_MB = 2048
"""The limit of a reward panel. At the paper's scale its trajectories take several times the other limit."""
SIZE = "RLANYTHING_MOST_MB"
MOST_DEPTH = 200
DEPTH = "RLANYTHING_MOST_DEPTH"
_PER_MB = 40_000
"""Lists and objects for each megabyte of the limit: they take twenty times the memory of their text."""
_CHUNK = 1 << 20
_TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class FileError(ConfigError):
    """A file cannot be read, or is not what it should be. The message names it, and the line if it is in one."""


class TooLargeError(FileError):
    """A file holds more than the limit, which the message says how to raise. To make it again does not help."""


def opened(path: Path, most_mb: int = MOST_MB) -> BinaryIO:
    """A regular file for reading. Raises `FileError`, also for a pipe, a device, or more than the limit."""
    try:
        _require_regular(
            path, os.stat(path)
        )  # before it is opened: opening a device may act, a pipe may wait
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    found = os.fstat(file.fileno())
    try:
        _require_regular(path, found)
        if found.st_size > _most(most_mb) << 20:
            raise _too_large(path, most_mb)
    except FileError:
        file.close()
        raise
    return file


def require_fits(path: Path, unpacked: int, most_mb: int = MOST_MB) -> None:
    """Raise `FileError` for a file whose content takes more bytes than the limit, as whoever unpacks it says."""
    if unpacked > _most(most_mb) << 20:
        raise _too_large(path, most_mb)


def read_bytes(path: Path, most_mb: int = MOST_MB) -> bytes:
    """The content of a file, unpacked when its name ends in .gz. Raises `FileError`."""
    with opened(path, most_mb) as file:
        return b"".join(_chunks(file, path, most_mb))


def read_text(path: Path, most_mb: int = MOST_MB) -> str:
    """The content of a file of UTF-8 text. Raises `FileError`."""
    try:
        return read_bytes(path, most_mb).decode()
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: cannot be read (byte {error.start} is not UTF-8)") from None


def read_json(path: Path, advice: str = "") -> Json:
    """The JSON value in a file. Raises `FileError`, whose message ends with what to do (`advice`)."""
    try:
        return parse(read_bytes(path))
    except TooLargeError as error:
        raise TooLargeError(str(_placed(error, path))) from None
    except FileError as error:
        raise FileError(f"{_placed(error, path)}{advice and f'; {advice}'}") from None


def read_object(path: Path, advice: str = "") -> dict[str, Any]:
    """The JSON object in a file. Raises `FileError` for anything else."""
    found = read_json(path, advice)
    if not isinstance(found, dict):
        problem = f"{path}: expected a JSON object, found {type(found).__name__}"
        raise FileError(f"{problem}{advice and f'; {advice}'}")
    return found


def read_objects(path: Path, most_mb: int = MOST_MB) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines. Raises `FileError` with the line."""
    with opened(path, most_mb) as file:
        for number, value in values(file, path, most_mb):
            if not isinstance(value, dict):
                raise FileError(f"{path}:{number}: expected a JSON object, found {type(value).__name__}")
            yield value


def values(file: BinaryIO, path: Path, most_mb: int = MOST_MB) -> Iterator[tuple[int, Json]]:
    """(line number, value) of each line of JSON in an open file, unpacked. Raises `FileError` with the line."""
    held = 0
    for number, line in enumerate(_lines(file, path, most_mb), 1):
        held += _containers(line)
        try:
            _require_few(held, most_mb)
            yield number, parse(line)
        except FileError as error:
            raise type(error)(f"{path}:{number}: {error}") from None


def parse(data: bytes) -> Json:
    """The JSON value in some bytes. Raises `FileError` without a place: broken, too deep, or too many lists."""
    _require_few(_containers(data))
    try:
        value = json.loads(data.decode())
    except json.JSONDecodeError as error:
        raise FileError(f"not JSON ({error.msg}, character {error.pos})") from None
    except UnicodeDecodeError as error:
        raise FileError(f"not JSON (byte {error.start} is not UTF-8)") from None
    except RecursionError:
        raise FileError("not JSON that can be read (nested too deeply)") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise FileError(f"not JSON that can be read ({error})") from None
    _require_shallow(data)
    return value


def _chunks(file: BinaryIO, path: Path, most_mb: int) -> Iterator[bytes]:
    """The unpacked content, as long as it keeps within the limit."""
    left = _most(most_mb) << 20
    with _damage(path), _source(file, path) as source:
        while chunk := source.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise _too_large(path, most_mb)
            yield chunk


def _lines(file: BinaryIO, path: Path, most_mb: int) -> Iterator[bytes]:
    left = _most(most_mb) << 20
    with _damage(path), _source(file, path) as source:
        while line := source.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise _too_large(path, most_mb)
            yield line


def _source(file: BinaryIO, path: Path) -> BinaryIO:
    return gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file  # type: ignore[return-value]


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path}: cannot be read ({error})") from None


def _require_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{path}: a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path}: no regular file, but a pipe, a socket or a device")


def _require_few(containers: int, most_mb: int = MOST_MB) -> None:
    most = _PER_MB * _most(most_mb)
    if containers > most:
        raise TooLargeError(
            f"more than {most:,} lists and objects; {SIZE} in the environment raises the limit"
        )


def _require_shallow(data: bytes) -> None:
    """Raise `FileError` for valid JSON that is nested deeper than the limit."""
    most = _limit(DEPTH, MOST_DEPTH)
    if _containers(data) <= most:
        return
    brackets = _TEXTS.sub(b"", data).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > most:
        raise FileError(f"nested deeper than {most} levels; {DEPTH} in the environment raises the limit")


def _containers(data: bytes) -> int:
    return data.count(b"[") + data.count(b"{")


def _most(most_mb: int) -> int:
    """The limit in megabytes, as the environment may raise it."""
    return max(most_mb, _limit(SIZE, 0))


def _limit(name: str, default: int) -> int:
    given = os.environ.get(name, "")
    if given and not (given.isascii() and given.isdecimal()):
        raise ConfigError(f"{name} = {given!r}: must be a whole number")
    return int(given) if given else default


def _too_large(path: Path, most_mb: int) -> TooLargeError:
    return TooLargeError(
        f"{path}: it holds more than {_most(most_mb)} MB; {SIZE} in the environment raises the limit"
    )


def _placed(error: FileError, path: Path) -> FileError:
    """The error with its file, which those of opening and unpacking have already."""
    return error if str(error).startswith(f"{path}:") else FileError(f"{path}: {error}")
