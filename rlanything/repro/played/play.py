"""One iteration of a run, played again with recorded tokens, and what comes out otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from rlanything.config import Checkpoint, Config
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Question, Request, Step, Trajectory
from rlanything.files.images import FOLDER, ImageStore
from rlanything.loop.adapt import Adapter
from rlanything.loop.batch import LoopState
from rlanything.loop.group import Group
from rlanything.loop.iteration import Loop
from rlanything.loop.record import NotStored
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.repro.played import engine, unequal
from rlanything.repro.played.engine import RecordedEngine, Vocabulary
from rlanything.repro.played.models import Silent, still
from rlanything.repro.replay import Decided, Rules, first_problem
from rlanything.repro.stored import ASKED, StoredIteration, StoredRollouts, StoredRun
from rlanything.rewards.kind import kind_of
from rlanything.rewards.unit_tests.writer import Examined
from rlanything.runs import build
from rlanything.runs.layout import Layout, LoraCheckpoint, trained


@dataclass(frozen=True)
class Spoken:
    """A model without weights, and the engine that answers for it."""

    chat: Silent
    engine: RecordedEngine


class Player:
    """Plays the iterations of one run again, in this process.

    root: of the project, with the prompts and the models' tokenizers. images: a folder for the pictures that the
    environment shows. Raises `ConfigError` where the run's environment, prompts or tokenizers are not here.
    """

    def __init__(self, rules: Rules, run: StoredRun, root: Path, images: Path) -> None:
        config, self.rules, self.root = rules.config, rules, root
        self.arm = config.arm(rules.arm)
        self.family, self.prompts = build.family(config), build.prompts(config, root)
        self.images = ImageStore(images, run.folder / FOLDER, Layout(root).panel_images)
        self.policy = self._spoken("policy", config.model.policy)
        asked = not config.judge_for(self.arm).is_oracle
        self.judge = self._spoken("reward", self._reward()) if asked else None
        self.adapter = self._spoken("adapter", config.model.adapter) if self.arm.adapt else None

    def _spoken(self, role: str, checkpoint: Checkpoint) -> Spoken:
        answers = RecordedEngine()
        return Spoken(still(self.rules.config, role, checkpoint, self.root, answers, self.images), answers)

    def _reward(self) -> Checkpoint:
        """The checkpoint whose tokenizer the reward model has. LoRA changes none."""
        if self.arm.reward_from is None:
            return self.rules.config.model.reward
        found = trained(self.rules.config, self.root, self.arm.reward_from, self.rules.seed, "reward")
        return found.base if isinstance(found, LoraCheckpoint) else found

    def problem(self, stored: StoredIteration, state: LoopState, replayed: Decided) -> str:
        """What first comes out otherwise than it is stored; '' for nothing. replayed: the iteration from its records.

        Raises what the family raises where no episode can run, e.g. for want of a program.
        """
        groups = replayed.result.groups
        if self.judge is not None:
            replies = _replies(stored.iteration, groups)
            self.judge.engine.answer = engine.in_order(replies, self.judge.chat.vocabulary)
        if self.adapter is not None:
            self.adapter.engine.answer = engine.by_seed(_texts(stored, replayed))
        try:
            result = self._loop(_no_more_votes(self.rules.config, groups), stored).collect(state)
        except NotStored as error:
            return str(error)
        finally:
            # All pictures of a run can be more than a disk has room for.
            self.images.discard_added((), barrier=lambda: None)
        return _judgements(stored.iteration, groups, result.groups) or first_problem(
            self.rules.config, stored, Decided(result, (), {}, replayed.said)
        )

    def _loop(self, config: Config, stored: StoredIteration) -> Loop:
        family, prompts = self.family, self.prompts
        run_seed = derive_seed(config.seed, "run", self.rules.seed)
        worker = RolloutWorker(family, self.policy.chat, prompts, config.rollout, self.images)
        judge = self.judge.chat if self.judge else None
        return Loop(
            config,
            self.arm,
            run_seed,
            PlayedRollouts(stored, worker, self.policy),
            kind_of(config).reward_model(config, self.arm, run_seed, family, judge, prompts),
            Adapter(family, self.adapter.chat, prompts, config.adaptation, config.rollout.timeout_s)
            if self.adapter
            else None,
            config.proposer,
        )


def _no_more_votes(config: Config, groups: Sequence[Group]) -> Config:
    """The configuration, with one reply more to a question to the reward model than any has, if it asks for more.

    A run may say that it asks for as many as it likes, and each of them is asked for at once.
    """
    most = max((len(q.replies) for group in groups for _, q in _questions(group)), default=0)
    judge = config.judge.model_copy(update={"m": min(config.judge.m, most + 1)})
    return config.model_copy(update={"judge": judge})


class PlayedRollouts:
    """The episodes of one iteration, as a `RolloutSource`: played again, and compared with the stored ones."""

    def __init__(self, stored: StoredIteration, worker: RolloutWorker, policy: Spoken) -> None:
        self.stored = StoredRollouts(stored.episodes)
        self.worker = worker
        self.policy = policy

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """The stored episodes. Raises `NotStored` for the first one that goes otherwise when it is played again."""
        found = self.stored.roll_out(assignments, sampling)
        version = max(0, sampling.iteration - 1) if sampling.versioned else 0  # of `train.staleness` 1
        answers = _Answers(self.policy.chat.vocabulary, version, _by_seed(assignments, found, sampling))
        self.policy.engine.answer, self.policy.chat.version = answers, version
        longest = max((len(trajectory.steps) for trajectory in found), default=0)
        # One more than any of them has: an episode that goes on now would go on to the end, with nothing to say.
        limited = replace(sampling, max_steps=min(sampling.max_steps, longest + 1))
        for one, again in zip(found, self.worker.roll_out(assignments, limited), strict=True):
            if problem := unequal.trajectories(one, again) or answers.problems.get(_key(one), ""):
                raise NotStored(f"{_where(sampling.iteration, one)}: {problem}")
        return found


Place = tuple[int, str, int]
"""Of an episode in its iteration: its slot, its task and its number."""


@dataclass
class _Answers:
    """What answers for the policy: its recorded responses, by the seeds of the requests.

    problems: why the first response of an episode is none that a model gives.
    """

    vocabulary: Vocabulary | None
    version: int
    steps: Mapping[int, tuple[Place, int, Step]]
    problems: dict[Place, str] = field(default_factory=dict)

    def __call__(self, request: Request) -> Completion:
        if request.seed not in self.steps:
            return replace(engine.NOTHING, version=self.version)
        place, number, step = self.steps[request.seed]
        if self.vocabulary and (problem := self.vocabulary.problem(request, step.response_ids)):
            self.problems.setdefault(place, f"step {number}: {problem}")
        return engine.completion(request, step.response_ids, step.logprobs, self.version)


def _by_seed(
    assignments: Sequence[Assignment], found: Sequence[Trajectory], sampling: Sampling
) -> dict[int, tuple[Place, int, Step]]:
    """Seed of a request to the policy -> the episode's place, the number of the step, and the step."""
    tasks = [a.task for a in assignments for _ in range(a.rollouts)]
    return {
        sampling.seed(task, trajectory.rollout, number): (_key(trajectory), number, step)
        for task, trajectory in zip(tasks, found, strict=True)
        for number, step in enumerate(trajectory.steps)
    }


