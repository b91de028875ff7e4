"""The settings in which sides differ.

A page is passed on, and settings of other versions and other people's classes may hold anything. So a text is shown
only where it is a choice or a name of the experiment. Of others it is said that they differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.compare.side import Side
from rlanything.planning.disclosed import SECRET
from rlanything.report.configuration import HIDDEN, SECTIONS
from rlanything.report.formatting import NONE

TEXTS = ("seed", "scale", *SECTIONS, "arm", "arms")
"""Sections with keys of our own. Their texts are shown, except paths and addresses."""
WORDS = ("env", "engine", "executor")
"""Of these, texts of one word are shown, e.g. `fast`: classes have options of their own."""
UNSHOWN = "(not shown)"
_PLACE = re.compile(r"[/~\\$]|\w:\\|.*(://|@)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]{1,30}")
_CLASS = re.compile(r"[\w.]{1,200}")
_LONGEST = 120


@dataclass(frozen=True)
class Setting:
    """A key whose values differ, with the value of each side as text."""

    key: str
    values: tuple[str, ...]


def differing(sides: Sequence[Side]) -> list[Setting]:
    """The keys that differ, in the order of the configuration, those of arms last."""
    every = _named(sides)
    known = [found for found in every if found]  # a side whose settings are not known differs in none
    keys = list(dict.fromkeys(key for found in known for key in found))
    return [
        Setting(key, tuple(_shown(key, found) for found in every))
        for key in keys
        if len({json.dumps(found.get(key, NONE), sort_keys=True) for found in known}) > 1
    ]


def _named(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The settings of each side. Where single arms are compared, those of each side's arm are `arm.<switch>`.

    Otherwise arms that only one side declares are left out: they are named as such elsewhere.
    """
    if all(len(side.arms) == 1 for side in sides):
        own = [side.switches.get(next(iter(side.arms)), {}) for side in sides]
        return [{**side.settings, **_under("arm", of)} for side, of in zip(sides, own, strict=True)]
    declared = Counter(arm for side in sides for arm in side.switches)
    return [{**side.settings, **_shared(side, declared)} for side in sides]


def _shared(side: Side, declared: Mapping[str, int]) -> dict[str, Any]:
    """The switches of the arms that another side declares, too."""
    found: dict[str, Any] = {}
    for arm, of in side.switches.items():
        if declared[arm] > 1:
            found |= _under(f"arms.{arm}", of)
    return found


def _under(prefix: str, switches: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in switches.items()}


def _shown(key: str, found: Mapping[str, Any]) -> str:
    if key not in found:
        return NONE
    value = found[key]
    if not _is_public(key, value):
        return UNSHOWN
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _is_public(key: str, value: Any) -> bool:
    """Whether a value may be shown on a page that is passed on."""
    if isinstance(value, Mapping):
        return all(_is_public(f"{key}.{name}", item) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_public(key, item) for item in value)
    if any(SECRET.search(part) for part in key.split(".")):
        return value is None
    return not isinstance(value, str) or _is_public_text(key, value)


def _is_public_text(key: str, text: str) -> bool:
    section = key.partition(".")[0]
    if key.endswith("._target_"):
        return bool(_CLASS.fullmatch(text))
    if section in WORDS:
        return bool(_WORD.fullmatch(text))
    return section in TEXTS and not key.startswith(HIDDEN) and not _PLACE.match(text)
