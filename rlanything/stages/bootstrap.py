"""Stage `bootstrap`: the base models. Embedded ones are trained here, on the spot; real ones are only recorded.

Then the reward panel, and the check that the first reward model is worth training with: `rewardpanel`. How the
embedded models are trained stands in `warmstart`.

bootstrap.json goes before the first file of models/ is changed and comes back after the last: where it is, everything
in models/ belongs together. Models are trained in .rla/bootstrap/<key>/, so that finished ones survive a kill.
"""

from __future__ import annotations

from pathlib import Path

from rlanything.config import Checkpoint, Config, ConfigError
from rlanything.core.ids import content_id
from rlanything.loop.panel import measure_policy, success_rate
from rlanything.loop.rollout import Roller
from rlanything.stages import build, disk, inputs, locks, rewardpanel
from rlanything.stages.layout import Layout, clear_leftovers, read_tasks, write_json, write_lines


def run(config: Config, root: Path) -> None:
    """Write models/: three checkpoints (when embedded), the reward panel and bootstrap.json. Raises `ConfigError`."""
    build.one_thread()
    layout = Layout(root)
    # What this machine lacks for an environment is said before minutes of work.
    build.family(config).environment().close()
    with locks.stage(root, "bootstrap", layout.bootstrap.parent):
        work = _trained(config, root) if config.model.embedded is not None else None
        layout.bootstrap.unlink(missing_ok=True)
        disk.make(layout.bootstrap.parent)
        disk.sync(layout.bootstrap.parent)
        for path in (layout.reward_panel, layout.bootstrap):
            clear_leftovers(path)
        _install(config, root, work)
        _finish(config, root, layout)
        if work is not None:
            disk.remove(work.parent)


def _trained(config: Config, root: Path) -> Path:
    """The folder of the three embedded models, trained now as far as an earlier start did not."""
    from rlanything.stages import warmstart

    for name, source in _sources(config):
        if Path(source.path).parent != Path("models"):
            raise ConfigError(
                f"model.{name}.path = {source.path}: an embedded model is written to a folder in models/, e.g. "
                f"models/{name}"
            )
    work = root / ".rla" / "bootstrap" / _key(config, root)
    warmstart.train(config, root, work)
    return work


def _key(config: Config, root: Path) -> str:
    """Names the models by everything that they depend on, so that only the very same are kept."""
    data = [path for path in (root / "data").rglob("*") if path.is_file()]
    parts = {
        "config": config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "train"}),
        "code": inputs.code_hashes(root),
        "inputs": inputs.file_hashes(root, [*data, *(root / config.model.prompts).glob("*.txt")]),
    }
    return content_id(parts)[:16]


def _install(config: Config, root: Path, work: Path | None) -> None:
    """Put the trained models in their places; of real ones, a note which they are."""
    for name, source in _sources(config):
        if work is None:
            write_json(root / "models" / name / "source.json", source.model_dump())
            continue
        with disk.whole(root / source.path) as folder:
            disk.copy_tree(work / name, folder)


def _sources(config: Config) -> list[tuple[str, Checkpoint]]:
    model = config.model
    return [("policy", model.policy), ("reward", model.reward), ("adapter", model.adapter)]


def _finish(config: Config, root: Path, layout: Layout) -> None:
    """The reward panel, and what the first models can do. Raises `ConfigError` for a reward model that misleads."""
    policy_model, tokenizer = build.load(config.model.policy, root)
    reward_model, reward_tokenizer = build.load(config.model.reward, root)
    prompts = build.prompts(config, root)
    policy = build.speaker(config, policy_model, tokenizer)
    reward = build.speaker(config, reward_model, reward_tokenizer)
    roller = Roller(build.family(config), policy, prompts, config.rollout)
    panel = rewardpanel.make(config, read_tasks(layout.tasks("reward_panel")), roller, reward, prompts)
    write_lines(layout.reward_panel, panel.lines)
    report = _solved(config, layout, roller) | panel.found
    write_json(layout.bootstrap, report)
    print("bootstrap: " + ", ".join(f"{k} {v:.3f}" for k, v in report.items()))
    if panel.objection:
        raise ConfigError(f"bootstrap: {panel.objection}")


def _solved(config: Config, layout: Layout, roller: Roller) -> dict[str, float]:
    """How often the base policy solves each panel's tasks."""
    evaluate = config.evaluate
    settings = (config.seed, 1, evaluate.temperature, evaluate.max_steps)
    return {
        split: success_rate(measure_policy(roller, read_tasks(layout.tasks(split)), *settings))
        for split in ("in_domain", "out_of_domain")
    }
