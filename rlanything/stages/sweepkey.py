"""Which study a sweep belongs to: a key of everything that its trials have in common, kept readable beside the study.

    <folder>/<name>-<key>/key.json       configuration, files and inputs behind the key

Trials of different code or data never meet in one study. So that nobody begins anew without knowing, a start says
which other study of the same name there is, and what differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlanything.config import parse
from rlanything.core.ids import content_id
from rlanything.stages.layout import write_json
from rlanything.stages.pipeline import Pipeline, digests
from rlanything.stages.sweeptrial import Inputs, stages
from rlanything.sweep.declare import Sweep

FILE = "key.json"
SHOWN = 5
"""So many differences from another study are named."""


@dataclass(frozen=True)
class Key:
    """What all trials have in common. `files`, `inputs`: path in the project -> sha256."""

    config: Mapping[str, Any]
    files: Mapping[str, str]
    inputs: Mapping[str, str]

    @classmethod
    def of(cls, sweep: Sweep, base: Mapping[str, Any], inputs: Inputs) -> Key:
        """`base`: the trials' common configuration. Inputs made for the sweep alone follow from the rest."""
        pipeline: Pipeline = inputs.pipeline
        files = sorted({file for stage in stages(sweep.arms) for file in pipeline.files(stage, base)})
        place = inputs.place(parse(dict(base)))
        made = [p for n in ("data", "models") for p in sorted((place / n).rglob("*")) if p.is_file()]
        own = made if place == inputs.root else []
        common = {k: v for k, v in base.items() if k != "scale"}
        return cls(common, _hashes(files, inputs.root), _hashes(own, inputs.root))

    @property
    def short(self) -> str:
        """Eight hexadecimal digits, for names."""
        return content_id({name: dict(part) for name, part in vars(self).items()})[:8]

    def write(self, place: Path) -> None:
        """Keep it beside the study in `place`."""
        if not (place / FILE).is_file():
            write_json(place / FILE, asdict(self))

    def words(self, other: Mapping[str, Any]) -> str:
        """The first `SHOWN` of the differences, and how many more there are; '' where there is none."""
        found = self.differences(other)
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        return "; ".join(found[:SHOWN] + more)

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """What is not the same in `other`, the contents of another study's key.json: a line for each."""
        found = [
            f"{name}: there {_shown(before)}, here {_shown(now)}"
            for name, before, now in _changed(_flat(other["config"]), _flat(self.config))
        ]
        for part in ("inputs", "files"):
            for name, before, now in _changed(other[part], getattr(self, part)):
                found.append(
                    f"{name}: only {'here' if before is None else 'there'}"
                    if None in (before, now)
                    else f"{name}: another content"
                )
        return found


def warning(folder: Path, name: str, key: Key) -> str | None:
    """What to say of the latest study in `folder` of this name with another key, or None where there is none."""
    known = re.compile(re.escape(name) + r"-[0-9a-f]{8}")
    others = [p for p in folder.glob("*") if known.fullmatch(p.name) and p.name != f"{name}-{key.short}"]
    if not others:
        return None
    last = max(others, key=lambda p: p.stat().st_mtime)
    found = key.words(json.loads((last / FILE).read_text())) if (last / FILE).is_file() else ""
    what = found or f"it has no {FILE}"
    return f"does not go on with {last}, a study of the same name, which differs: {what}"


def _hashes(files: list[Path], root: Path) -> dict[str, str]:
    states = [(file, file.stat()) for file in files]
    return {
        str(file.relative_to(root)): _digest(file, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        for file, s in states
    }


@lru_cache(maxsize=1 << 14)
def _digest(file: Path, *_state: int) -> str:
    """Hash of a file; one that looks as it did is not read again, since a worker asks before every command."""
    return digests([file])[0]


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield name, before.get(name), now.get(name)


def _flat(data: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Dotted name -> value."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        own = f"{above}{name}"
        found |= _flat(value, f"{own}.") if isinstance(value, Mapping) else {own: value}
    return found


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)
