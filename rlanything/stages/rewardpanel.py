"""The reward panel, made once by the base policy, and what the first reward model does on it.

For votes: trajectories with the oracle's label of every step. For unit tests: programs with their verdicts, and the
problem's known solution among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from rlanything.config import Config
from rlanything.core.coding_signals import CodingCounts
from rlanything.core.signals import mean_vote
from rlanything.core.theory import precision
from rlanything.core.types import Json, Task, TaskFamily, Teacher, Trajectory
from rlanything.core.unittests import Examiner
from rlanything.loop.judge import Judge
from rlanything.loop.panel import LabelledTrajectory, measure_reward, process_accuracy
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import Assignment, Roller, Sampling
from rlanything.loop.speaker import Speaker
from rlanything.loop.testpanel import PanelProblem, measure_tests
from rlanything.loop.testwriter import UnitTestWriter
from rlanything.stages import build


@dataclass(frozen=True, slots=True)
class RewardPanel:
    """lines: the panel, as it is written. found: what the first reward model does on it, for bootstrap.json.

    objection: why that reward model must not be trained with, or ''.
    """

    lines: list[dict[str, Json]]
    found: dict[str, float]
    objection: str


def make(
    config: Config, tasks: Sequence[Task], roller: Roller, reward: Speaker, prompts: Prompts
) -> RewardPanel:
    """The panel of the kind that `judge.writes` names. Raises `ConfigError` for a family that does not offer it."""
    sampling = Sampling(config.seed, "reward-panel", 0, config.rollout.temperature, config.rollout.max_steps)
    work = [Assignment(k, task, config.evaluate.reward_rollouts) for k, task in enumerate(tasks)]
    tried = [t for t in roller.run(work, sampling) if t.counts and t.steps]
    solved = {"panel_success": sum(t.outcome == 1 for t in tried) / max(1, len(tried))}
    if config.judge.writes == "votes":
        labelled = label(build.teacher(roller.family), tasks, tried)
        return _of_votes(config, labelled, Judge(reward, prompts, config.judge), solved)
    writer = UnitTestWriter(reward, prompts, config.judge, build.examiner(roller.family))
    return _of_tests(config, examine(writer.family, roller.family, tasks, tried), writer, solved)


def label(
    teacher: Teacher, tasks: Sequence[Task], trajectories: Sequence[Trajectory]
) -> list[LabelledTrajectory]:
    """The trajectories, every step labelled by the family's oracle."""
    by_id = {task.task_id: task for task in tasks}
    return [
        LabelledTrajectory(t, tuple(teacher.label_steps(by_id[t.task_id], [s.action for s in t.steps])))
        for t in trajectories
    ]


def examine(
    examiner: Examiner, family: TaskFamily, tasks: Sequence[Task], trajectories: Sequence[Trajectory]
) -> list[PanelProblem]:
    """The tasks with the programs that were written for them, the known solution last, and what each does."""
    openings = [family.environment().reset(task, 0).text for task in tasks]
    written = [
        [t.steps[-1].action for t in trajectories if t.slot == slot] + _solution(family, task)
        for slot, task in enumerate(tasks)
    ]
    found = examiner.examine([(task, answers, ()) for task, answers in zip(tasks, written, strict=True)])
    return [
        PanelProblem(task, opening, tuple(answers), tables.dataset)
        for task, opening, answers, tables in zip(tasks, openings, written, found, strict=True)
    ]


def _solution(family: TaskFamily, task: Task) -> list[str]:
    """The answer that is known to be right, where there is one."""
    if not build.examiner(family).proven(task):
        return []
    return [build.teacher(family).demonstrate(task, 0, 0.0)[-1][1]]


def _of_votes(
    config: Config, panel: Sequence[LabelledTrajectory], judge: Judge, solved: dict[str, float]
) -> RewardPanel:
    found, least = solved | _vote_rates(config, panel, judge), config.bootstrap.min_mu
    objection = (
        f"the first reward model has mu = {found['mu']:.3f}, below bootstrap.min_mu = {least}: its votes would mislead "
        "the policy. Raise bootstrap.reward.episodes or bootstrap.reward.steps, or lower bootstrap.reward.noise."
    )
    return RewardPanel([p.to_json() for p in panel], found, objection if found["mu"] < least else "")


def _vote_rates(config: Config, panel: Sequence[LabelledTrajectory], judge: Judge) -> dict[str, float]:
    """Precision of the votes (p+, p-, mu), agreement with the labels, and what the panel is made of."""
    judged = judge.run([item.trajectory for item in panel], config.seed, 0, phase="bootstrap-mu")
    votes = [
        (item.trajectory.outcome, v.verdict)
        for item, judgements in zip(panel, judged, strict=True)
        for j in judgements
        for v in j.votes
        if v.verdict is not None
    ]
    precise = precision(votes)
    return {
        "p_plus": precise.p_plus,
        "p_minus": precise.p_minus,
        "mu": precise.mu,
        "rm_process": process_accuracy(measure_reward(judge, panel, config.seed)),
        "good_steps": mean_vote([1 if ok else -1 for i in panel for ok in i.labels]) / 2 + 0.5,
    }


def _of_tests(
    config: Config, panel: Sequence[PanelProblem], writer: UnitTestWriter, solved: dict[str, float]
) -> RewardPanel:
    rates = sum(measure_tests(writer, panel, config.seed).values(), CodingCounts()).rates
    found = solved | {"ut": rates["ut"], "detect": rates["detect"]}
    return RewardPanel(
        [p.to_json() for p in panel], found, _why_no_writer(rates["ut"], config.bootstrap.min_ut)
    )


def _why_no_writer(right: float, least: float) -> str:
    """Why a reward model with this share of right tests must not be trained with, or ''."""
    if isnan(right):
        return (
            "no problem of the reward panel has a right program, so that no test can be shown to be right. Raise "
            "tasks.reward_panel or evaluate.reward_rollouts, or start from a better policy."
        )
    if right >= least:
        return ""
    return (
        f"of the first reward model's tests a share of {right:.3f} is right, below bootstrap.min_ut = {least}: it has "
        "too little to learn from. Raise bootstrap.reward.episodes or bootstrap.reward.steps, lower "
        "bootstrap.reward.noise, or raise judge.max_tokens where tests are cut off."
    )
