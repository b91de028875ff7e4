"""One side of a comparison: the results of its arms, its settings, and what cannot be known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlanything.compare.run.named import seed_of
from rlanything.compare.run.single import Single
from rlanything.config import Config
from rlanything.report.results.curves import Run
from rlanything.report.results.statistics import Estimate, Panel
from rlanything.report.results.votes import RunVotes
from rlanything.runs.provenance import flat


@dataclass(frozen=True)
class Arm:
    """One arm of a side.

    panels: what was measured, by metric. recorded: what a report says instead, where nothing finer is there. curves,
    votes, folders: by seed. within: success by steps. record: what its runs were made from.
    """

    name: str
    panels: Mapping[str, Panel] = field(default_factory=dict)
    recorded: Mapping[str, Estimate] = field(default_factory=dict)
    curves: Mapping[int, Run] = field(default_factory=dict)
    votes: Mapping[int, RunVotes] = field(default_factory=dict)
    within: Mapping[str, list[list[float]]] = field(default_factory=dict)
    folders: Mapping[int, Path] = field(default_factory=dict)
    record: Mapping[str, Any] | None = None

    @property
    def seeds(self) -> list[int]:
        """The seeds of which something was measured or recorded."""
        found = {seed for panel in self.panels.values() for seed in panel.seeds}
        return sorted(found | set(self.curves))


@dataclass(frozen=True)
class Side:
    """What a name means. kind: in words. config: None where this version cannot read it.

    settings: key -> value, without those of arms. switches: of each declared arm key -> value. place: the folder of a
    whole experiment, whose rollouts can be read."""

    letter: str
    name: str
    kind: str
    arms: Mapping[str, Arm]
    settings: Mapping[str, Any]
    switches: Mapping[str, Mapping[str, Any]]
    config: Config | None
    notes: Sequence[str] = ()
    revision: str = ""
    place: Path | None = None

    @property
    def label(self) -> str:
        """How it stands in figures and tables."""
        return f"{self.letter} {self.name}"

    @property
    def environment(self) -> str:
        """The class of its environment."""
        return str(self.settings.get("env._target_", ""))


def of_runs(letter: str, found: Single, name: str = "") -> Side:
    """The side of some runs of one arm. name: that of the user, where the runs are of another project."""
    data, arm = found.data, found.arm
    one = Arm(
        arm,
        panels=data.comparison.panels.get(arm, {}),
        curves=data.curves[arm],
        votes=data.votes.get(arm, {}),
        within=data.extras.within.get(arm, {}),
        folders={seed_of(run): run.stored.folder for run in found.runs},
        record=found.record,
    )
    seeds = ", ".join(map(str, found.seeds))
    kind = f"arm {arm}, seed {seeds}" if found.finished else f"arm {arm}, seed {seeds}, in training"
    return Side(letter, name or found.name, kind, {arm: one}, *settings_of(data.config), data.config)


def settings_of(config: Config | Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Every setting by its dotted name, and those of each arm, whose names may have dots in them.

    config: as it was read where this version cannot check it; arms that are no mapping are left out."""
    raw = config.model_dump(mode="json", by_alias=True) if isinstance(config, Config) else config
    arms = raw.get("arms")
    declared = arms if isinstance(arms, Mapping) else {}
    switches = {str(arm): flat(of) for arm, of in declared.items() if isinstance(of, Mapping)}
    return flat({key: value for key, value in raw.items() if key != "arms"}), switches
