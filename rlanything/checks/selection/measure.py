"""The programs and tests of one pair (policy, reward model) on a panel, run on each other in the project's sandbox.

    .rla/checks/selection/<key>.jsonl.gz    a problem a line, as `methods.Trials`

`key` is a hash of everything that the file depends on, models included. So what is there is never made again, whichever
command asks for it, and other code or other models begin another file. Which methods then choose is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.checks.identity import identity, placed
from rlanything.checks.selection.declare import Selection
from rlanything.checks.selection.methods import Trials
from rlanything.config import BASE, Checkpoint, Config, parse
from rlanything.core.coding_signals import gt_programs
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.protocols import TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task, Trajectory
from rlanything.core.unittests import ComparesOutputs
from rlanything.files.hashes import digest, tree_hash
from rlanything.files.project import PRIVATE
from rlanything.files.records import read_lines, write_lines
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.machine import versions
from rlanything.stages.evaluate import pair_of

if TYPE_CHECKING:
    from rlanything.rewards.unit_tests.writer import UnitTestWriter

FOLDER = Path(PRIVATE, "checks", "selection")
SAMPLED = ("panel", "programs", "tests", "temperature")
"""Keys of the declaration that decide what is sampled."""
CONFIGURED = ("seed", "env", "engine", "model", "rollout", "judge")


@dataclass(frozen=True)
class Pair:
    """A policy and the reward model that its arm ended with. arm: `base` for the two that every arm begins with."""

    arm: str
    seed: int
    policy: Checkpoint
    reward: Checkpoint
    key: str
    file: Path

    @property
    def done(self) -> bool:
        """Whether it is measured."""
        return self.file.is_file()

    def trials(self) -> dict[str, Trials]:
        """Task id -> what was measured. Raises `ConfigError`."""
        command = "rlanything check selection"
        try:
            return {line["task"]: Trials.from_json(line["trials"]) for line in read_lines(self.file, command)}
        except (KeyError, TypeError) as error:
            raise ConfigError(f"{self.file}: {error!r}; remove it and start `{command}` again") from None


def pairs(config: Config, root: Path, selection: Selection) -> list[Pair]:
    """Every pair that is measured, the base's first. Raises `ConfigError` where a run or the panel is missing."""
    from rlanything.runs import build

    layout = Layout(root)
    comparing(build.family(config))
    layout.check_bootstrap()
    read_tasks(layout.tasks(selection.panel))
    common = _common(config, root, selection)
    arms = (BASE, *selection.trained(config))
    return [_pair(config, layout, arm, seed, common) for arm in arms for seed in selection.used(config)]


def _pair(config: Config, layout: Layout, arm: str, seed: int, common: Mapping[str, Any]) -> Pair:
    policy, reward = pair_of(config, layout, arm, seed)
    assert reward is not None  # `Selection.trained` leaves out what the oracle judged
    models = [identity(checkpoint, layout.root) for checkpoint in (policy, reward)]
    key = content_id({**common, "seed": seed, "models": models})
    return Pair(arm, seed, policy, reward, key, layout.root / FOLDER / f"{key[:16]}.jsonl.gz")


def _common(config: Config, root: Path, selection: Selection) -> dict[str, Any]:
    """What all pairs depend on."""
    data = config.model_dump(mode="json", by_alias=True)
    code = [__name__, *targets({"env": data["env"], "engine": data["engine"]})]
    return {
        "selection": {name: getattr(selection, name) for name in SAMPLED},
        "config": {name: data[name] for name in CONFIGURED},
        "place": placed(config),
        "max_steps": config.evaluate.max_steps,
        "tasks": digest(Layout(root).tasks(selection.panel)),
        "prompts": tree_hash(root / config.model.prompts),
        "code": code_hashes(code),
        "packages": versions(packages(code)),
    }


def measure(data: dict[str, Any], root: Path, declared: Mapping[str, Any], pair: Pair) -> None:
    """Sample, run and write one pair.

    data, declared: the configuration and the selection as plain values, because this is another process.
    Raises `ConfigError` when a model changed meanwhile.
    """
    from rlanything.engines.placement import Role
    from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
    from rlanything.rewards.requirements import examiner
    from rlanything.rewards.unit_tests.writer import UnitTestWriter
    from rlanything.runs import build

    build.one_thread()
    config, selection = parse(data), Selection.model_validate(declared)
    tasks = read_tasks(Layout(root).tasks(selection.panel))
    family, prompts = build.family(config), build.prompts(config, root)
    run_seed = derive_seed(config.seed, "selection", pair.seed)
    sampling = Sampling(run_seed, "selection", 0, selection.temperature, config.evaluate.max_steps)
    work = [Assignment(slot, task, selection.programs) for slot, task in enumerate(tasks)]
    with build.chat_model(config, *build.load(config, pair.policy, root, Role.FROZEN, "policy")) as policy:
        played = RolloutWorker(family, policy, prompts, config.rollout).roll_out(work, sampling)
    judge = config.judge.model_copy(update={"m": selection.tests})
    with build.chat_model(config, *build.load(config, pair.reward, root, Role.FROZEN, "reward")) as reward:
        writer = UnitTestWriter(reward, prompts, judge, examiner(family))
        lines = [
            {"task": task.task_id, "trials": trials.to_json()}
            for task, trials in _examined(family, writer, tasks, played, run_seed)
        ]
    if _pair(config, Layout(root), pair.arm, pair.seed, _common(config, root, selection)) != pair:
        raise ConfigError(
            f"{pair.arm}, seed {pair.seed}: models, tasks or code changed while it was measured"
        )
    write_lines(pair.file, lines)


def _examined(
    family: TaskFamily,
    writer: UnitTestWriter,
    tasks: Sequence[Task],
    played: Sequence[Trajectory],
    run_seed: int,
) -> Iterator[tuple[Task, Trials]]:
    """What the programs of each task did on its own tests and on the written ones."""
    from rlanything.loop.episodes import opening
    from rlanything.rewards.unit_tests.writer import Attempts

    comparer = comparing(family)
    work = [
        Attempts(task, opening(family, task, 0).text, programs_of(played, slot))
        for slot, task in enumerate(tasks)
    ]
    for attempts, found in zip(work, writer.examine(work, run_seed, 0, phase="selection-write"), strict=True):
        tables = found.tables
        same = comparer.outputs(attempts.task.copy(), attempts.answers, tables.tests)
        right = tuple(gt_programs(tables.dataset))
        yield (
            attempts.task,
            Trials(tables.generated, tuple(tables.readable), same.inputs, same.written, right),
        )


def comparing(family: object) -> ComparesOutputs:
    """The family as one that compares outputs. Raises `ConfigError` if it does not."""
    if not isinstance(family, ComparesOutputs):
        raise ConfigError(
            f"env: {type(family).__name__} does not say which programs write the same (outputs); a selection needs it"
        )
    return family


def programs_of(played: Sequence[Trajectory], slot: int) -> tuple[str, ...]:
    """The answers of a task. Where the context was full it is empty, a failure of the policy; a crash is left out."""
    return tuple(t.steps[-1].action if t.steps else "" for t in played if t.slot == slot and t.counts)
