"""Where an export comes from, and the page README.md that says so.

The page is a dataset card where the Hugging Face hub shows the folder. Its Markdown and its front matter are our own
words. What others may have named, such as a run, is in one block of JSON, where no line can end the block.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rlanything.core.types import Json
from rlanything.exports.reading import Reader
from rlanything.exports.texts import clean
from rlanything.rollouts.origin import fingerprint_of
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import provenance
from rlanything.view.export import facts

_TITLE = "# Rollouts of an RLAnything run"
_TEXT = (
    "Written by `rlanything rollouts export`. The texts are of models and environments and were not checked. "
    "What the columns and scores are: docs/exports.md of RLAnything."
)


def about(run: NamedRun) -> dict[str, Json]:
    """The run, how its replies became rewards, its fingerprint, and the git commit of its last start, where known."""
    return {**facts(run), "fingerprint": fingerprint_of(run), "revision": _revision(run)}


def _revision(run: NamedRun) -> str | None:
    """The commit of the last start. It is not known of a run in training, nor where the run was not started."""
    if not run.finished:
        return None
    starts = provenance.read(run.root, run.arm)["starts"]
    commit: str | None = (starts[-1]["git"] or {}).get("commit") if starts else None
    return commit


def card(kind: str, reader: Reader, counts: Mapping[str, int], front: Sequence[str]) -> str:
    """README.md. front: lines of YAML between the marks, of our own words."""
    selection = reader.selection
    asked = {
        "iterations": list(selection.iterations) or None,
        "slots": list(selection.slots) or None,
        "rollouts": list(selection.rollouts) or None,
        "filters": list(selection.filters) or None,
        "min_reward": selection.min_reward,
    }
    chosen = {name: value for name, value in asked.items() if value is not None}  # 0 is a bound as well
    facts_of = {"format": kind, **about(reader.run), "selection": chosen}
    return _page({**facts_of, "counts": {**reader.counts, **counts}, "notes": list(reader.notes)}, front)


def card_of_all(kind: str, names: Sequence[str], counts: Mapping[str, int], front: Sequence[str]) -> str:
    """README.md above the folders of several seeds, each of which has a card. front: that of one of these cards."""
    files = "data_files: "
    lines = [line.replace(files, f"{files}seed-*/") for line in front]
    return _page({"format": kind, "runs": list(names), "counts": dict(counts)}, lines)


def _page(told: Json, front: Sequence[str]) -> str:
    lines = [*(["---", *front, "---", ""] if front else []), _TITLE, "", _TEXT, "", "```json"]
    return "\n".join([*lines, json.dumps(clean(told), indent=1), "```", ""])
