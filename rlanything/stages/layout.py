"""Where every stage reads and writes, relative to the project root; and atomic files."""

from __future__ import annotations

import glob
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task
from rlanything.stages import disk

SPLITS = ("train", "in_domain", "out_of_domain", "reward_panel")


@dataclass(frozen=True)
class Layout:
    """Paths of one project root."""

    root: Path

    def tasks(self, split: str) -> Path:
        """The tasks of a split, one JSON line each."""
        return self.root / "data" / "tasks" / f"{split}.jsonl"

    @property
    def manifest(self) -> Path:
        """Counts and content hashes of the splits."""
        return self.root / "data" / "tasks" / "manifest.json"

    @property
    def reward_panel(self) -> Path:
        """The base policy's trajectories with the oracle's labels."""
        return self.root / "models" / "reward_panel.jsonl.gz"

    @property
    def bootstrap(self) -> Path:
        """What the bootstrap stage recorded about the base models; written last, so that they are whole with it."""
        return self.root / "models" / "bootstrap.json"

    def check_bootstrap(self) -> None:
        """Raise `ConfigError` unless the base models and the reward panel are there and belong together."""
        if not self.bootstrap.is_file():
            raise ConfigError(
                f"{self.bootstrap}: no such file, so models/ is not whole; `rlanything bootstrap` makes it"
            )

    def run(self, arm: str, seed: int) -> Path:
        """A finished run."""
        return self.root / "runs" / arm / f"seed-{seed}"

    def live(self, key: str, arm: str, seed: int) -> Path:
        """A run on its way, kept outside what DVC tracks so that it survives to be resumed."""
        return self.root / ".rla" / "live" / key[:16] / arm / f"seed-{seed}"

    def provenance(self, arm: str) -> Path:
        """What an arm's run came from; git keeps it, as it may differ where the run does not."""
        return self.root / "provenance" / f"{arm}.json"

    def evaluation(self, arm: str) -> Path:
        """The panels' raw results of one arm."""
        return self.root / "evaluation" / f"{arm}.json"


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there whole or as it was before."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Atomic: a temporary file beside it, synced, then renamed. Raises `OSError` naming the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with disk.system_errors(path), temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_leftovers(path: Path) -> None:
    """Remove what killed writers of a file left beside it; for one who holds the lock of all that write it."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)


def write_json(path: Path, value: Json) -> None:
    """Indented, sorted, with a final newline: readable and diffable."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """JSON lines in canonical form; gzip (without time stamp) when the name ends in .gz."""
    data = "".join(canonical_json(record) + "\n" for record in records).encode()
    write_bytes(path, gzip.compress(data, 5, mtime=0) if path.suffix == ".gz" else data)


def read_lines(path: Path, command: str) -> Iterator[Json]:
    """The records of a JSON-lines file. Raises `ConfigError` naming file, line and the command that makes it."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; make it with `{command}`")
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); make it again with `{command}`") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(
                f"{path}:{number}: not JSON ({error.msg}); make it again with `{command}`"
            ) from None


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a split file, their ids verified."""
    tasks = []
    for number, record in enumerate(read_lines(path, "rlanything tasks"), 1):
        try:
            tasks.append(Task.from_json(record))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{path}:{number}: not a task ({error}); make it again with `rlanything tasks`"
            ) from None
    return tasks
