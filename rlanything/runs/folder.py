"""A run on disk. Each iteration is published with one rename.

    <run>/lock                     held by the process that trains here; contains its pid and host
    <run>/iterations/0007/         one iteration: metrics.json, events.jsonl, buffer.jsonl, rollouts.jsonl.gz,
                                   tests.jsonl.gz where the reward model writes tests, critics.jsonl.gz where a model is
                                   the critic, images.jsonl.gz where its rollouts name pictures, images_ahead.jsonl
                                   where the next batch was sampled ahead and has seen pictures, manifest.json, and,
                                   for the last two only, state.ckpt (both models, both optimizers, loop state)
    <run>/images/                  the pictures of all iterations (`files.images`)
    <run>/finished/                the whole run as DVC tracks it, when it is finished

When every seed of an arm is finished, `place` copies all of them to runs/<arm>/ with one rename. It does not copy them
earlier, because DVC empties a stage's outputs before it runs the stage again: a killed stage would lose them.

Before a published iteration is read again, its hashes are checked (`files/manifest.py`). If only the last iteration is
damaged, the run removes it and computes it again from the iteration before.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rlanything.buffer import TaskBuffer, append_events, read_events, read_snapshot, write_snapshot
from rlanything.core.errors import MachineError
from rlanything.core.types import Json
from rlanything.files import atomic, images, locks, manifest
from rlanything.files.atomic import write_text
from rlanything.files.hashes import tree_hash
from rlanything.files.images import ImageStore
from rlanything.files.reader import FileError, read_object, read_text
from rlanything.files.records import write_json, write_lines
from rlanything.loop.iteration import IterationResult
from rlanything.loop.record import metrics_record

STATE = "state.ckpt"
KEPT = 2
"""How many iterations, the last ones, keep their state: if the last is damaged, the run goes on from the one before."""
RECORD = ".jsonl.gz"
"""Ending of the record files of an iteration. In a finished run, each kind of record has a folder."""
IMAGES_AHEAD = "images_ahead.jsonl"
"""The pictures of the batch that an iteration's checkpoint holds. They are needed as long as the checkpoint is."""
ORPHANS = 10.0
"""Seconds to wait for the lock of a seed's folder. The processes of a killed run end within this time."""