def _key(trajectory: Trajectory) -> Place:
    return trajectory.slot, trajectory.task_id, trajectory.rollout


def _where(iteration: int, trajectory: Trajectory) -> str:
    return f"iteration {iteration}, slot {trajectory.slot}, rollout {trajectory.rollout}"


def _replies(iteration: int, groups: Sequence[Group]) -> Iterator[engine.Reply]:
    """What the reward model sampled, in the order in which it was asked."""
    for group in groups:
        for where, question in _questions(group):
            for number, reply in enumerate(question.replies, 1):
                name = f"iteration {iteration}, slot {group.slot}, {where} {number}"
                yield name, reply.response_ids, reply.logprobs


def _questions(group: Group) -> Iterator[tuple[str, Question]]:
    """The questions to the reward model about a group, and what its replies are: votes on steps, or tests."""
    for episode in group.episodes:
        for step, judgement in enumerate(episode.judgements):
            yield f"rollout {episode.trajectory.rollout}, step {step}, vote", judgement
    if isinstance(group.findings, Examined):
        yield "test", group.findings


def _texts(stored: StoredIteration, replayed: Decided) -> dict[int, str]:
    """What the adapter and the critic said, by seed.

    Of several attempts at a rewrite a run stores the last. Those before it were refused, and count as saying nothing.
    """
    said = {event.seed: event.reply for event in stored.run.events(stored.iteration) if event.kind in ASKED}
    critiques = chain.from_iterable(record.criticism.critiques for record in replayed.said or ())
    return said | {critique.seed: critique.reply for critique in critiques}


def _judgements(iteration: int, stored: Sequence[Group], played: Sequence[Group]) -> str:
    """The first difference between what was stored of the reward model and what came out again."""
    for group, again in zip(stored, played, strict=True):
        for episode, other in zip(group.episodes, again.episodes, strict=True):
            if difference := unequal.judgements(episode.judgements, other.judgements):
                return f"{_where(iteration, episode.trajectory)}: {difference}"
    return ""
