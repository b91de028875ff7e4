"""What all trials of a study have in common: configuration, code, inputs and packages. A hash of it names the study.

    <folder>/<name>-<key>/key.json       the same in readable form

Trials of different code or data are never in one study. A start names the latest other study of the same name, and
what differs. While trials run, a change of any of it ends the sweep: every command imports the code and composes
experiments/ as they are at that moment, so later trials could not be compared with earlier ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.records.forms import Form
from rlanything.files.hashes import digest, file_hashes, files_in
from rlanything.files.reader import FileError, read_object
from rlanything.files.records import write_json
from rlanything.planning.pipeline import trial_stages
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.errors import ProjectChanged
from rlanything.sweep.trials.inputs import MADE, Inputs

FILE = "key.json"
SHOWN = 5
"""The most differences that a message names."""


class _Stored(TypedDict):
    config: dict[str, Any]
    files: dict[str, str]
    inputs: dict[str, str]
    packages: NotRequired[dict[str, str]]


_FORM = Form(_Stored)


@dataclass(frozen=True)
class Key:
    """What all trials have in common. `files`, `inputs`: path in the project -> sha256; `packages`: name -> version.

    packages: empty in keys that older code wrote.
    """

    config: Mapping[str, Any]
    files: Mapping[str, str]
    inputs: Mapping[str, str]
    packages: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, arms: Sequence[str], base: Mapping[str, Any], inputs: Inputs) -> Key:
        """Of trials of these arms; `base`: their common configuration. Inputs that are made for them follow from it."""
        stages = trial_stages(arms)
        files, packages = inputs.pipeline.files(stages, base), inputs.pipeline.packages(stages, base)
        own: list[Path] = []
        if inputs.place(parse(dict(base))) == inputs.root:
            own = [path for name in MADE for path in files_in(inputs.root / name)]
        common = {k: v for k, v in base.items() if k != "scale"}
        outside = {name: digest(path) for name, path in inputs.pipeline.outside(stages, base).items()}
        hashes = file_hashes(inputs.root, files) | outside
        return cls(common, hashes, file_hashes(inputs.root, own), packages)

    @classmethod
    def read(cls, path: Path) -> Key:
        """The one that `write` wrote. Raises `FileError`."""
        found = read_object(path)
        try:
            _FORM.check(found)
        except ValueError as error:
            raise FileError(f"{path}: {error}") from None
        return cls(found["config"], found["files"], found["inputs"], found.get("packages", {}))

    @property
    def short(self) -> str:
        """Eight hexadecimal digits of its hash, for names."""
        return content_id({name: dict(part) for name, part in vars(self).items()})[:8]

    def write(self, place: Path) -> None:
        """Write it beside the study in `place`, once."""
        if not (place / FILE).is_file():
            write_json(place / FILE, asdict(self))

    def describe(self, other: Key) -> str:
        """The first `SHOWN` differences, and how many more there are; '' where there is none."""
        found = self.differences(other)
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        return "; ".join(found[:SHOWN] + more)

    def differences(self, other: Key) -> list[str]:
        """What differs in `other`, the key of another study: one text for each."""
        values = [(_flat(other.config), _flat(self.config)), (other.packages, self.packages)]
        found = [
            f"{name}: there {_shown(before)}, here {_shown(now)}"
            for there, here in values
            for name, before, now in _changed(there, here)
        ]
        for part in ("inputs", "files"):
            for name, before, now in _changed(getattr(other, part), getattr(self, part)):
                found.append(
                    f"{name}: only {'here' if before is None else 'there'}"
                    if None in (before, now)
                    else f"{name}: another content"
                )
        return found


def check_unchanged(sweep: Sweep, inputs: Inputs, began: Key) -> None:
    """Raise `ProjectChanged`, naming what changed, when trials would now have something else in common."""
    try:
        found = Key.of(sweep.arms, compose_base(sweep, inputs.root), inputs).describe(began)
    except (ConfigError, FileNotFoundError) as error:
        found = str(error)
    if found:
        raise ProjectChanged(
            f"changed while the sweep ran (there: when it began, here: now): {found}. "
            "Trials before and after it cannot be compared. Undo the change, and the same command goes on; "
            "with it, the command begins a study of its own"
        )


def studies(folder: Path, name: str, key: Key) -> list[Path]:
    """The other studies in `folder` of this name, the latest first."""
    known = re.compile(re.escape(name) + r"-[0-9a-f]{8}")
    others = [p for p in folder.glob("*") if known.fullmatch(p.name) and p.name != f"{name}-{key.short}"]
    return sorted(others, key=lambda p: p.stat().st_mtime, reverse=True)


def other_study(folder: Path, name: str, key: Key) -> str | None:
    """A warning that names the latest study in `folder` of this name with another key; None where there is none."""
    others = studies(folder, name, key)
    if not others:
        return None
    last = others[0]
    if not (last / FILE).is_file():
        what = f"it has no {FILE}"
    else:
        try:
            what = key.describe(Key.read(last / FILE))
        except FileError as error:  # that of the other study: this one can begin
            what = f"in what is not known, because its key cannot be read ({error})"
    return f"does not go on with {last}, a study of the same name, which differs: {what}"


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
