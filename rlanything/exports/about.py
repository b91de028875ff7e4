"""Where an export comes from, and the page README.md that says so.

The page is a dataset card where the Hugging Face hub shows the folder. Its Markdown and its front matter are our own
words. What others may have named, such as a run, is in one block of JSON, where no line can end the block.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.exports.reading import Reader
from rlanything.exports.texts import clean
from rlanything.files.reader import read_object
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import origins, provenance
from rlanything.runs.fingerprint import Origin
from rlanything.view.export import facts

_TITLE = "# Rollouts of an RLAnything run"
_TEXT = (
    "Written by `rlanything rollouts export`. The texts are of models and environments and were not checked. "
    "What the columns and scores are: docs/exports.md of RLAnything."
)


def about(run: NamedRun) -> dict[str, Json]:
    """The run, how its replies became rewards, its fingerprint, and the git commit of its last start, where known."""
    arm = run.stored.folder.parent.name
    if run.finished:
        record = provenance.read(run.root, arm)
        starts = record["starts"]
        commit = (starts[-1]["git"] or {}).get("commit") if starts else None
        return {**facts(run), "fingerprint": record["fingerprint"], "revision": commit}
    path = run.stored.folder.parent / origins.FILE
    return {**facts(run), "fingerprint": _fingerprint(read_object(path)), "revision": None}


def _fingerprint(origin: Mapping[str, Any]) -> str | None:
    """The fingerprint of a run in training; None for an origin that lacks a part."""
    try:
        return Origin(origin["config"], origin["code"], origin["inputs"], {}).fingerprint
    except (LookupError, TypeError, ValueError, ConfigError):
        return None


def card(kind: str, reader: Reader, counts: Mapping[str, int], front: Sequence[str] = ()) -> str:
    """README.md. front: lines of YAML between the marks, of our own words."""
    selection = reader.selection
    asked = {
        "iterations": list(selection.iterations),
        "slots": list(selection.slots),
        "rollouts": list(selection.rollouts),
        "filters": list(selection.filters),
        "min_reward": selection.min_reward,
    }
    facts_of = {"format": kind, **about(reader.run), "selection": {k: v for k, v in asked.items() if v}}
    told = {**facts_of, "counts": {**reader.counts, **counts}, "notes": list(reader.notes)}
    lines = [*(["---", *front, "---", ""] if front else []), _TITLE, "", _TEXT, "", "```json"]
    return "\n".join([*lines, json.dumps(clean(told), indent=1), "```", ""])
