"""Replay: runs the loop again on the stored rollouts of a run, without models and environment.

Under the run's own rules the results must be equal to the stored ones. Under changed rules the replay shows what they
would have decided in each iteration, starting from the state that the run had. How the run would have continued under
changed rules cannot be known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlanything.buffer import Event
from rlanything.config import Config
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json, Lesson
from rlanything.loop.adapt import Wanted
from rlanything.loop.batch import LoopState
from rlanything.loop.critic import CriticRecord
from rlanything.loop.iteration import IterationResult, Loop
from rlanything.loop.metrics import mean
from rlanything.loop.record import EpisodeRecord, NotStored, episode_records, metrics_record
from rlanything.repro.possible import impossible
from rlanything.repro.rows import BESIDE, NOT_REPLAYED
from rlanything.repro.stored import StoredIteration, StoredProposals, StoredRollouts, StoredRun
from rlanything.rewards.kind import kind_of


@dataclass(frozen=True)
class Rules:
    """The rules of a replay: a configuration, and the arm and seed of the run."""

    config: Config
    arm: str
    seed: int

    def collect(self, stored: StoredIteration, state: LoopState) -> Decided:
        """Replay the iteration of `state` from its records. Raises `NotStored` for a missing rollout."""
        run_seed = derive_seed(self.config.seed, "run", self.seed)
        arm, adaptation = self.config.arm(self.arm), self.config.adaptation
        said = stored.critics() if arm.adapt and adaptation.critic == "model" else None
        proposals = StoredProposals(stored.run.events(state.iteration), adaptation, said or ())
        kind = kind_of(self.config)
        loop = Loop(
            self.config,
            arm,
            run_seed,
            StoredRollouts(stored.episodes),
            kind.stored_model(self.config, arm, run_seed, stored),
            proposals,
            self.config.proposer,
        )
        result = loop.collect(state)
        taught = {
            (group.slot, group.task.task_id, place): lesson
            for group in result.groups
            for place, lesson in kind.taught(group).items()
        }
        return Decided(result, tuple(proposals.unanswered), taught, said)


@dataclass(frozen=True)
class Decided:
    """A replayed iteration.

    unanswered: rewrites that these rules ask for, but the run did not.
    taught: the lesson of each question to the reward model, by slot, task id and the question's place in the group.
    said: the stored records of the critic; None where the critic is not a model.
    """

    result: IterationResult
    unanswered: tuple[Wanted, ...]
    taught: Mapping[tuple[int, str, tuple[int, ...]], Lesson]
    said: Sequence[CriticRecord] | None


@dataclass(frozen=True)
class Replayed:
    """One iteration under the run's own rules, and under other rules if there are any.

    own: None where a rollout or a reply that these rules need is not stored.
    problem: the first difference from the stored run; '' for none."""

    iteration: int
    own: Decided | None
    other: Decided | None
    problem: str


Played = Callable[[StoredIteration, LoopState, Decided], str]
"""Plays an iteration again (`repro.played`), and says what first comes out otherwise than it is stored; '' for nothing.

