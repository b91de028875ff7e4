"""`rlanything verify-repro`: run the whole pipeline again from scratch, and compare every output with dvc.lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.files.atomic import remove
from rlanything.repro import workspace
from rlanything.repro.difference import STAGES, Difference, Folder, first_difference
from rlanything.repro.origin.record import recorded
from rlanything.repro.origin.text import divided
from rlanything.repro.pipeline import Output
from rlanything.runs import provenance
from rlanything.runs.machine import kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dvc.api import DVCFileSystem

DATA, MODELS = STAGES[:2]
RECORDS = "provenance"
"""The folder of the runs' records. They name the code, which may differ where results do not: they are not compared."""


@dataclass(frozen=True)
class Outcome:
    """The result of a verification.

    outputs: output -> whether it has the same bytes. files: number of files in all outputs. difference: the first
    difference, if one was found. unknown: why none could be found, although outputs differ. divided: as from
    `divided_arms`: no run from the start gives these arms' bytes. former: outputs of stages that the pipeline no longer
    has, which were not made again. unclaimed: outputs that were made, and that dvc.lock does not have. changed: files
    or outputs of the project itself that are not what its dvc.lock says."""

    outputs: Mapping[str, bool]
    files: int
    difference: Difference | None = None
    unknown: str = ""
    divided: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    unclaimed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether every output is recorded, and the same, in the project too."""
        return all(self.outputs.values()) and not self.unclaimed and not self.changed

    @property
    def other_models(self) -> bool:
        """Whether the same tasks gave other base models."""
        differing = {PurePosixPath(path).parts[0] for path, same in self.outputs.items() if not same}
        return MODELS in differing and DATA not in differing


def verify(root: Path, revision: str | None, say: Callable[[str], None], *, keep: bool = False) -> Outcome:
    """Run a copy of the project (at a git revision, or as it is on disk) and compare. Raises `ConfigError`.

    If all outputs are the same, the copy is removed, unless `keep` is set. One that stays is not used again.
    """
    copy = workspace.from_disk(root) if revision is None else workspace.from_revision(root, revision)
    known = divided_arms(root if revision is None else copy.root)  # before the run writes records of its own
    for line in (*known, *_changed(copy.changed)):
        say(line)
    say(f"the pipeline runs in {copy.root}; interrupted, the same command goes on there")
    copy.run()
    outcome = replace(compare(root, revision, copy), divided=known, changed=copy.changed)
    copy.end()
    if outcome.same and not keep:
        remove(copy.root)
    return outcome


def divided_arms(root: Path) -> tuple[str, ...]:
    """A sentence for each arm that was redivided while it was trained, or whose record cannot be read."""
    found = []
    for arm in recorded(root):
        try:
            lines = divided(provenance.read(root, arm))
        except ConfigError as error:
            found.append(safe(f"whether arm {arm} was redivided is unknown: {error}"))
            continue
        if lines:
            told = safe(f"arm {arm} was redivided while it was trained ({'; '.join(lines)})")
            found.append(f"{told}: its files will be equal to rounding, not to the byte")
    return tuple(found)


def compare(root: Path, revision: str | None, copy: workspace.Workspace) -> Outcome:
    """Compare the copy's outputs with those that the project's dvc.lock recorded."""
    claimed, made = _results(copy.locked.outputs), _results(copy.made().outputs)
    outputs = {path: _same(out, made.get(path)) for path, out in claimed.items()}
    outcome = Outcome(
        outputs,
        sum(out.nfiles for out in claimed.values()),
        former=copy.locked.former,
        unclaimed=tuple(path for path in made if path not in claimed),
    )
    differing = tuple(path for path, same in outputs.items() if not same)
    if not differing:
        return outcome
    try:
        found = first_difference(_Claimed(root, revision, differing), Folder(copy.root, differing))
    except ConfigError as error:
        return replace(outcome, unknown=str(error))
    reason = (
        "" if found else "the files on disk are not the ones that dvc.lock recorded (`dvc status` says which)"
    )
    return replace(outcome, difference=found, unknown=reason)


def text(outcome: Outcome) -> str:
    """The outcome for a terminal."""
    lines = [f"  {'same   ' if same else 'DIFFERS'}  {path}" for path, same in outcome.outputs.items()]
    lines += [
        f"  unknown  {path}: not in dvc.lock, so nothing says what it was" for path in outcome.unclaimed
    ]
    lines += [f"  CHANGED  {line}" for line in _changed(outcome.changed)]
    lines += [f"  not run  {path}: of a stage that the pipeline no longer has" for path in outcome.former]
    count = sum(outcome.outputs.values())
    lines.append(
        f"{count} of {len(outcome.outputs)} outputs ({outcome.files} files) came out with the same bytes"
    )
    if outcome.difference is not None:
        lines += ["the first difference (first: as recorded; second: run again):", str(outcome.difference)]
    elif outcome.unknown:
        lines.append(f"where they differ cannot be told: {outcome.unknown}")
    if not outcome.same:
        lines += outcome.divided
    if outcome.other_models:
        lines.append(
            "Another kind of processor makes other base models from the same tasks, and all that follows from them is "
            f"another sample (docs/reproducibility.md#limits). This one: {kind()}"
        )
    return "\n".join(lines) + "\n"


def _changed(paths: Sequence[str]) -> list[str]:
    return [safe(f"{path}: not what dvc.lock says") for path in paths]


def _results(outputs: Mapping[str, Output]) -> dict[str, Output]:
    return {path: out for path, out in outputs.items() if PurePosixPath(path).parts[0] != RECORDS}


def _same(claimed: Output, made: Output | None) -> bool:
    return made is not None and claimed.md5 == made.md5


@dataclass(frozen=True)
class _Claimed:
    """The recorded outputs, read by DVC from disk, from its cache, or from a remote."""

    root: Path
    revision: str | None
    outputs: tuple[str, ...]

    def names(self) -> Sequence[PurePosixPath]:
        with self._tree() as tree:
            found = [p for out in self.outputs for p in ([out] if tree.isfile(out) else tree.find(out))]
        return [PurePosixPath(path) for path in found]

    def read(self, path: PurePosixPath) -> bytes:
        with self._tree() as tree:
            data: bytes = tree.cat_file(path.as_posix())
        return data

    @contextmanager
    def _tree(self) -> Iterator[DVCFileSystem]:
        from dvc.api import DVCFileSystem
        from dvc.exceptions import DvcException
        from dvc_data.index import DataIndexDirError

        try:
            yield DVCFileSystem(str(self.root), rev=self.revision)
        except (DvcException, DataIndexDirError, OSError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"the recorded files are neither in the DVC cache nor in a remote ({reason})"
            ) from None
