"""One iteration of a run, played again with recorded tokens, and what comes out otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rlanything.config import Checkpoint
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Question, Request, Trajectory
from rlanything.files.images import FOLDER, ImageStore
from rlanything.loop.adapt import Adapter
from rlanything.loop.batch import LoopState
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.group import Group
from rlanything.loop.iteration import Loop
from rlanything.loop.record import NotStored
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.repro.played import engine, unequal
from rlanything.repro.played.engine import RecordedEngine
from rlanything.repro.played.models import still
from rlanything.repro.replay import Decided, Rules, first_problem
from rlanything.repro.stored import ASKED, StoredIteration, StoredRollouts, StoredRun
from rlanything.rewards.kind import kind_of
from rlanything.rewards.unit_tests.writer import Examined
from rlanything.runs import build
from rlanything.runs.layout import Layout, LoraCheckpoint, trained


@dataclass(frozen=True)
class Spoken:
    """A model without weights, and the engine that answers for it."""

    chat: ChatModel
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
        if self.judge is not None:
            self.judge.engine.answer = engine.in_order(_replies(replayed.result.groups))
        if self.adapter is not None:
            self.adapter.engine.answer = engine.by_seed(_texts(stored, replayed))
        try:
            result = self._loop(stored).collect(state)
        except NotStored as error:
            return str(error)
        return _judgements(stored.iteration, replayed.result.groups, result.groups) or first_problem(
            self.rules.config, stored, Decided(result, (), {}, replayed.said)
        )

    def _loop(self, stored: StoredIteration) -> Loop:
        config, family, prompts = self.rules.config, self.family, self.prompts
        run_seed = derive_seed(config.seed, "run", self.rules.seed)
        worker = RolloutWorker(family, self.policy.chat, prompts, config.rollout, self.images)
        judge = self.judge.chat if self.judge else None
        return Loop(
            config,
            self.arm,
            run_seed,
            PlayedRollouts(stored, worker, self.policy.engine),
            kind_of(config).reward_model(config, self.arm, run_seed, family, judge, prompts),
            Adapter(family, self.adapter.chat, prompts, config.adaptation) if self.adapter else None,
            config.proposer,
        )


class PlayedRollouts:
    """The episodes of one iteration, as a `RolloutSource`: played again, and compared with the stored ones."""

    def __init__(self, stored: StoredIteration, worker: RolloutWorker, answers: RecordedEngine) -> None:
        self.stored = StoredRollouts(stored.episodes)
        self.worker = worker
        self.engine = answers

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """The stored episodes. Raises `NotStored` for the first one that goes otherwise when it is played again."""
        found = self.stored.roll_out(assignments, sampling)
        tasks = [a.task for a in assignments for _ in range(a.rollouts)]
        steps = {
            sampling.seed(task, trajectory.rollout, number): step
            for task, trajectory in zip(tasks, found, strict=True)
            for number, step in enumerate(trajectory.steps)
        }
        version = next((t.version for t in found if t.version is not None), 0)

        def answer(request: Request) -> Completion:
            step = steps.get(request.seed)
            said = ((), ()) if step is None else (step.response_ids, step.logprobs)
            return engine.completion(request, *said, version)

        self.engine.answer, self.worker.policy.version = answer, version
        for one, again in zip(found, self.worker.roll_out(assignments, sampling), strict=True):
            if difference := unequal.trajectories(one, again):
                raise NotStored(
                    f"iteration {sampling.iteration}, slot {one.slot}, rollout {one.rollout}: {difference}"
                )
        return found


def _replies(groups: Sequence[Group]) -> Iterator[tuple[Sequence[int], Sequence[float]]]:
    """What the reward model sampled, in the order in which it was asked."""
    questions = chain.from_iterable(map(_questions, groups))
    return ((reply.response_ids, reply.logprobs) for question in questions for reply in question.replies)


def _questions(group: Group) -> Iterator[Question]:
    """The questions to the reward model about a group: of the steps of its episodes, or for tests."""
    for episode in group.episodes:
        yield from episode.judgements
    if isinstance(group.findings, Examined):
        yield group.findings


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
                rollout = episode.trajectory.rollout
                return f"iteration {iteration}, slot {group.slot}, rollout {rollout}: {difference}"
    return ""
