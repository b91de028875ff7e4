"""The formats that a run can be exported to, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.exports import inspect_log, tables, trl, verifiers
from rlanything.exports.reading import Reader

Write = Callable[[Path, Reader, Sequence[int]], tuple[dict[str, int], list[str]]]
"""Writes files into an empty folder. Returns counts, and the front matter of its card (`about.card`)."""


@dataclass(frozen=True)
class Format:
    """Its writer. votes: it needs a reward model that votes on steps."""

    write: Write
    votes: bool = False


FORMATS: Mapping[str, Format] = {
    "inspect": Format(inspect_log.write),
    "datasets": Format(tables.write),
    "trl-sft": Format(trl.writer(trl.sft)),
    "trl-preference": Format(trl.writer(trl.preference)),
    "trl-vote-preference": Format(trl.writer(trl.vote_preference), votes=True),
    "trl-unpaired": Format(trl.writer(trl.unpaired)),
    "trl-stepwise": Format(trl.writer(trl.stepwise), votes=True),
    "verifiers": Format(verifiers.write),
}
"""A new format is a module with its writer, and an entry here."""