It gets the iteration's records, its state, and what a replay has made of them.
"""


def replay(
    run: StoredRun, own: Rules, other: Rules | None = None, played: Played | None = None
) -> Iterator[Replayed]:
    """Replay every iteration in order, up to the first one that differs from the stored run (`problem` says where).

    played: what else is asked about an iteration that comes out as it is stored.
    """
    state = LoopState(0, run.buffers.at(0))
    for iteration in run.iterations:
        stored = StoredIteration(run, iteration)
        try:
            decided = own.collect(stored, state)
        except NotStored as error:
            yield Replayed(iteration, None, None, str(error))
            return
        problem = first_problem(own.config, stored, decided)
        if played is not None and not problem:
            problem = played(stored, state, decided)
        changed = other.collect(stored, state) if other is not None and not problem else None
        yield Replayed(iteration, decided, changed, problem)
        if problem:
            return
        state = decided.result.state


def first_problem(config: Config, stored: StoredIteration, decided: Decided) -> str:
    """A message about the first difference of an iteration from the stored one; '' when nothing differs."""
    run, iteration, result = stored.run, stored.iteration, decided.result
    where = f"iteration {iteration}"
    if decided.unanswered:
        slot, way, _, _ = decided.unanswered[0]
        return (
            f"{where}, slot {slot}: replayed, the task was to become {way.value}; the run did not ask for it"
        )
    return (
        _episode_problem(where, run.records(iteration, "rollouts"), list(episode_records(result.groups)))
        or _token_problem(where, stored.episodes)
        or _record_problem(config, where, stored, result)
        or _critic_problem(where, decided.said, result.critics)
        or _event_problem(where, run.events(iteration), result.events)
        or _state_problem(where, stored, result)
    )


def _token_problem(where: str, episodes: Sequence[EpisodeRecord]) -> str:
    """The first token that cannot have been sampled."""
    for record in episodes:
        if found := impossible(record.episode):
            trajectory = record.episode.trajectory
            return f"{where}, slot {trajectory.slot}, rollout {trajectory.rollout}, {found}"
    return ""


def _record_problem(config: Config, where: str, stored: StoredIteration, result: IterationResult) -> str:
    """The first difference in the records that the kind of reward model stores besides the episodes."""
    for name, made in kind_of(config).records(result.groups).items():
        lines = stored.run.records(stored.iteration, name)
        if len(lines) != len(made):
            return f"{where}: {name} of {len(lines)} tasks are stored, of {len(made)} replayed"
        for a, b in zip(lines, made, strict=True):
            found = _unequal(a, b)
            if found:
                return f"{where}, slot {a['slot']}, {name}: {found}"
    return ""


def _critic_problem(where: str, stored: Sequence[CriticRecord] | None, made: Sequence[CriticRecord]) -> str:
    """The first difference in the records of the critic, where a model is the critic."""
    if stored is None:
        return ""
    if len(stored) != len(made):
        return f"{where}: the critics of {len(stored)} tasks are stored, of {len(made)} replayed"
    for a, b in zip(stored, made, strict=True):
        found = _unequal(a.to_json(), b.to_json())
        if found:
            return f"{where}, slot {a.slot}, critic: {found}"
    return ""


def _event_problem(where: str, stored: Sequence[Event], made: Sequence[Event]) -> str:
    for number, (a, b) in enumerate(zip(stored, made, strict=False)):
        if a != b:
            return f"{where}, event {number} (slot {a.slot}): {_unequal(a.to_json(), b.to_json())}"
    if len(stored) != len(made):
        return f"{where}: {len(stored)} events are stored, {len(made)} replayed"
    return ""


def _state_problem(where: str, stored: StoredIteration, result: IterationResult) -> str:
    """The first difference in the buffer after the iteration, or in the metrics."""
    run, iteration = stored.run, stored.iteration
    digest = run.buffers.at(iteration + 1).digest
    if result.state.buffer.digest != digest:
        return f"{where}: the buffer is {digest[:12]}, replayed {result.state.buffer.digest[:12]}"
    row, computed = run.metrics[iteration], metrics_record(result.metrics)
    if row.get("mean_vote") in _mean_vote_of_all(result):
        computed["mean_vote"] = row["mean_vote"]
    # A metric that no row has was added in a later version. It is not compared.
    stored_keys = {key for other in run.metrics for key in other}
    if missing := [key for key in computed if key not in row and key in stored_keys]:
        return f"{where}, metrics: {missing[0]} is not stored, replayed {computed[missing[0]]}"
    others = (key for key in row if key not in computed and key not in BESIDE)
    if odd := next((key for key in others if not key.startswith(NOT_REPLAYED)), ""):
        return f"{where}, metrics: {odd} is stored, and no iteration computes it"
    found = _unequal({key: row[key] for key in computed if key in row}, computed)
    return f"{where}, metrics: {found}" if found else ""


def _mean_vote_of_all(result: IterationResult) -> list[Json]:
    """The metric `mean_vote` as earlier versions computed it, with the votes on proposals; [] where nobody votes."""
    episodes = (episode for group in result.groups for episode in group.episodes)
    votes = [v.verdict for e in episodes for j in e.judgements for v in j.votes if v.verdict is not None]
    return [mean([float(verdict) for verdict in votes])] if votes else []


def _episode_problem(
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
        if key not in made:
            return f"{key} is stored, but not replayed"
        if value != made[key]:
            return f"{key} is {value}, replayed {made[key]}"
    return ""
