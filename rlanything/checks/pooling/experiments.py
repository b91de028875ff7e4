"""The experiments that are pooled: folders with a configuration and the evaluations of arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean

from rlanything.checks.declaration import PLACE
from rlanything.checks.pooling.declare import Compared, Pooling
from rlanything.config import BASE, Config
from rlanything.config.reading import load
from rlanything.core.errors import ConfigError, unknown
from rlanything.files import atomic
from rlanything.files.project import DECLARED, PARAMS
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import Panels, read_evaluation
from rlanything.report.results.statistics import Contrast
from rlanything.runs.layout import Layout

PROCESS = "rm_process"
"""The metric of `first_reward`, balanced over good and bad steps."""
AGAIN = "take it from git, or make it again in its folder"


@dataclass(frozen=True)
class Difference:
    """The difference of two arms in one experiment; p is not corrected. first_reward: see `Experiment`."""

    experiment: str
    first_reward: float | None
    seeds: int
    tasks: int
    contrast: Contrast
    error: float
    """Standard error."""


@dataclass(frozen=True)
class Experiment:
    """One experiment. panels: of the arms that are compared, as far as it has them.

    first_reward: the share of steps on which its first reward model is right, balanced, mean over its reward panels;
    None where that is not known.
    """

    name: str
    config: Config
    panels: Panels
    first_reward: float | None

    def counts(self, compared: Compared) -> bool:
        """Whether it is one of those whose differences are pooled."""
        least = compared.reward_above
        return least is None or (self.first_reward is not None and self.first_reward > least)

    def measures(self, compared: Compared, metric: str) -> bool:
        """Whether both arms were measured in a metric. The error of their difference may still be unknown."""
        return all(metric in self.panels.get(name, {}) for name in compared.arms)

    def difference(self, compared: Compared, metric: str) -> Difference | None:
        """What it found; None where it lacks an arm or the metric, and where its error is not known."""
        arm, over = (self.panels.get(name, {}).get(metric) for name in compared.arms)
        if arm is None or over is None:
            return None
        cells, contrast = statistics.differences(arm, over), statistics.contrast(arm, over)
        found = None if cells is None else statistics.spread(cells)
        if cells is None or contrast is None or found is None or found.variance == 0.0:
            return None
        seeds, tasks = cells.shape
        return Difference(self.name, self.first_reward, seeds, tasks, contrast, sqrt(found.variance))


def folders(declared: Pooling, root: Path, params: Path) -> list[Path]:
    """The folders whose experiments are pooled. Raises `ConfigError` for one that holds none or cannot be read."""
    if declared.folders is None:
        for place, aside in atomic.set_aside(root / PLACE).items():
            if not (aside / "evaluation").is_dir():
                continue
            raise ConfigError(
                f"{place}: it is missing, because a check was killed while it published its results. Those from before "
                f"are in {aside}: run that check again, or rename the folder"
            )
        there = sorted(path.parent for path in (root / PLACE).glob(f"*/{PARAMS}"))
        # What is being published, or was when it was killed, has a name that no check has.
        there = [path for path in there if DECLARED.fullmatch(path.name)]
        env = _environment(load(params))
        # A check that evaluated no arm is no experiment, whatever its configuration is.
        evaluated = [path for path in there if (path / "evaluation").is_dir()]
        return [path for path in evaluated if _environment(load(path / PARAMS)) == env]
    for name in declared.folders:
        for part in (PARAMS, "evaluation"):
            if not (root / name / part).exists():
                raise ConfigError(
                    f"folders: {name} has no {part}; a published check has it, and so has a project"
                )
    return [root / name for name in declared.folders]


def read_all(declared: Pooling, root: Path, params: Path) -> list[Experiment]:
    """The experiments that have both arms of a comparison.

    Raises `ConfigError` where they cannot be pooled, and `ReportError` for a damaged evaluation.
    """
    searched = folders(declared, root, params)
    arms = sorted({arm for compared in declared.comparisons for arm in compared.arms})
    read = [_read(path, root, arms) for path in searched]
    _check_environments(read)
    found = [one for one in read if any(set(c.arms) <= set(one.panels) for c in declared.comparisons)]
    _check_independent(found)
    _check_measured(declared, found, searched)
    return found


def _read(folder: Path, root: Path, arms: Sequence[str]) -> Experiment:
    files = {arm: Layout(folder).evaluation(arm) for arm in arms}
    panels = {arm: read_evaluation(file, arm, AGAIN) for arm, file in files.items() if file.is_file()}
    name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else str(folder)
    return Experiment(name, load(folder / PARAMS), panels, _first_reward(folder))


def _first_reward(folder: Path) -> float | None:
    file = Layout(folder).evaluation(BASE)
    panels = read_evaluation(file, BASE, AGAIN) if file.is_file() else {}
    # With several reward panels the name of one follows the metric's.
    found = [statistics.estimate(panel) for name, panel in panels.items() if name.split("/")[0] == PROCESS]
    means = [one.mean for one in found if one is not None]
    return fmean(means) if means else None


def _environment(config: Config) -> object:
    return config.env["_target_"]


def _check_environments(found: Sequence[Experiment]) -> None:
    """Success in several environments has no common mean."""
    for one in found[1:]:
        if _environment(one.config) != _environment(found[0].config):
            raise ConfigError(
                f"folders: {found[0].name} is of {_environment(found[0].config)} and {one.name} of "
                f"{_environment(one.config)}; pool each environment on its own"
            )


def _check_independent(found: Sequence[Experiment]) -> None:
    """Experiments of one seed share tasks and models, so their errors are not independent."""
    for number, one in enumerate(found):
        for other in found[:number]:
            if one.config.seed == other.config.seed:
                raise ConfigError(
                    f"folders: {other.name} and {one.name} both have seed = {one.config.seed}, so the same tasks and "
                    "models; name the folders that count, without one of them"
                )


def _check_measured(declared: Pooling, found: Sequence[Experiment], searched: Sequence[Path]) -> None:
    """Every comparison needs two experiments in every metric."""
    for compared, metric in declared.pairs:
        count = sum(one.counts(compared) and one.difference(compared, metric) is not None for one in found)
        if count > 1:
            continue
        for arm in compared.arms:
            there = {path.stem for folder in searched for path in (folder / "evaluation").glob("*.json")}
            if not there:
                raise ConfigError(
                    "folders: there is no experiment of this environment yet; `rlanything check ladder` and "
                    "`rlanything check study` publish some"
                )
            if arm not in there:
                raise ConfigError(f"comparisons: {arm!r}: {unknown(arm, there)}")
        metrics = {name for one in found for panels in one.panels.values() for name in panels}
        if metric not in metrics:
            raise ConfigError(f"metrics: {metric!r}: {unknown(metric, metrics)}")
        bound = (
            ""
            if compared.reward_above is None
            else f" and a first reward model above {compared.reward_above:g}"
        )
        raise ConfigError(
            f"comparisons: {compared.arm} over {compared.over} in {metric} was measured by {count} of "
            f"{len(searched)} experiments with several seeds or tasks{bound}; at least two are pooled"
        )
