"""Checks that code and inputs of a run have not changed, during the training and when it is started again."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files.hashes import digest
from rlanything.files.reader import read_object
from rlanything.files.records import write_json
from rlanything.runs.fingerprint import Origin, inputs
from rlanything.runs.imports import place_of
from rlanything.runs.provenance import changed, flat
from rlanything.runs.resuming.divisions import undivided

FILE = "origin.json"
"""The file with the `Origin` in an arm's live folder. A later start reads it to say why it does not resume there."""
SHOWN = 4
"""The most differences that a message names."""


def unchanged(config: Config, root: Path, arm: str, origin: Origin) -> Callable[[], None]:
    """A check that raises `ConfigError`, naming the files, when code or inputs differ from `origin`.

    The first check of a process reads all files, checkpoints included. Later checks only read files whose inode, size
    or times have changed: to hash gigabytes of weights before each publication would take too long. The stage hashes
    all files once more when every seed is finished (`hashes.forget`).
    """

    def check() -> None:
        places = {name: place_of(Path(name)) for name in origin.code}
        code = {name: digest(place) for name, place in places.items() if place.is_file()}
        found = changed({**origin.code, **origin.inputs}, {**code, **inputs(config, root, arm)})
        if found:
            raise ConfigError(
                f"changed while arm {arm} was trained: {first_few(found)}. The published iterations were made before "
                "the change. The same command resumes if the change is undone; otherwise it trains from the start"
            )

    return check


def begin(live: Path, arm: str, origin: Origin) -> str | None:
    """Write `origin` into the arm's live folder.

    Returns a message when the folder is new and there is an unfinished run of the same arm with another origin."""
    new = not (live / FILE).is_file()
    write_json(live / FILE, asdict(origin))
    left = unfinished(live, arm) if new else {}
    if not left:
        return None
    last = max(left, key=lambda folder: (folder / FILE).stat().st_mtime)
    found = differences(left[last], origin)
    if not found:  # `redivide` was killed after it had moved the folder, and then the change was undone
        return (
            f"starts from the beginning; {last} holds this run, whose division was being changed. Remove {live}, then "
            f"`rlanything redivide --arm {arm}` brings it back"
        )
    ways = ["Undo these changes to resume it"]
    if divided(left[last], origin):
        ways.append(f"let it go on with them (remove {live}, then `rlanything redivide --arm {arm}`)")
    return (
        f"starts from the beginning; {last} holds an unfinished run of the same arm with another origin: "
        f"{found}. {', '.join(ways)}, or remove the folder"
    )


def unfinished(live: Path, arm: str) -> dict[Path, dict[str, Any]]:
    """The other live folders of an arm in which iterations are published, and the origin in each.

    live: the arm's live folder of now, which need not exist."""
    every = live.parents[1].glob(f"[!.]*/{glob.escape(arm)}/{FILE}")
    found = [path.parent for path in every if path.parent != live]
    return {folder: _read(folder) for folder in sorted(found) if any(folder.glob("seed-*/iterations/[0-9]*"))}


def _read(folder: Path) -> dict[str, Any]:
    """The origin in a live folder. Raises `ConfigError` for a damaged file."""
    found = read_object(folder / FILE, f"remove {folder} if it is not wanted")
    parts = {part.name: found.get(part.name) for part in fields(Origin)}
    if not all(isinstance(value, dict) for value in parts.values()):
        raise ConfigError(f"{folder / FILE}: holds no origin of a run; remove {folder} if it is not wanted")
    return parts


def divided(before: Mapping[str, Any], origin: Origin) -> bool:
    """Whether an origin that was read from its file differs from `origin` in its division alone."""
    return undivided(before) == undivided(asdict(origin))


def changes(before: Mapping[str, Any], origin: Origin) -> list[str]:
    """A sentence for each difference between an origin that was read from its file and `origin`."""
    pairs = ((before[part], now) for part, now in asdict(origin).items())
    return [text for one, two in pairs for text in changed(flat(one), flat(two))]


def differences(before: Mapping[str, Any], origin: Origin) -> str:
    """The first few of these sentences."""
    return first_few(changes(before, origin))


def first_few(found: list[str]) -> str:
    """The first few sentences, and how many more there are."""
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join(found[:SHOWN] + more)
