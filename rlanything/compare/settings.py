"""The settings in which sides differ.

Texts of sections whose options may hold private paths, addresses or keys are not shown, only that they differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.compare.side import Side
from rlanything.report.configuration import HIDDEN
from rlanything.report.formatting import NONE

PRIVATE = ("env.", "engine.")
"""Of these, numbers and single words are shown."""
SECRET = ("endpoints.", *HIDDEN)
"""Of these, numbers are."""
UNSHOWN = "(a text)"
_WORD = re.compile(r"[A-Za-z_]{1,30}")
_LONGEST = 120


@dataclass(frozen=True)
class Setting:
    """A key whose values differ, with the value of each side as text."""

    key: str
    values: tuple[str, ...]


def differing(sides: Sequence[Side]) -> list[Setting]:
    """The keys that differ, in the order of the configuration. Arms that are compared are called `arm`."""
    every = [_renamed(side, sides) for side in sides]
    known = [found for found in every if found]  # a side whose settings are not known differs in none
    keys = list(dict.fromkeys(key for found in known for key in found))
    return [
        Setting(key, tuple(_shown(key, found) for found in every))
        for key in keys
        if len({json.dumps(found.get(key, NONE), sort_keys=True) for found in known}) > 1
    ]


def _renamed(side: Side, sides: Sequence[Side]) -> dict[str, Any]:
    """The settings; where single arms are compared, the switches of each side's arm are `arm.<switch>`.

    Otherwise arms that only one side declares are left out: they are named as such elsewhere.
    """
    if any(len(other.arms) > 1 for other in sides):
        declared = Counter(arm for other in sides for arm in {_arm_of(key) for key in other.settings})
        return {
            key: of for key, of in side.settings.items() if not _arm_of(key) or declared[_arm_of(key)] > 1
        }
    own = f"arms.{next(iter(side.arms))}."
    found = {}
    for key, value in side.settings.items():
        if key.startswith(own):
            found[f"arm.{key.removeprefix(own)}"] = value
        elif not key.startswith("arms."):
            found[key] = value
    return found


def _arm_of(key: str) -> str:
    """The arm whose switch a key is; '' for other keys. An arm's name may have dots in it."""
    return key.removeprefix("arms.").rpartition(".")[0] if key.startswith("arms.") else ""


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
    if isinstance(value, list):
        return all(_is_public(key, item) for item in value)
    if key.startswith(SECRET):
        return not isinstance(value, (str, dict))
    if key.startswith(PRIVATE) and not key.endswith("._target_"):
        return not isinstance(value, dict) and (not isinstance(value, str) or bool(_WORD.fullmatch(value)))
    return True
