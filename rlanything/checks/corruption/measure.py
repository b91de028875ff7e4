"""Asks one finished reward model about the panel and its damaged copies.

    .rla/checks/corruption/<key>.json    kind of damage -> task -> counts

`key` is a hash of everything that the file depends on, the reward model included: what is there is never made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rlanything.checks.corruption.damage import Damaged, damage
from rlanything.checks.corruption.declare import Corruption
from rlanything.checks.identity import identity, placed
from rlanything.checks.running import say
from rlanything.checks.shares import Share
from rlanything.config import Checkpoint, Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.records.provenance import problem
from rlanything.core.seeds import derive_seed
from rlanything.files.hashes import digest, tree_hash
from rlanything.files.project import PRIVATE
from rlanything.files.reader import read_object
from rlanything.files.records import read_panel, write_json
from rlanything.rewards.panel import parsed
from rlanything.rewards.step_votes.labels import Label, LabelledTrajectory
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.layout import Layout
from rlanything.runs.machine import versions
from rlanything.stages.evaluate import pair_of

FOLDER = Path(PRIVATE, "checks", "corruption")
CONFIGURED = ("seed", "engine", "model", "judge")
COMMAND = "rlanything check corruption"


class Counts(BaseModel):
    """[steps that count, steps asked about] of one task.

    noticed: damaged steps that are called bad. before: the same steps, undamaged, that are called bad.
    later: labelled steps after the damage that are judged rightly. undisturbed: the same steps without the damage.
    """

    noticed: Share = (0, 0)
    before: Share = (0, 0)
    later: Share = (0, 0)
    undisturbed: Share = (0, 0)


class Answers(BaseModel):
    """What a reward model said: kind of damage -> task -> counts."""

    kinds: dict[str, dict[str, Counts]]


@dataclass(frozen=True)
class Asked:
    """The reward model that an arm ended with, and where its answers are. arm: `base` for the first one."""

    arm: str
    seed: int
    reward: Checkpoint
    kinds: tuple[str, ...]
    key: str
    file: Path

    @property
    def done(self) -> bool:
        """Whether it was asked."""
        return self.file.is_file()

    def answers(self) -> Answers:
        """What it said. Raises `ConfigError`."""
        advice = f"remove it and start `{COMMAND}` again"
        found = read_object(self.file, advice)
        if wrong := problem(found, Answers):
            raise ConfigError(f"{self.file}: {wrong}; {advice}")
        answers = Answers.model_validate(found)
        if set(answers.kinds) != set(self.kinds):
            raise ConfigError(
                f"{self.file}: kinds: {', '.join(answers.kinds)}; expected {', '.join(self.kinds)}; {advice}"
            )
        return answers


def asked(config: Config, root: Path, declared: Corruption) -> list[Asked]:
    """Every reward model that is asked, the base's first. Raises `ConfigError` where a run or the panel is missing."""
    layout = Layout(root)
    layout.check_bootstrap()
    common = _common(config, layout, declared)
    return [
        _asked(config, layout, arm, seed, common)
        for arm in declared.asked(config)
        for seed in declared.used(config)
    ]


def _asked(config: Config, layout: Layout, arm: str, seed: int, common: Mapping[str, Any]) -> Asked:
    reward = pair_of(config, layout, arm, seed)[1]
    assert reward is not None  # an arm that trains a reward model is not judged by the oracle
    key = content_id({**common, "seed": seed, "model": identity(reward, layout.root)})
    return Asked(arm, seed, reward, tuple(common["kinds"]), key, layout.root / FOLDER / f"{key[:16]}.json")


def _common(config: Config, layout: Layout, declared: Corruption) -> dict[str, Any]:
    """What all answers depend on."""
    data = config.model_dump(mode="json", by_alias=True)
    code = [__name__, *targets({"engine": data["engine"]})]
    return {
        "kinds": declared.kinds,
        "config": {name: data[name] for name in CONFIGURED},
        "place": placed(config),
        "votes": config.evaluate.votes,
        "panel": digest(layout.reward_panel(declared.panel)),
        "prompts": tree_hash(layout.root / config.model.prompts),
        "code": code_hashes(code),
        "packages": versions(packages(code)),
    }


def measure(data: dict[str, Any], root: Path, declared: Mapping[str, Any], one: Asked) -> None:
    """Ask one reward model and write what it said.

    data, declared: the configuration and the declaration as plain values, because this is another process.
    Raises `ConfigError` when something changed meanwhile.
    """
    from rlanything.files.images import ImageStore
    from rlanything.rewards.step_votes.evaluation import ask, verdicts
    from rlanything.rewards.step_votes.judge import Judge
    from rlanything.runs import build

    build.one_thread()
    config, corruption = parse(data), Corruption.model_validate(declared)
    layout = Layout(root)
    lines = read_panel(layout.reward_panel(corruption.panel), "rlanything bootstrap")
    panel = parsed(lines, LabelledTrajectory.from_json)
    asking = config.asking(m=config.evaluate.votes)
    images = ImageStore(layout.panel_images)
    with build.measured(config, "reward", one.reward, root, images)[1] as model:
        judge = Judge(model, build.prompts(config, root), asking.judge)
        run_seed = derive_seed(config.seed, "corruption", one.seed)
        intact = verdicts(ask(judge, panel, run_seed))
        kinds = {}
        for kind in corruption.kinds:
            found = damage(kind, [item.trajectory for item in panel], config.seed)
            kept = [k for k, damaged in enumerate(found) if damaged is not None]
            copies = [LabelledTrajectory(d.trajectory, ()) for d in found if d is not None]
            said = verdicts(ask(judge, copies, run_seed))
            kinds[kind] = count(
                [panel[k] for k in kept], [d for d in found if d], [intact[k] for k in kept], said
            )
    if _asked(config, layout, one.arm, one.seed, _common(config, layout, corruption)) != one:
        raise ConfigError(f"{one.arm}, seed {one.seed}: models, panel or code changed while it was asked")
    say("corruption", f"{one.arm}, seed {one.seed}: asked")
    write_json(one.file, Answers(kinds=kinds).model_dump(mode="json"))


def count(
    panel: Sequence[LabelledTrajectory],
    damaged: Sequence[Damaged],
    intact: Sequence[Sequence[int]],
    said: Sequence[Sequence[int]],
) -> dict[str, Counts]:
    """Task -> counts. intact, said: the verdicts (1, -1, 0 for none) on each step, without and with the damage.

    A step counts only where the reward model was asked about it in both.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for item, copy, before, after in zip(panel, damaged, intact, said, strict=True):
        tally = found.setdefault(item.trajectory.task_id, {name: [0, 0] for name in Counts.model_fields})
        for k in range(min(len(before), len(after))):
            if k in copy.steps:
                _add(tally["noticed"], after[k] == -1)
                _add(tally["before"], before[k] == -1)
            elif k > max(copy.steps) and item.labels[k] is not None:
                _add(tally["later"], _right(after[k], item.labels[k]))
                _add(tally["undisturbed"], _right(before[k], item.labels[k]))
    return {task: Counts.model_validate(tally) for task, tally in found.items()}


def _right(verdict: int, label: Label) -> bool:
    return verdict == (1 if label else -1)


def _add(tally: list[int], hit: bool) -> None:
    tally[0] += hit
    tally[1] += 1
