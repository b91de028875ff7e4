"""The divisions that a run had, one after the other: how its work is spread over devices, and over passes of a model.

A division changes results by rounding alone. It is part of the run's name all the same, so a run has the division that
it began with until its user changes it (`stages/redivide.py`). Each change is noted in the live folder, and then in the
record of the finished run. A run whose division never changed has no such note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.files.reader import read_object
from rlanything.files.records import write_json
from rlanything.runs.fingerprint import Origin
from rlanything.runs.provenance import flat

FILE = "divisions.json"
"""The file in an arm's live folder, from the first change on."""
KEYS = (
    "train.devices",
    "train.nodes",
    "train.strategy",
    "train.offload",
    "train.exchange",
    "engine.max_batch",
    "learn.micro_batch_tokens",
    "learn.gradient_checkpointing",
)
"""The keys of the configuration that are a division. What else may differ by rounding alone, such as an engine, is not
here: to change it in the middle of a run would say nothing of the number of devices."""


@dataclass(frozen=True)
class Division:
    """A division of a run.

    key: the run's name while it holds (`Origin.key`).
    values: those of `KEYS`.
    first: seed -> the first iteration that it holds for. Seeds that had all of theirs are not there.
    """

    key: str
    values: Mapping[str, Json]
    first: Mapping[str, int]

    @classmethod
    def of(cls, origin: Origin, first: Mapping[int, int]) -> Division:
        """The division in the configuration of `origin`."""
        found = flat(origin.config)
        return cls(
            origin.key,
            {name: found[name] for name in KEYS if name in found},
            {str(seed): iteration for seed, iteration in first.items()},
        )


def read(live: Path, key: str) -> list[Division]:
    """The divisions of the run in the live folder of an arm, whose name is `key`. [] where none was changed.

    A last one with another name belongs to a change that a kill ended before the folder had that name. Raises
    `ConfigError` for a damaged file.
    """
    path = live / FILE
    if not path.is_file():
        return []
    try:
        found = [
            Division(**each) for each in read_object(path, f"remove {live} to train from the start")["of"]
        ]
        return found if found[-1].key == key else found[:-1]
    except (KeyError, TypeError, IndexError):
        raise ConfigError(f"{path}: holds no divisions; remove {live} to train from the start") from None


def note(live: Path, divisions: Sequence[Division]) -> None:
    """Write the divisions of a run into the live folder of an arm."""
    write_json(live / FILE, {"of": [asdict(each) for each in divisions]})


def correct(live: Path, key: str, intact: Callable[[int], int]) -> None:
    """Let the last division hold from the first iteration that is computed under it.

    intact: how many intact iterations a seed has. One that was damaged since the change is computed again.
    """
    if not (known := read(live, key)):
        return
    last = known[-1]
    first = {seed: min(iteration, intact(int(seed))) for seed, iteration in last.first.items()}
    if first != last.first:
        note(live, [*known[:-1], replace(last, first=first)])


def record(live: Path, key: str) -> list[dict[str, Json]]:
    """The divisions of a finished run for its record; [] where it had one alone.

    Each has the `first` iteration of each seed that it holds for, and the `values` of the keys that were changed. One
    that held for no iteration is left out.
    """
    kept: list[Division] = []
    for division in read(live, key):
        if kept and kept[-1].first == division.first:
            kept.pop()
        if not kept or kept[-1].values != division.values:
            kept.append(division)
    changed = [
        name for name in KEYS if any(each.values.get(name) != kept[0].values.get(name) for each in kept)
    ]
    if not changed:
        return []
    return [
        {"first": dict(each.first), "values": {name: each.values.get(name) for name in changed}}
        for each in kept
    ]


def undivided(origin: Mapping[str, Any]) -> dict[str, Any]:
    """An origin, in the form of `asdict`, without its division: equal ones are the same experiment."""
    config = {name: value for name, value in flat(origin["config"]).items() if name not in KEYS}
    return {**origin, "config": config}
