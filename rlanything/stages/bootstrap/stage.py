"""Stage `bootstrap`: the base models. Embedded models are trained (`warmstart`). For real checkpoints, source.json
records which they are, and what they are made of.

Then the stage makes the reward panels, and checks that an embedded reward model is good enough to train with.

bootstrap.json is removed before the first file of models/ changes, and written after the last. If it exists, models/ is
complete and consistent. Models are trained in .rla/bootstrap/<key>/, so that finished ones survive a kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.splits import keyed
from rlanything.engines import sources
from rlanything.engines.placement import Role
from rlanything.files import atomic, locks
from rlanything.files.atomic import clear_leftovers
from rlanything.files.hashes import file_hashes, files_in
from rlanything.files.images import ImageStore
from rlanything.files.images import clear as clear_images
from rlanything.files.records import write_json, write_lines
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.panel import play_panel, success_rate, successes
from rlanything.loop.record import metrics_record
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.kind import kind_of
from rlanything.rewards.panel import solved, try_tasks
from rlanything.runs import build, launch
from rlanything.runs.executors.opened import opened
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.machine import versions
from rlanything.stages import ALL, BOOTSTRAP
from rlanything.stages.crashes import without_crashed
from rlanything.stages.measured import base_models, forget, measured

WORK = Path(".rla/bootstrap")
"""The folder for models in training, with a subfolder for each key."""


def make_models(config: Config, root: Path) -> None:
    """Write models/: three checkpoints (when embedded), the reward panels and bootstrap.json.

    Under torchrun every process tries and judges a part of the panels, and the first one writes. Embedded models are
    trained by one process alone. Raises `ConfigError`, and `MachineError` where another process has ended.
    """
    build.one_thread()
    if config.model.embedded is not None:
        launch.alone("rlanything bootstrap", "embedded models are trained by one process")
    # If this machine cannot run the environment, this raises before minutes of work.
    made = build.family(config).environment()
    with suppress(Exception):  # what was not reset may have nothing to close
        made.close()
    with launch.measuring(config), launch.in_first(lambda: _writing(config, root)) as earlier:
        _finish(config, root, Layout(root), earlier)


@contextmanager
def _writing(config: Config, root: Path) -> Iterator[str]:
    """Put the base models in their places. The block makes what the stage adds; then unfinished work is removed.

    The block gets the hash of the models that evaluations were made with; '' where that is not known or not needed.
    """
    layout = Layout(root)
    with locks.stage(root, BOOTSTRAP, layout.bootstrap.parent, apart=ALL):
        atomic.clear_removed(root / WORK)
        work = _trained(config, root) if config.model.embedded is not None else None
        earlier = base_models(layout) if layout.bootstrap.is_file() and measured(layout) else ""
        layout.bootstrap.unlink(missing_ok=True)
        atomic.make(layout.bootstrap.parent)
        atomic.sync(layout.bootstrap.parent)
        panels = [layout.reward_panel(name) for name in config.tasks.reward_panels]
        for path in (*panels, layout.bootstrap):
            clear_leftovers(path)
        _remove_others(layout, panels)
        _install(config, root, work)
        yield earlier
        if work is not None:
            atomic.remove(work.parent)


def _trained(config: Config, root: Path) -> Path:
    """Train the three embedded models and return their folder. Models that an earlier start finished are kept."""
    from rlanything.stages.bootstrap import warmstart

    for name, source in _sources(config):
        if Path(source.path) != Path("models", name):  # another role's model would be in its place
            raise ConfigError(
                f"model.{name}.path = {source.path}: an embedded model is written to models/{name}, which the stages "
                "after this one depend on"
            )
    work = root / WORK / _key(config, root)
    warmstart.train(config, root, work)
    return work


def _key(config: Config, root: Path) -> str:
    """A hash of everything that the embedded models depend on (16 hex digits)."""
    relevant = config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "train", "endpoints"})
    code = [__name__, *targets(relevant)]
    files = [path for folder in ("data", config.model.prompts) for path in files_in(root / folder)]
    parts = {
        "config": relevant,
        "code": code_hashes(code),
        "packages": versions(packages(code)),
        "inputs": file_hashes(root, files),
    }
    return content_id(parts)[:16]


def _install(config: Config, root: Path, work: Path | None) -> None:
    """Copy the trained models to their places. For real checkpoints, write source.json instead.

    It holds what the configuration says of the checkpoint, and what it is made of: `files` (path -> sha256) of a
    folder, `commit` of a name on the hub. So a stage that depends on models/<name> depends on the checkpoint. For a
    model behind an endpoint it holds the endpoint's name for it.
    Raises `ConfigError` for a name whose commit is neither in the hub's cache nor can be fetched.
    """
    for name, source in _sources(config):
        served = config.endpoints.served.get(name)
        if work is None and served is not None:
            write_json(
                root / "models" / name / "source.json", {"endpoint": served.root, "model": served.model}
            )
            continue
        if work is None:
            build.fetch_commit(source, root)
            found = sources.contents(source, root)
            made_of = {"files": found} if sources.is_local(source, root) else found
            write_json(root / "models" / name / "source.json", {**source.model_dump(), **made_of})
            continue
        with atomic.whole(root / source.path) as folder:
            atomic.copy_tree(work / name, folder)


def _sources(config: Config) -> list[tuple[str, Checkpoint]]:
    model = config.model
    return [("policy", model.policy), ("reward", model.reward), ("adapter", model.adapter)]


def _finish(config: Config, root: Path, layout: Layout, earlier: str) -> None:
    """Make the reward panels, measure the base models and write bootstrap.json. earlier: what `_writing` gives.

    Raises `ConfigError` when an embedded reward model is too bad to train with. A real checkpoint is not refused.
    Raises `MachineError` where every episode of a panel crashed.
    """
    _check_adapter(config, root)
    network, tokenizer = build.load(config, config.model.policy, root, Role.FROZEN, "policy")
    images = ImageStore(layout.panel_images)
    seen = build.sight(config, "policy", config.model.policy, root, network, images)
    with (
        opened(config),
        build.chat_model(config, network, tokenizer, seen) as policy,
        build.judge(config, config.model.reward, root, images=images) as reward,
    ):
        store = images if config.model.images.any else None
        report, objections = _measure(config, root, layout, policy, reward, store)
    if not launch.first_process():
        return
    said = ", ".join(f"{k} {v:.3f}" for k, v in report.items())
    if objections and config.model.embedded is not None:
        raise ConfigError(f"bootstrap: {'; '.join(objections)} ({said})")
    _complete(layout, earlier, report)
    print(f"bootstrap: {said}")


def _complete(layout: Layout, earlier: str, report: Mapping[str, float]) -> None:
    """Mark models/ as complete. What was measured with other models goes before."""
    if (found := measured(layout)) and base_models(layout) != earlier:
        forget(layout, found, BOOTSTRAP, "other base models")
    write_json(layout.bootstrap, metrics_record(report))


def _check_adapter(config: Config, root: Path) -> None:
    """Raise `ConfigError` for an adapter that a training would fail to load. This stage asks it nothing."""
    adapts = any(arm.adapt for arm in config.arms.values()) and config.endpoints.adapter is None
    if adapts and config.model.embedded is None:
        build.check_loads(config.model.adapter, root)


def _measure(
    config: Config,
    root: Path,
    layout: Layout,
    policy: ChatModel,
    reward: ChatModel,
    images: ImageStore | None,
) -> tuple[dict[str, float], list[str]]:
    """Write the reward panels. Returns the numbers for bootstrap.json, and why the reward model is too bad.

    images: where the pictures that the panels name are kept.
    """
    prompts, family = build.prompts(config, root), build.family(config)
    worker = RolloutWorker(family, policy, prompts, config.rollout, images)
    named: set[str] = set()
    evaluation = kind_of(config).evaluation(config, family, reward, prompts)
    report, objections = _solved(config, layout, worker), []
    for name in (panels := config.tasks.reward_panels):
        tasks = read_tasks(layout.tasks(name))
        tried, lost = without_crashed(f"bootstrap: {name}", try_tasks(config, tasks, worker))
        named.update(chain.from_iterable(trajectory.images for trajectory in tried))
        panel = evaluation.panel(tasks, tried)
        first = evaluation.assess(panel)
        if launch.first_process():
            write_lines(layout.reward_panel(name), panel)
        report |= keyed({"panel_success": solved(tried)} | first.metrics, name, panels) | _lost(name, lost)
        objections += [f"panel {name}: {first.objection}"] if first.objection else []
    if launch.first_process():
        clear_images(layout.panel_images, named)
    return report, objections


def _remove_others(layout: Layout, panels: Sequence[Path]) -> None:
    """Remove the reward panels of an earlier configuration. A fingerprint covers all files in models/."""
    for path in layout.bootstrap.parent.glob("*.jsonl.gz"):
        if path not in panels:
            path.unlink()


def _solved(config: Config, layout: Layout, worker: RolloutWorker) -> dict[str, float]:
    """Success rate of the base policy on each panel, and how many of its episodes crashed."""
    evaluate = config.evaluate
    settings = (config.seed, 1, evaluate.temperature, evaluate.max_steps)
    found: dict[str, float] = {}
    for name in config.tasks.policy_panels:
        tasks = read_tasks(layout.tasks(name))
        played, lost = without_crashed(f"bootstrap: {name}", play_panel(worker, tasks, *settings))
        found |= {name: success_rate(successes(tasks, played))} | _lost(name, lost)
    return found


def _lost(panel: str, crashed: int) -> dict[str, float]:
    """The number of a panel's episodes that crashed, for bootstrap.json; nothing where none did."""
    return {f"crashed/{panel}": float(crashed)} if crashed else {}