class RunFolder:
    """The live folder of one arm and seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.iterations = path / "iterations"
        self.images = ImageStore(path / images.FOLDER)

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder. Raises `ConfigError` naming the holder when another process holds the lock."""
        atomic.make(self.path)
        return locks.held(self.path / "lock", f"{self.path}: another process trains here", ORPHANS)

    def recover(self, say: Callable[[str], None]) -> int:
        """Remove half-written files of a killed process, and a damaged last iteration.

        Returns the number of published iterations. Raises `MachineError` like `usable`.
        """
        atomic.make(self.iterations)
        for leftover in self.iterations.glob(".*"):
            if leftover.is_dir():  # a file is somebody else's, as .DS_Store is a file manager's
                atomic.clear(leftover)
        usable = self.usable(say)
        for damaged in self.published()[len(usable) :]:
            atomic.remove(damaged)
        needed = {name for folder in usable for name in _pictures(folder)}
        needed |= {name for folder in usable[-KEPT:] for name in _pictures_ahead(folder)}
        images.clear(self.images.folder, needed)
        return len(usable)

    def usable(self, say: Callable[[str], None]) -> list[Path]:
        """The folders of the intact iterations: all that are published, without a damaged last one.

        Raises `MachineError` when an older iteration is damaged.
        """
        folders = self.published()
        found = _damage(folders)
        if found is None:
            return folders
        if _damage(folders[:-1]) is None:
            say(f"{found}; {folders[-1].name} is computed again from the iteration before it")
            return folders[:-1]
        raise MachineError(
            f"{found}. The seed cannot be resumed. Restore what was changed, or remove {self.path} to train the seed "
            "from the start"
        )

    def published(self) -> list[Path]:
        """Folders of the published iterations, in order. Folders with other names, such as 0000.bak, are ignored."""
        folders = [p for p in self.iterations.glob("[0-9]*") if p.name.isdecimal() and p.is_dir()]
        return sorted((p for p in folders if p.name == _name(int(p.name))), key=lambda p: int(p.name))

    def publish(self, iteration: int, write: Callable[[Path], None]) -> None:
        """Write an iteration into a temporary folder, sync every file, and rename the folder.

        The checkpoint of the iteration before is kept, in case this one is damaged. Older checkpoints are deleted.
        Raises `FileExistsError` when the iteration is published already.
        """
        place = self.iterations / _name(iteration)
        if place.exists():
            raise FileExistsError(errno.EEXIST, "this iteration is published already", str(place))
        with atomic.whole(place) as folder:
            write(folder)
            manifest.seal(folder, self.iterations / _name(iteration - 1) if iteration else None)
        for older in self.published()[:-KEPT]:
            (older / STATE).unlink(missing_ok=True)

    def state_file(self, iteration: int) -> Path:
        """The checkpoint of an iteration. Only the last two checkpoints are kept."""
        return self.iterations / _name(iteration) / STATE

    def buffer(self, iteration: int) -> TaskBuffer:
        """The buffer as it was after `iteration`."""
        return read_snapshot(self.iterations / _name(iteration) / "buffer.jsonl")

    def head(self, start: TaskBuffer, iterations: int) -> str:
        """The last hash in the chain of the events of the first `iterations`, in a run that began with `start`."""
        if not iterations:
            return start.digest
        return read_events(self.iterations / _name(iterations - 1) / "events.jsonl").heads[-1]

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of the published iterations. Raises `ConfigError` naming a file that is damaged."""
        return [read_object(p / "metrics.json", "start the training again") for p in self.published()]

    @property
    def finished(self) -> Path:
        """The folder of the finished run. It exists only when it is complete."""
        return self.path / "finished"

    def export(self, start: TaskBuffer, finish: Callable[[Path], None]) -> None:
        """Write `finished` with one rename. `finish(folder)` adds everything besides the iterations.

        Does nothing when `finished` exists. Raises `MachineError` when an iteration is damaged.
        """
        if self.finished.is_dir():
            return
        found = _damage(self.published())
        if found is not None:
            raise MachineError(
                f"{found}. Something changed it during the training; run the same command again: it resumes from "
                "the intact iterations, or says why it cannot"
            )
        with atomic.whole(self.finished) as folder:
            self._export(folder, start)
            self._export_images(folder / images.FOLDER)
            finish(folder)
            write_text(self._sealed, tree_hash(folder))

    @property
    def _sealed(self) -> Path:
        """The file with the hash of `finished`.

        A finished seed may wait for hours until the other seeds are finished.
        """
        return self.path / "finished.sha256"

    def check_finished(self) -> None:
        """Raise `MachineError` when `finished` has changed since `export`.

        A folder without a stored hash is accepted.
        """
        if self._sealed.is_file() and not self._is_sealed():
            raise MachineError(
                f"{self.finished}: its content has changed. Remove it, and the same command makes it again from its "
                "iterations"
            )

    def _is_sealed(self) -> bool:
        try:
            return read_text(self._sealed) == tree_hash(self.finished)
        except FileError:
            return False

    def _export(self, temporary: Path, start: TaskBuffer) -> None:
        (temporary / "buffer").mkdir()
        write_snapshot(start, temporary / "buffer" / "iter_0000.jsonl")
        events = temporary / "buffer" / "events.jsonl"
        append_events(events, [], start.digest)
        for k, folder in enumerate(self.published(), 1):
            shutil.copyfile(folder / "buffer.jsonl", temporary / "buffer" / f"iter_{k:04d}.jsonl")
            append_events(events, read_events(folder / "events.jsonl").events)
            for record in folder.glob(f"*{RECORD}"):
                place = temporary / record.name.removesuffix(RECORD)
                place.mkdir(exist_ok=True)
                shutil.copyfile(record, place / f"iter_{k:04d}{RECORD}")
        rows = "".join(json.dumps(row, sort_keys=True) + "\n" for row in self.metrics())
        write_text(temporary / "metrics.jsonl", rows)

    def _export_images(self, folder: Path) -> None:
        """Copy the pictures that the iterations name, with their content compared. Raises `MachineError`."""
        try:
            for iteration in self.published():
                self.images.copy_to(folder, _pictures(iteration))
        except FileError as error:
            raise MachineError(
                f"{error}. Put the picture back, or remove {self.path} to train the seed again"
            ) from None


def place(runs: Sequence[RunFolder], target: Path) -> None:
    """Replace `target` by copies of the finished runs, with one rename.

    Raises `MachineError` when one of the runs is damaged.
    """
    for run in runs:
        run.check_finished()
    with atomic.whole(target) as folder:
        for run in runs:
            atomic.copy_tree(run.finished, folder / run.path.name)


def write_iteration_files(
    folder: Path,
    result: IterationResult,
    metrics: dict[str, Any],
    start: TaskBuffer,
    head: str,
    records: Mapping[str, Iterable[Json]],
) -> str:
    """Write the files of one iteration, except its checkpoint. The buffer is stored as its differences from `start`.

    Returns the last hash in the chain of events, the iteration's included.

    head: the last hash in the chain of the run's earlier events.
    records: the records of the rollouts, by the name of their file.
    """
    write_json(folder / "metrics.json", metrics_record(metrics))
    append_events(folder / "events.jsonl", result.events, head)
    head = read_events(folder / "events.jsonl").heads[-1]
    write_snapshot(result.state.buffer, folder / "buffer.jsonl", start, events=head)
    for name, lines in records.items():
        write_lines(folder / f"{name}{RECORD}", lines)
    return head


def _name(iteration: int) -> str:
    return f"{iteration:04d}"


def _damage(folders: Sequence[Path]) -> str | None:
    """A sentence about the first damage: a missing iteration or file, or changed content; None when all are intact.

    Checkpoints, and the pictures of what they hold, are only checked in the last folder."""
    for number, folder in enumerate(folders):
        if folder.name != _name(number):
            return f"{folder.parent / _name(number)}: the iteration is gone, but {folder.name} is there"
        before = folders[number - 1] if number else None
        last = folder == folders[-1]
        found = manifest.damage(folder, before, () if last else (STATE,))
        if found is None:
            named = {**_pictures(folder), **(_pictures_ahead(folder) if last else {})}
            found = ImageStore(folder.parents[1] / images.FOLDER).damage(named)
        if found is not None:
            return found
    return None


def _pictures(folder: Path) -> dict[str, int]:
    """Name -> bytes of the pictures that the rollouts of an iteration name."""
    return images.sizes(folder / f"{images.FOLDER}{RECORD}")


def _pictures_ahead(folder: Path) -> dict[str, int]:
    """The same of the batch that was sampled ahead."""
    return images.sizes(folder / IMAGES_AHEAD)
