"""Stage `label`: the reward panel of the final measurement, where the bootstrap's is not the one that is asked for.

`evaluate.reward_policy` names another policy whose trajectories are judged (the paper's Table 4), `evaluate.judges`
models whose votes label the steps (Table 3). The labels say nothing about an arm, so they are made once for all arms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlanything.config import ORACLE, Config
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import REWARD_PANEL
from rlanything.core.types import Json
from rlanything.engines.placement import Role
from rlanything.files import atomic, locks
from rlanything.files.records import read_lines, write_lines
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.kind import kind_of
from rlanything.rewards.panel import try_tasks
from rlanything.rewards.protocols import PanelEvaluation, PanelLines
from rlanything.runs import build
from rlanything.runs.layout import Layout, read_tasks


def make_labels(config: Config, root: Path) -> None:
    """Write labels/<labeller>.jsonl.gz, all of them with one rename. Raises `ConfigError`."""
    if not config.evaluate.own_panel:
        raise ConfigError(
            "evaluate.labels = 'oracle' and evaluate.reward_policy = null: nothing to label; the final models are "
            "measured on the panel that `rlanything bootstrap` made"
        )
    build.one_thread()
    layout = Layout(root)
    place = layout.labelled(ORACLE).parent
    with locks.stage(root, "label", place.parent, apart=(*locks.MAKERS, "train*", "evaluate*")):
        layout.check_bootstrap()
        panel = _panel(config, root)
        with atomic.whole(place) as folder:
            for name in config.evaluate.labellers:
                write_lines(folder / f"{name}.jsonl.gz", _labelled(config, root, name, panel))
                print(f"label: {name}: {len(panel)} lines")


def final_panels(config: Config, layout: Layout) -> dict[str, PanelLines]:
    """Who labelled the reward panel of the final measurement -> its lines. Raises `ConfigError`."""
    if not config.evaluate.own_panel:
        return {ORACLE: list(read_lines(layout.reward_panel, "rlanything bootstrap"))}
    labellers = config.evaluate.labellers
    return {name: list(read_lines(layout.labelled(name), "rlanything label")) for name in labellers}


def _panel(config: Config, root: Path) -> PanelLines:
    """What is labelled: the bootstrap's panel, or the trajectories of `evaluate.reward_policy`."""
    layout, source = Layout(root), config.evaluate.reward_policy
    if source is None:
        return list(read_lines(layout.reward_panel, "rlanything bootstrap"))
    family, prompts = build.family(config), build.prompts(config, root)
    policy = build.chat_model(config, *build.load(config, source, root, Role.FROZEN))
    tasks = read_tasks(layout.tasks(REWARD_PANEL))
    tried = try_tasks(config, tasks, RolloutWorker(family, policy, prompts, config.rollout))
    return kind_of(config).evaluation(config, family, policy, prompts).panel(tasks, tried)


def _labelled(config: Config, root: Path, name: str, panel: PanelLines) -> Sequence[Mapping[str, Json]]:
    """The panel with the labels of one labeller; the environment gave the panel its own labels already."""
    if name == ORACLE:
        return panel
    return _judge(config, root, name).relabel(panel, derive_seed(config.seed, "label", name))


def _judge(config: Config, root: Path, name: str) -> PanelEvaluation:
    """A judge of `evaluate.judges`, with its own prompts, temperature and number of votes."""
    source = config.evaluate.judges[name]
    prompts = build.prompts(config, root, source.prompts)
    given = {"m": source.votes, "temperature": source.temperature, "max_tokens": source.max_tokens}
    own = {key: value for key, value in given.items() if value is not None}
    asking = config.model_copy(update={"judge": config.judge.model_copy(update=own)})
    judge = build.chat_model(config, *build.load(config, source, root, Role.FROZEN))
    return kind_of(config).evaluation(asking, build.family(config), judge, prompts)
