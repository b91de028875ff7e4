"""Whether a run is still made from the same things: while it is on its way, and when it is started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files.hashes import digest, file_hashes
from rlanything.files.reader import read_object
from rlanything.files.records import write_json
from rlanything.runs.fingerprint import Origin, input_files
from rlanything.runs.imports import place_of
from rlanything.runs.provenance import changed, flat

FILE = "origin.json"
"""In the live folder of an arm, so that a later start can say why it does not go on from there."""
SHOWN = 4
"""The most differences that a message names."""


def unchanged(config: Config, root: Path, arm: str, origin: Origin) -> Callable[[], None]:
    """A check that all code and inputs are what `origin` says. It raises `ConfigError` naming the files that are not.

    The first check reads the files, later ones only those whose size or times are not the same.
    """

    def check() -> None:
        places = {name: place_of(Path(name)) for name in origin.code}
        code = {name: digest(place) for name, place in places.items() if place.is_file()}
        found = changed(
            {**origin.code, **origin.inputs}, {**code, **file_hashes(root, input_files(config, root, arm))}
        )
        if found:
            raise ConfigError(
                f"changed while arm {arm} was trained: {_first(found)}. What is published was made before. Undo the "
                "change, and the same command goes on; with it, the same command trains from the start"
            )

    return check


def begin(live: Path, arm: str, origin: Origin) -> str | None:
    """Keep `origin` in the arm's live folder; where that is new, say which run it does not go on from."""
    if (live / FILE).is_file():
        return None
    write_json(live / FILE, asdict(origin))
    left = [
        path
        for path in live.parents[1].glob(f"*/{arm}/{FILE}")
        if path.parent != live and any(path.parent.glob("seed-*/iterations/[0-9]*"))
    ]
    if not left:
        return None
    last = max(left, key=lambda path: path.stat().st_mtime)
    before = read_object(last, f"remove {last.parent} if it is not wanted")
    found = [text for part, now in asdict(origin).items() for text in changed(flat(before[part]), flat(now))]
    return (
        f"starts anew; {last.parent} is of the same arm but made from something else: {_first(found)}. Undo that to go "
        "on there, or remove the folder"
    )


def _first(found: list[str]) -> str:
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join(found[:SHOWN] + more)
