"""Stage `label`: makes the reward panels of the final measurement, if they are not those of the bootstrap.

`evaluate.reward_policy` names another policy whose trajectories are judged (the paper's Table 4). `evaluate.judges`
names models whose votes label the steps (Table 3). The labels do not depend on an arm, so they are made once for all
arms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from rlanything.config import ORACLE, Config
from rlanything.config.endpoints import judge_role
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.engines import sources
from rlanything.files import atomic, locks
from rlanything.files.images import ImageStore
from rlanything.files.images import clear as clear_images
from rlanything.files.records import read_panel, write_lines
from rlanything.rewards.kind import kind_of
from rlanything.rewards.panel import try_tasks
from rlanything.rewards.protocols import PanelEvaluation, PanelLines
from rlanything.runs import build, launch
from rlanything.runs.executors.opened import opened
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import BEFORE_TRAINING, EVALUATE, LABEL, TRAIN
from rlanything.stages.crashes import without_crashed
from rlanything.stages.dependencies import labelling


def make_labels(config: Config, root: Path) -> None:
    """Write all labels/<panel>/<labeller>.jsonl.gz with one rename.

    Under torchrun every process asks a part, and the first one writes. Raises `ConfigError`, and `MachineError` where
    another process has ended.
    """
    build.one_thread()
    with (
        launch.measuring(config),
        launch.in_first(lambda: _writing(config, root)) as folder,
        opened(config),
    ):
        _label(config, root, folder)


@contextmanager
def _writing(config: Config, root: Path) -> Iterator[Path]:
    """The folder to write into, which becomes labels/ when the block ends well."""
    layout = Layout(root)
    with locks.stage(root, LABEL, layout.labels, apart=(*BEFORE_TRAINING, f"{TRAIN}*", f"{EVALUATE}*")):
        layout.check_bootstrap()
        with atomic.whole(layout.labels) as folder, sources.unchanged(root, *labelling(config)):
            yield folder


def _label(config: Config, root: Path, folder: Path) -> None:
    """Ask every labeller. The process that writes files writes them into `folder`."""
    layout = Layout(root)
    images = ImageStore(folder / layout.label_images.name, layout.panel_images)
    panels = _panels(config, root, images)
    for labeller in config.evaluate.labellers:
        for name, lines in _labelled(config, root, labeller, panels, images).items():
            if launch.first_process():
                write_lines(folder / name / f"{labeller}.jsonl.gz", lines)
                print(f"label: {name}: {labeller}: {len(lines)} lines")


def final_panels(config: Config, layout: Layout) -> dict[str, dict[str, PanelLines]]:
    """The reward panels of the final measurement: panel -> labeller -> lines.

    Raises `ConfigError`, also for labels of other episodes than those of the panel.
    """
    names, labellers = config.tasks.reward_panels, config.evaluate.labellers
    if not config.evaluate.own_panel:
        return {name: {ORACLE: lines} for name, lines in _bootstrapped(config, layout).items()}
    found: dict[str, dict[str, PanelLines]] = {
        name: {who: read_panel(layout.labelled(name, who), "rlanything label") for who in labellers}
        for name in names
    }
    for name, panels in found.items():
        for who, lines in panels.items():
            if _outdated(config, layout, name, lines):
                raise ConfigError(
                    f"{layout.labelled(name, who)}: labels of other tasks or base models than there are now; "
                    "`rlanything label` makes them again"
                )
    return found


def _outdated(config: Config, layout: Layout, name: str, lines: PanelLines) -> bool:
    """Whether labels are of other episodes than those of the panel now, or of other tasks where another policy acted.

    What is not here to compare with is not compared: labels can be fetched alone.
    """
    panel, tasks = layout.reward_panel(name), layout.tasks(name)
    if config.evaluate.reward_policy is None and panel.is_file():
        shown = [line.get("trajectory") for line in read_panel(panel, "rlanything bootstrap")]
        return shown != [line.get("trajectory") for line in lines]
    if config.evaluate.reward_policy is None or not tasks.is_file():
        return False
    known = {task.task_id for task in read_tasks(tasks)}
    return not {_task(line) for line in lines} <= known


def _task(line: Mapping[str, Any]) -> str:
    """The id of the task that a line of a panel is about: of a trajectory, or of a problem with its programs."""
    return str(line["trajectory"]["task_id"] if "trajectory" in line else line["task"]["task_id"])


def _bootstrapped(config: Config, layout: Layout) -> dict[str, PanelLines]:
    return {
        name: read_panel(layout.reward_panel(name), "rlanything bootstrap")
        for name in config.tasks.reward_panels
    }


def _panels(config: Config, root: Path, images: ImageStore) -> dict[str, PanelLines]:
    """The panels to label: those of the bootstrap, or trajectories of `evaluate.reward_policy` on the same tasks.

    images: where the pictures of such trajectories are kept, if a model is shown any.
    """
    layout, source = Layout(root), config.evaluate.reward_policy
    if source is None:
        return _bootstrapped(config, layout)
    acting, family = config.rolling_out(source), build.family(config)
    prompts = build.prompts(config, root, source.prompts)
    found: dict[str, PanelLines] = {}
    named: set[str] = set()
    with build.player(acting, source, root, family, prompts, images) as worker:
        evaluation = kind_of(config).evaluation(config, family, worker.policy, prompts)
        for name in config.tasks.reward_panels:
            tasks = read_tasks(layout.tasks(name))
            tried = without_crashed(f"label: {name}", try_tasks(acting, tasks, worker)).episodes
            named.update(chain.from_iterable(trajectory.images for trajectory in tried))
            found[name] = evaluation.panel(tasks, tried)
    if launch.first_process():
        clear_images(images.folder, named)
    return found


def _labelled(
    config: Config, root: Path, labeller: str, panels: Mapping[str, PanelLines], images: ImageStore
) -> Mapping[str, PanelLines]:
    """The panels with the labels of one labeller. The labels of the oracle are in them already."""
    if labeller == ORACLE:
        return panels
    seed = derive_seed(config.seed, "label", labeller)
    with _judge(config, root, labeller, images) as judge:
        return {name: judge.relabel(panel, seed) for name, panel in panels.items()}


@contextmanager
def _judge(config: Config, root: Path, name: str, images: ImageStore) -> Iterator[PanelEvaluation]:
    """A judge of `evaluate.judges`, with its own prompts, number of votes, temperature and max_tokens.

    images: the pictures of the panels.
    """
    source = config.evaluate.judges[name]
    prompts = build.prompts(config, root, source.prompts).for_labels
    asking = config.asking(m=source.votes, **source.sampling)
    with build.judge(config, source, root, judge_role(name), images) as judge:
        yield kind_of(config).evaluation(asking, build.family(config), judge, prompts)
