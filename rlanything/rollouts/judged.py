"""How often votes are right about what the policy does now: the stored votes against the environment's oracle.

The reward panel has trajectories of the untrained policy. While the policy learns it does other things, about which the
reward model may be right more or less often. Here the steps are those that the votes of the run judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.core.protocols import Teacher
from rlanything.core.types import Json, Judgement
from rlanything.loop.metrics import mean_or_none
from rlanything.repro.stored import StoredIteration
from rlanything.rewards.kind import name_of
from rlanything.rewards.step_votes.labels import majority
from rlanything.rollouts import runs, select
from rlanything.rollouts.environment import Knowledge, knowledge
from rlanything.rollouts.runs import NamedRun

ROWS = 8
"""Iterations that are shown, about."""
RATES = ("success", "good", "votes", "majority", "unanimous", "all_wrong")


@dataclass
class Tally:
    """The votes on the steps with one label. Steps that nobody was asked about are not among them."""

    steps: int = 0
    votes: int = 0
    """Votes with a verdict."""
    right: int = 0
    """Votes whose verdict is the label."""
    majority: int = 0
    """Steps whose majority is the label; where there is none, it is not (as on the reward panel)."""
    unanimous: int = 0
    """Steps whose votes all have the same verdict (as `unanimous` in metrics.jsonl)."""
    all_wrong: int = 0
    """Steps whose votes all have the wrong verdict."""

    def add(self, good: bool, judgement: Judgement) -> None:
        """Count the votes on a step."""
        label = 1 if good else -1
        said = [vote.verdict for vote in judgement.votes]
        if not said:
            return
        self.steps += 1
        self.votes += len(said) - said.count(None)
        self.right += said.count(label)
        self.majority += majority(judgement) == label
        self.unanimous += set(said) in ({1}, {-1})
        self.all_wrong += set(said) == {-label}

    @property
    def shares(self) -> dict[str, float]:
        """What counts the same for good and for bad steps. There must be a vote with a verdict."""
        return {
            "votes": self.right / self.votes,
            "majority": self.majority / self.steps,
            "all_wrong": self.all_wrong / self.steps,
        }


def rates(good: Tally, bad: Tally) -> dict[str, float | None]:
    """Shares of the steps that were judged; None where good steps, or bad ones, have no vote with a verdict.

    good: the share of good steps. votes, majority, all_wrong: means of the share on good and on bad steps, so that a
    constant answer has 0.5. unanimous: of all steps.
    """
    if not good.votes or not bad.votes:
        return dict.fromkeys(RATES[1:])
    steps = good.steps + bad.steps
    return {
        "good": good.steps / steps,
        "unanimous": (good.unanimous + bad.unanimous) / steps,
        **{name: (share + bad.shares[name]) / 2 for name, share in good.shares.items()},
    }


def judged(name: str, root: Path, *, every: int | None = None, environment: bool | None = None) -> Json:
    """The page: for some iterations, the means over the runs that `name` means, and the values of each run.

    Args:
        name: an arm, a run or its folder.
        root: the project. Its configuration says whether the run's environment is asked.
        every: every how many iterations are shown; None: about `ROWS` are. The last one always is.
        environment: True asks the run's environment in any case, False never.

    Raises:
        ConfigError: for runs of several arms, for one without votes or rollouts, and where the environment has no
            oracle or is not asked.
    """
    if every is not None and every < 1:
        raise ConfigError(f"--every {every}: must be at least 1")
    recorded, shared = voting(name, root)
    shown = _some(shared, every)
    each = {
        run.name: [_row(run, oracle, iteration) for iteration in shown]
        for run, oracle in [(run, oracle_of(run, root, environment)) for run in recorded]
    }
    rows = [
        {
            "iteration": iteration,
            **{key: mean_or_none(values[k][key] for values in each.values()) for key in RATES},
        }
        for k, iteration in enumerate(shown)
    ]
    return {"name": name, "rows": rows, "runs": each}


def text(page: Json, screen: Screen) -> str:
    """The page as a table."""
    names = ("iteration", "success", "good steps", "votes right", "majority right", "unanimous", "all wrong")
    rows = [[str(row["iteration"]), *(_percent(row[key]) for key in RATES)] for row in page["rows"]]
    top = [
        heading(f"votes of {page['name']} against the environment's oracle, percent"),
        plain(
            safe(f"means over {', '.join(page['runs'])}; right and wrong: balanced over good and bad steps")
        ),
    ]
    return lay_out(top, screen) + "".join(aligned(names, rows, set(range(len(names))), screen))


def voting(name: str, root: Path) -> tuple[list[NamedRun], list[int]]:
    """The runs that `name` means that have rollouts, and the iterations of which all of these have some.

    Raises `ConfigError` for runs of several arms, for one without votes, and where there is no such run or iteration.
    """
    found = runs.find_all(name, root)
    if len(arms := sorted({run.arm for run in found})) > 1:
        raise ConfigError(f"{name}: holds runs of several arms ({', '.join(arms)}); name one of them")
    for run in found:
        _require_votes(run)
    recorded = _recorded(found)
    shared = sorted(set.intersection(*(set(iterations) for _, iterations in recorded)))
    if not shared:
        raise ConfigError(f"{name}: its runs have rollouts of no iteration in common")
    return [run for run, _ in recorded], shared


def _require_votes(run: NamedRun) -> None:
    if name_of(run.terms) != "votes":
        raise ConfigError(f"{run.name}: its reward model writes tests; only votes on steps are compared")
    if not run.terms.arm.step_votes:
        raise ConfigError(f"{run.name}: nobody votes in the arm {run.arm!r}")


def _recorded(found: Sequence[NamedRun]) -> list[tuple[NamedRun, list[int]]]:
    """The runs with rollouts, and the iterations that have some. A seed in training may have none yet.

    Raises `ConfigError` where no run has rollouts.
    """
    recorded, refused = [], None
    for run in found:
        try:
            recorded.append((run, select.with_rollouts(run)))
        except ConfigError as error:
            refused = refused or error
    if not recorded and refused is not None:
        raise refused
    return recorded


def oracle_of(run: NamedRun, root: Path, asked: bool | None) -> Knowledge:
    """Who says which steps of a run were good. Raises `ConfigError` where nobody can."""
    found = knowledge(run, root, asked=asked)
    if found.family is None:
        raise ConfigError(f"{run.name}: {found.problem or 'the environment is not asked (--no-environment)'}")
    if not isinstance(found.family, Teacher):
        raise ConfigError(f"{run.name}: its environment has no oracle that says which steps are good")
    return found


def _row(run: NamedRun, oracle: Knowledge, iteration: int) -> dict[str, float | None]:
    """The rates of one iteration. Raises `ConfigError` where the oracle fails."""
    stored = StoredIteration(run.stored, iteration)
    tallies = {True: Tally(), False: Tally()}
    outcomes = []
    for record in stored.episodes:
        trajectory = record.episode.trajectory
        if trajectory.counts and not record.proposal:
            outcomes.append(trajectory.outcome == 1)
        labels = oracle.labels(stored.tasks.get(trajectory.task_id), trajectory)
        if oracle.problem:
            raise ConfigError(f"{run.name}, iteration {iteration}: {oracle.problem}")
        for good, judgement in zip(labels, record.episode.judgements, strict=False):
            tallies[good].add(good, judgement)
    return {"success": mean_or_none(outcomes), **rates(tallies[True], tallies[False])}


def _some(iterations: Sequence[int], every: int | None) -> list[int]:
    """The iterations that are shown, with the first and the last."""
    step = every or max(1, round((len(iterations) - 1) / (ROWS - 1)))
    return sorted({*iterations[::step], iterations[-1]})


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{100 * value:.1f}"
