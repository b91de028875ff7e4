"""Replay: the loop once more over what a run stored, without models and environment.

Under the run's own rules everything must come out as it is stored. Under changed rules it is a what-if: each iteration
is decided anew from the state that the run was in. Where the run would have gone on from there is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlanything.config import ArmConfig, Config
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json
from rlanything.loop.adapt import Wanted
from rlanything.loop.feedback import Feedback
from rlanything.loop.iteration import Harvest, Loop, LoopState
from rlanything.loop.record import (
    Episode,
    WrittenTests,
    episode_records,
    metrics_record,
    unit_test_records,
)
from rlanything.loop.stepvotes import StepVotes
from rlanything.loop.testfeedback import UnitTests
from rlanything.repro.stored import (
    StoredActs,
    StoredJudges,
    StoredRewrites,
    StoredRun,
    StoredTests,
    episodes,
    written_tests,
)


@dataclass(frozen=True)
class Rules:
    """Under what an iteration is decided: a configuration, and the arm and seed of the run."""

    config: Config
    arm: str
    seed: int

    def collect(self, run: StoredRun, stored: Stored, state: LoopState) -> Decided:
        """The iteration of `state`, from what is stored of it. Raises `NotStored`."""
        rewrites = StoredRewrites(run.events(state.iteration), self.config.adaptation)
        run_seed = derive_seed(self.config.seed, "run", self.seed)
        arm = self.config.arm(self.arm)
        loop = Loop(
            self.config,
            arm,
            run_seed,
            StoredActs(stored.episodes),
            self._feedback(stored, arm, run_seed),
            rewrites,
            self.config.model.adapter.path,
        )
        return Decided(loop.collect(state), tuple(rewrites.unanswered))

    def stored(self, run: StoredRun, iteration: int) -> Stored:
        """What the run stored of an iteration. Raises `ConfigError`."""
        tests = written_tests(run, iteration) if self.config.judge.writes == "tests" else []
        return Stored(tuple(episodes(run, iteration)), tuple(tests))

    def _feedback(self, stored: Stored, arm: ArmConfig, run_seed: int) -> Feedback:
        if self.config.judge.writes == "tests":
            return UnitTests(self.config, arm, run_seed, StoredTests(stored.tests))
        return StepVotes(self.config, arm, run_seed, StoredJudges(stored.episodes))


@dataclass(frozen=True)
class Stored:
    """What is stored of one iteration."""

    episodes: tuple[Episode, ...]
    tests: tuple[WrittenTests, ...]


@dataclass(frozen=True)
class Decided:
    """An iteration decided anew. `unanswered`: rewrites that these rules ask for and the run never did."""

    harvest: Harvest
    unanswered: tuple[Wanted, ...]


@dataclass(frozen=True)
class Replayed:
    """One iteration under the run's own rules, and under others where there are any."""

    iteration: int
    own: Decided
    other: Decided | None
    problem: str


def replay(run: StoredRun, own: Rules, other: Rules | None = None) -> Iterator[Replayed]:
    """Every iteration in order; it ends with the first one that is not as it is stored (`problem` says where)."""
    state = LoopState(0, run.buffers.at(0))
    for iteration in run.iterations:
        stored = own.stored(run, iteration)
        decided = own.collect(run, stored, state)
        problem = first_problem(run, iteration, decided)
        changed = other.collect(run, stored, state) if other is not None and not problem else None
        yield Replayed(iteration, decided, changed, problem)
        if problem:
            return
        state = decided.harvest.state


def first_problem(run: StoredRun, iteration: int, decided: Decided) -> str:
    """The first thing of an iteration that does not come out as it is stored, in words; '' when all does."""
    harvest, where = decided.harvest, f"iteration {iteration}"
    if decided.unanswered:
        slot, way, _, _ = decided.unanswered[0]
        return (
            f"{where}, slot {slot}: replayed, the task was to become {way.value}; the run did not ask for it"
        )
    lesson = _lesson_problem(where, run.records(iteration), list(episode_records(harvest)))
    tests = list(unit_test_records(harvest))
    if tests and not lesson:
        lesson = _test_problem(where, run.records(iteration, "tests"), tests)
    if lesson:
        return lesson
    stored, made = run.events(iteration), harvest.events
    for number, (a, b) in enumerate(zip(stored, made, strict=False)):
        if a != b:
            return f"{where}, event {number} (slot {a.slot}): {_unequal(a.to_json(), b.to_json())}"
    if len(stored) != len(made):
        return f"{where}: {len(stored)} events are stored, {len(made)} replayed"
    digest = run.buffers.at(iteration + 1).digest
    if harvest.state.buffer.digest != digest:
        return f"{where}: the buffer is {digest[:12]}, replayed {harvest.state.buffer.digest[:12]}"
    row, computed = run.metrics[iteration], metrics_record(harvest.metrics)
    found = _unequal({key: row.get(key) for key in computed}, computed)
    return f"{where}, metrics: {found}" if found else ""


def _lesson_problem(
    where: str, stored: Sequence[Mapping[str, Json]], made: Sequence[Mapping[str, Json]]
) -> str:
    if len(stored) != len(made):
        return f"{where}: {len(stored)} episodes are stored, {len(made)} replayed"
    for a, b in zip(stored, made, strict=True):
        at = f"{where}, slot {a['trajectory']['slot']}, rollout {a['trajectory']['rollout']}"
        for key in ("proposal", "trains"):
            if a[key] != b[key]:
                return f"{at}: {key} is {a[key]}, replayed {b[key]}"
        for model in ("policy", "reward"):
            found = _unequal_steps(a["lesson"][model], b["lesson"][model])
            if found:
                return f"{at}, {found} of the {model} model's lesson"
    return ""


def _test_problem(
    where: str, stored: Sequence[Mapping[str, Json]], made: Sequence[Mapping[str, Json]]
) -> str:
    if len(stored) != len(made):
        return f"{where}: tests of {len(stored)} tasks are stored, of {len(made)} replayed"
    for a, b in zip(stored, made, strict=True):
        found = _unequal({k: a[k] for k in ("task_id", "proposal", "trains", "lesson")}, b)
        if found:
            return f"{where}, slot {a['slot']}, tests: {found}"
    return ""


def _unequal_steps(stored: Json, made: Json) -> str:
    """The first step whose advantages differ."""
    if stored is None or made is None or len(stored) != len(made):
        return "" if stored == made else f"length: stored {_length(stored)}, replayed {_length(made)} steps"
    for step, (a, b) in enumerate(zip(stored, made, strict=True)):
        if a != b:
            return f"step {step}: stored {a}, replayed {b}"
    return ""


def _length(steps: Json) -> int:
    return 0 if steps is None else len(steps)


def _unequal(stored: Mapping[str, Json], made: Mapping[str, Json]) -> str:
    """The first key whose value differs, with both values; '' when none does."""
    for key, value in stored.items():
        if value != made[key]:
            return f"{key} is {value}, replayed {made[key]}"
    return ""
