"""Everything that the page of one run, or of the runs of one arm, is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlanything.buffer.views import diff
from rlanything.compare.run.named import config_of, named, seed_of
from rlanything.compare.run.staged import alone
from rlanything.config import BASE, BASE_COOLED, Config
from rlanything.report.report_data import ReportData, gathered
from rlanything.report.results.evaluations import Panels, read_evaluation
from rlanything.rollouts.origin import divisions_of, fingerprint_of, origin_of
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import provenance
from rlanything.runs.layout import Layout


@dataclass(frozen=True)
class Single:
    """The runs of one arm, with what was measured of them.

    counts: seed -> what became of its tasks, as `buffer diff` counts it. record: what the runs were made from.
    """

    name: str
    runs: Sequence[NamedRun]
    data: ReportData
    counts: Mapping[int, Mapping[str, int]]
    record: Mapping[str, Any]

    @property
    def arm(self) -> str:
        """The name of the arm."""
        return self.runs[0].arm

    @property
    def seeds(self) -> list[int]:
        """The numbers of the seeds."""
        return [seed_of(run) for run in self.runs]

    @property
    def finished(self) -> bool:
        """Whether the runs are no longer in training."""
        return self.runs[0].finished

    @property
    def evaluated(self) -> bool:
        """Whether the final checkpoints were measured."""
        return self.arm in self.data.comparison.panels

    @property
    def iterations(self) -> int:
        """The iterations that were published, of the run that has fewest; the one that only measures is none."""
        runs = self.data.curves[self.arm].values()
        return min((len(run.get("accuracy", {})) for run in runs), default=0)


def single(name: str, root: Path) -> Single:
    """The runs that `name` means. Raises `UserError` for a name or a file that cannot be used."""
    found = named(name, root)
    config = config_of(found)
    with alone(found) as place:
        data = _gathered(config, place, found[0].arm)
    counts = {seed_of(run): _counts(run) for run in found}
    shown = found[0].name if len(found) == 1 else found[0].arm
    return Single(shown, found, data, counts, _record(found[0]))


def _gathered(config: Config, place: Path, arm: str) -> ReportData:
    data = gathered(config, place, measured(place, arm))
    contents = replace(data.contents, signals=())  # a figure of several arms
    curves = data.curves or {arm: {}}
    return replace(data, contents=contents, curves=curves)


def measured(place: Path, arm: str) -> Panels:
    """What the evaluations of an arm, the base and the cooled base hold; those that are not there are left out."""
    found = {name: Layout(place).evaluation(name) for name in (BASE, BASE_COOLED, arm)}
    return {name: read_evaluation(path, name) for name, path in found.items() if path.is_file()}


def _counts(run: NamedRun) -> Mapping[str, int]:
    counts: Mapping[str, int] = diff(str(run.stored.folder.resolve()), details=False, root=run.root)["counts"]
    return counts


def _record(run: NamedRun) -> Mapping[str, Any]:
    """The record of a finished run; of one in training, what it keeps of it."""
    if run.finished:
        return provenance.read(run.root, run.arm)
    divided = {"divisions": found} if (found := divisions_of(run)) else {}
    unknown: dict[str, Any] = {"seeds": {}, "panels": None, "starts": []}
    return {**asdict(origin_of(run)), "fingerprint": fingerprint_of(run), **divided, **unknown}
