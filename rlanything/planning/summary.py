"""A plan as a page of about twelve lines: the experiment, the device, and what every arm takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlanything.config import Config
from rlanything.core.splits import TRAIN
from rlanything.engines.sources import is_local
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.endpoints import bill, endpoint_of
from rlanything.planning.costs.estimate import Estimate, checkpoints
from rlanything.planning.costs.low_rank import lora_weights
from rlanything.planning.costs.sizes import EMBEDDED, Size
from rlanything.planning.costs.text import (
    bounded,
    gb,
    handed,
    on_the_host,
    precisions,
    read,
    saved,
    together,
    verdict,
)
from rlanything.planning.plan import ArmPlan
from rlanything.rewards.kind import kind_of
from rlanything.runs.progress.ticker import clock

_COLUMNS = (("rollouts", 11), ("proposals", 11), ("RM calls", 12), ("updates", 9))
_COSTS = (("tokens read", 13), ("written", 10), ("memory", 11), ("hours", 9))
_UNNAMED = "Memory and time depend on the device: name it with --device, e.g. --device H100 --devices 8"
_UPPER = Assumptions()
_MORE = "More: --details (memory, phases, stages, assumptions), --config, --json"


def render(
    config: Config,
    sizes: Mapping[str, Size],
    plans: Sequence[ArmPlan],
    found: Sequence[Estimate] = (),
    given: Assumptions = _UPPER,
    root: Path = Path(),
) -> str:
    """The page. found: the estimates of the same arms on a device; none where the device is not known.

    root: the project, where checkpoints may be folders.
    """
    lines = [*_experiment(config, sizes, root), *_device(config, found), "", _head(given, plans, found)]
    costs: Sequence[Estimate | None] = [*found] or [None] * len(plans)
    lines += [_row(plan, cost) for plan, cost in zip(plans, costs, strict=True)]
    if len(found) > 1:
        lines.append(f"{'all':<14}{_hours(together(found)):>86}   (what they share counted once)")
    return (
        "\n".join(
            [
                *lines,
                "",
                *_verdicts(found),
                *bounded(config, found),
                *_bills(config, found, given),
                *_notes(given.upper, found),
                _MORE,
            ]
        )
        + "\n"
    )


def _experiment(config: Config, sizes: Mapping[str, Size], root: Path) -> list[str]:
    tasks, replies = config.tasks, kind_of(config).replies
    counts = {TRAIN: tasks.train} | {name: panel.tasks for name, panel in tasks.panels.items()}
    panels = sum(counts[name] for name in tasks.policy_panels) * config.evaluate.repeats
    programs = sum(counts[name] for name in tasks.reward_panels) * config.evaluate.reward_rollouts
    return [
        f"tasks      {', '.join(f'{count:,} {name}' for name, count in counts.items())}",
        f"training   seeds: {config.train.seeds}, iterations: {config.train.iterations} of "
        f"{config.rollout.tasks} tasks x {config.rollout.rollouts} rollouts, at most {config.rollout.max_steps} "
        f"steps, {config.judge.m} {replies.unit}",
        f"panels     {panels:,} episodes and {programs:,} {replies.panel} a seed and arm",
        *(f"{name:<10} {_size(config, name, size, root)}" for name, size in sizes.items()),
    ]


def _size(config: Config, name: str, size: Size, root: Path) -> str:
    endpoint = endpoint_of(config, name)
    if endpoint is not None:
        return f"{endpoint.model} at {endpoint.root}, an endpoint"
    _, checkpoint = checkpoints(config)[name]
    lora = config.learn.lora.get(name)
    trains = f", {lora_weights(size, lora):,} of LoRA train" if lora else ""
    bound = "at most " if size.source == EMBEDDED else ""
    text = f"{bound}{size.parameters:,} parameters{trains}, {checkpoint.path}"
    if config.model.embedded is not None:
        return text
    revision = "" if is_local(checkpoint, root) else f" at {checkpoint.revision or 'its newest revision'}"
    return f"{text}{revision} ({size.source})"


def _device(config: Config, found: Sequence[Estimate]) -> list[str]:
    if not found:
        return []
    device, count = found[0].device, found[0].devices
    named = f"{device.name}, {gb(device.memory)}"
    if count > 1:
        named = f"{count} x {named} each"
    return [
        f"device     {named} ({device.source}); "
        f"precision {precisions(config)}, strategy {config.train.strategy}"
    ]


def _head(given: Assumptions, plans: Sequence[ArmPlan], found: Sequence[Estimate]) -> str:
    columns = (*_COLUMNS, *(_COSTS if found else ()), *((("measured", 11),) if _measured(plans) else ()))
    return f"{given.bound:<14}" + "".join(f"{name:>{width}}" for name, width in columns)


def _row(plan: ArmPlan, cost: Estimate | None) -> str:
    counts = (plan.rollouts, plan.proposals, plan.replies, plan.updates)
    cells = [f"{count:>{width},}" for count, (_, width) in zip(counts, _COLUMNS, strict=True)]
    if cost is not None:
        read, written = (_tokens(cost, name) for name in ("read", "written"))
        values = (_count(read), _count(written), gb(cost.memory.peak), _hours(cost.all_hours))
        cells += [f" {value:>{width - 1}}" for value, (_, width) in zip(values, _COSTS, strict=True)]
    if plan.seconds is not None:
        cells.append(f"{clock(plan.seconds):>11}")
    return f"{plan.name:<14}" + "".join(cells)


def _tokens(cost: Estimate, name: str) -> float:
    """The tokens of all stages, all seeds."""
    return sum(s.times * sum(getattr(calls, name) for calls in s.work.calls) for s in cost.stages)


def _count(tokens: float) -> str:
    return f"{tokens / 1e9:,.2f} G" if tokens >= 1e9 else f"{tokens / 1e6:,.1f} M"


def _hours(hours: float) -> str:
    return f"{hours:,.{0 if hours >= 100_000 else 1 if hours >= 10 else 2}f}"


def _measured(plans: Sequence[ArmPlan]) -> bool:
    return any(plan.seconds is not None for plan in plans)


def _verdicts(found: Sequence[Estimate]) -> list[str]:
    if not found:
        return [_UNNAMED]
    if all(each.fits for each in found):
        most = max(each.memory.peak / each.device.memory for each in found)
        return [f"fits: {most:.0%} of a device's memory"]
    return [f"{each.arm}: {line.strip()}" for each in found if not each.fits for line in verdict(each)]


def _bills(config: Config, found: Sequence[Estimate], given: Assumptions) -> list[str]:
    """What endpoints are asked, arm by arm."""
    bills = {each.arm: bill(config, each.stages, given) for each in found}
    return [line for arm, lines in bills.items() if lines for line in (f"{arm}:", *lines)]


def _notes(upper: bool, found: Sequence[Estimate]) -> list[str]:
    """What the numbers are, and what they leave out."""
    bounds = (
        "Upper bounds: every episode and reply as long as it may be, every task rewritten. For what you expect: "
        "--episode-share, --reply-share, --rewritten-share"
    )
    hours = (
        "Hours are by a model of the device, with base models and evaluation, without environment and files."
    )
    offloaded = [sum(part.bytes for part in each.memory.host) for each in found]
    host = (
        f"train.offload: {gb(max(offloaded, default=0))} of the host's memory for each device. Time to move weights "
        "and gradients, and that of AdamW on the host, is not counted"
    )
    largest = max((each.saving for each in found), key=lambda one: one.file, default=None)
    files = [each.weight_files for each in found if each.weight_files is not None]
    written = max(files, key=lambda one: one.process, default=None)
    loads = [each.loading for each in found if on_the_host(each)]
    most = max(loads, key=lambda one: one.process, default=None)
    return [
        *([bounds] if upper else []),
        *([hours] if found else []),
        *([read(most)] if most else []),
        *([host] if any(offloaded) else []),
        *([saved(largest)] if largest else []),
        *([handed(written)] if written else []),
    ]
