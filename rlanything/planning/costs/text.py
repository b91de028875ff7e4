"""Estimates as text for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rlanything.config import Config
from rlanything.core.types import Json
from rlanything.planning.checkpoints import lost_updates
from rlanything.planning.costs import cache
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.devices import CPU, GB, Device
from rlanything.planning.costs.endpoints import bill
from rlanything.planning.costs.estimate import ITERATIONS, USABLE, Estimate, Stage
from rlanything.planning.costs.hours import LAYER_S
from rlanything.planning.costs.loading import Loading
from rlanything.planning.costs.memory import Part
from rlanything.planning.costs.saving import Saving
from rlanything.planning.costs.weight_files import WeightFiles
from rlanything.runs.folder import KEPT


def render(config: Config, estimates: Sequence[Estimate], given: Assumptions) -> str:
    """Memory, tokens and time of every arm, the assumptions, and a setting that fits."""
    first = estimates[0].device
    lines = [
        "",
        f"device     {first.name}, {gb(first.memory)}, {first.half_flops / GB:,.0f} GFLOP/s in bfloat16, "
        f"{first.full_flops / GB:,.0f} in float32, {first.bandwidth / GB:,.0f} GB/s ({first.source})",
        f"devices    {estimates[0].devices}, strategy {config.train.strategy}, precision {precisions(config)}",
        *_assumed(config, given, first),
    ]
    for found in estimates:
        lines += ["", f"arm {found.arm}", *_memory(found, given), *_work(found, given)]
        lines += [*_bounded(config, found), *verdict(found)]
        lines += _hours(found, given)
        lines += bill(config, found.stages, given)
    if len(estimates) > 1:
        hours = f"{'at most ' if given.upper else ''}{together(estimates):,.1f} hours by this model"
        lines += ["", f"all {len(estimates)} arms, with what they share once: {hours}"]
    return "\n".join(lines) + "\n"


def precisions(config: Config) -> str:
    """The precision of the models, and those that `policy` and `reward` have of their own."""
    own = [f"{name}: {precision}" for name, precision in config.learn.precisions.items()]
    return config.train.precision + (f" ({', '.join(own)})" if own else "")


def as_json(estimate: Estimate) -> dict[str, Json]:
    """An estimate as JSON. Bytes, tokens, seconds and hours are numbers."""
    fields: dict[str, Any] = asdict(estimate)
    better = estimate.nearest
    memory = {**fields["memory"], "peak": estimate.memory.peak, "room": estimate.room, "fits": estimate.fits}
    nearest = None
    if better is not None:
        nearest = {"changes": list(better[0].changes), "devices": better[0].devices, "peak": better[1]}
    work = {**fields["work"], "trained": estimate.work.trained, "longest_row": estimate.work.longest_row}
    sums = {name: getattr(estimate.saving, name) for name in ("file", "host", "kept", "most")}
    saving = {**fields["saving"], **sums}
    loading = {**fields["loading"], "process": estimate.loading.process, "node": estimate.loading.node}
    files = estimate.weight_files
    if files is not None:
        fields["weight_files"] |= {"process": files.process, "most": files.most}
    made = {"work": work, "memory": memory, "saving": saving, "loading": loading, "nearest": nearest}
    return {**fields, **made}


def _assumed(config: Config, given: Assumptions, device: Device) -> list[str]:
    each = f"{given.picture_tokens} tokens" if given.picture_tokens else "a token for 32 x 32 pixels"
    images = config.model.images
    return [
        f"assumed    episodes {given.episode_share:.0%} of their limit of steps, replies {given.reply_share:.0%} of "
        f"their max_tokens, {given.rewritten_share:.0%} of the tasks rewritten",
        "           (every rollout of these fails, every attempt is needed); tokens:",
        f"           {given.opening_tokens} of an opening, {given.turn_tokens} of a turn, {given.past_tokens} of an "
        f"observation alone, {given.action_tokens} of a command, {given.guide_tokens} of a guide, "
        f"{given.summary_tokens} of a summary;",
        f"           of pictures, where env.screen declares them: {images.policy} in a prompt of the policy, "
        f"{images.reward} in a question,",
        f"           each {each};",
        f"           {device.of_flops:.0%} of these operations, {device.of_bandwidth:.0%} "
        f"of the bandwidth, {1000 * LAYER_S:.1f} ms to start a layer of a pass; {USABLE:.0%} of the memory usable",
    ]


def _memory(found: Estimate, given: Assumptions) -> list[str]:
    passing, seeds = sorted(found.memory.passing, key=lambda part: -part.bytes), found.memory.seeds
    return [
        "  memory of a device",
        *(_part(part) for part in found.memory.lasting),
        *(_part(part, "largest of what comes and goes: ") for part in passing[:1]),
        *(_part(part, "  less: ") for part in passing[1:]),
        *([f"    times {seeds} seeds at once (train.workers), each with all of it"] if seeds > 1 else []),
        f"  {given.bound:<76}{gb(found.memory.peak):>12}   of {gb(found.room)} usable",
        *(["  memory of the host, for each device"] if found.memory.host else []),
        *(_part(part) for part in found.memory.host),
        *_loading(found),
        *_saving(found.saving),
        *([] if found.weight_files is None else _weight_files(found.weight_files)),
    ]


def _loading(found: Estimate) -> list[str]:
    if not on_the_host(found):
        return []
    node = found.loading.node
    return [
        "  memory of the host while models are loaded, in each process",
        *(_part(part) for part in found.loading.parts),
        *([] if node is None else [_sum(f"on a node, in {found.loading.processes} processes", node)]),
    ]


def _saving(found: Saving) -> list[str]:
    return [
        "  checkpoint (state.ckpt) of a seed",
        *(_part(part) for part in found.parts),
        _sum("one of them", found.file),
        _sum("memory of the host while the first process writes it", found.host),
        _sum(f"disk of a seed's live folder, which keeps the last {KEPT}", found.kept),
        _sum("the same while the next one is written", found.most),
    ]


def _weight_files(found: WeightFiles) -> list[str]:
    return [
        "  files of weights for vLLM's servers, of each process that trains",
        *(_part(part) for part in found.parts),
        _sum("disk of one process", found.process),
        *([_sum(f"disk of all {found.processes}", found.most)] if found.processes > 1 else []),
    ]


def _sum(name: str, count: float) -> str:
    return f"  {name:<76}{gb(count):>12}"


def _part(part: Part, before: str = "") -> str:
    return f"    {f'{before}{part.name}, {part.model}':<74}{gb(part.bytes):>12}"


def _work(found: Estimate, given: Assumptions) -> list[str]:
    head = f"an iteration, {given.bound}"
    lines = [f"  {head:<24}{'calls':>12}{'tokens read':>16}{'written':>14}{'seconds':>12}"]
    for calls in found.work.calls:
        seconds = found.hours.phases[calls.name]
        lines.append(
            f"    {calls.name:<22}{calls.count:>12,.0f}{calls.read:>16,.0f}{calls.written:>14,.0f}{seconds:>12,.1f}"
        )
    for name, tokens in found.work.trained.items():
        seconds = found.hours.phases[f"learn, {name}"]
        label = f"learn, {name}"
        lines.append(f"    {label:<22}{'':>12}{tokens:>16,.0f}{'':>14}{seconds:>12,.1f}")
    return lines


def _bounded(config: Config, found: Estimate) -> list[str]:
    """The calls of which vLLM's cache holds fewer rows than could be sampled together."""
    if not found.held:
        return []
    return [
        f"  engine.cache_gib={_cache(config)} bounds the rows at once (common beginnings are counted with every row)",
        *(
            f"    {f'{each.calls}, {each.stage}':<40}{each.rows:>6,} of {each.wanted:,} rows of {each.tokens:,} "
            f"tokens; {_up(each.gib)} would hold them"
            for each in found.held
        ),
    ]


def bounded(config: Config, estimates: Sequence[Estimate]) -> list[str]:
    """The same of all arms as a line: the calls with the smallest part of their rows. [] where all rows are held.

    Where the iterations have such calls, the line is about them alone.
    """
    needed = max((found.least_gib for found in estimates), default=0.0)
    if needed > cache.cache_bytes(config) / cache.GIB:
        return [
            f"engine.cache_gib={_cache(config)} is too small: vLLM does not start with less than {_up(needed)}, one "
            "prompt with its reply of each model. A smaller engine.context needs less"
        ]
    every = [each for found in estimates for each in found.held]
    held = [each for each in every if each.stage == ITERATIONS] or every
    if not held:
        return []
    least = min(held, key=lambda each: each.rows / each.wanted)
    needed = max(each.gib for each in held)
    of = "the iterations" if least.stage == ITERATIONS else "the measurements"
    return [
        f"engine.cache_gib={_cache(config)} holds fewer rows than could be sampled together: {least.rows:,} of "
        f"{least.wanted:,} ({least.calls}, {least.tokens:,} tokens a row), and the hours are of so many. "
        f"{_up(needed)} would hold all rows of {of}{_room(config, estimates, needed)}. Common beginnings are counted "
        "with every row, so more may find room"
    ]


def _room(config: Config, estimates: Sequence[Estimate], needed: float) -> str:
    """The largest `engine.cache_gib` for which every device has room, where it is less than what is needed."""
    if cache.given(config):
        return ""
    spare = (
        min(found.room - found.memory.peak for found in estimates) + cache.cache_bytes(config)
    ) / cache.GIB
    return f"; a device has room for {math.floor(spare * 10) / 10:g}" if 0 < spare < needed else ""


def _cache(config: Config) -> str:
    return f"{cache.cache_bytes(config) / cache.GIB:g}"


def _up(gib: float) -> str:
    """GiB, rounded up so that they are enough."""
    return f"{math.ceil(gib * 10) / 10:g}"


def _hours(found: Estimate, given: Assumptions) -> list[str]:
    """Tokens and hours of every stage, and of all of them together."""
    once = sum(stage.hours for stage in found.stages if stage.shared)
    bound = ", at most" if given.upper else ""
    return [
        f"  {'by stage, all seeds':<24}{'times':>8}{'tokens read':>20}{'written':>18}{'hours':>12}",
        *(_stage(stage) for stage in found.stages),
        f"  time by this model{bound}: {found.hours.iteration:,.1f} s an iteration, {found.all_hours:,.1f} hours "
        f"in all; {once:,.1f} of them are once for all arms (*)",
        "  (environment, files, and what attention itself computes are not included)",
    ]


def _stage(stage: Stage) -> str:
    read = stage.times * sum(calls.read for calls in stage.work.calls)
    written = stage.times * sum(calls.written for calls in stage.work.calls)
    name = f"{stage.work.name} *" if stage.shared else stage.work.name
    return f"    {name:<22}{stage.times:>8,}{read:>20,.0f}{written:>18,.0f}{stage.hours:>12,.2f}"


def together(estimates: Sequence[Estimate]) -> float:
    """The hours of all arms, with shared stages counted once."""
    shared = sum(stage.hours for stage in estimates[0].stages if stage.shared)
    own = sum(found.all_hours - shared for found in estimates)
    return own + shared


def verdict(found: Estimate) -> list[str]:
    """Whether it fits, and otherwise the nearest setting that does."""
    if found.fits:
        return [f"  fits: {found.memory.peak / found.device.memory:.0%} of a device's memory"]
    lines = [f"  does not fit: {gb(found.memory.peak)} needed, {gb(found.room)} usable on a device"]
    if found.nearest is not None:
        setting, needed = found.nearest
        warned = [f"  but {text}" for text in lost_updates(setting.config)]
        return [*lines, f"  nearest that fits ({gb(needed)}): {', '.join(setting.changes)}", *warned]
    if found.staying > found.room:
        return [
            *lines,
            f"  no smaller batch, precision or number of devices is enough: {gb(found.staying)} of weights and of what "
            "the engine keeps are always on a device.",
            "  Take smaller models, or a device with more memory",
        ]
    name = max(found.work.undivided, key=lambda key: found.work.undivided[key])
    return [
        *lines,
        f"  no smaller batch, precision or number of devices is enough: the longest row of {name} has "
        f"{found.work.undivided[name]:,} tokens and cannot be divided.",
        "  Lower judge.max_tokens, rollout.max_tokens or rollout.max_steps, or say what you expect with "
        "--episode-share and --reply-share",
    ]


def saved(found: Saving) -> str:
    """What a checkpoint takes, as a line."""
    memory = f"{gb(found.host)} of the host's memory" if found.gathered else "one tensor at a time in memory"
    return (
        f"checkpoint: {gb(found.file)}. While the first process writes it: {memory}. The live folder of a seed keeps "
        f"the last {KEPT}: {gb(found.kept)} of disk, and {gb(found.most)} while the next one is written"
    )


def handed(found: WeightFiles) -> str:
    """What the files take from which servers read weights, as a line."""
    every = f", {gb(found.most)} for all {found.processes}" if found.processes > 1 else ""
    each = f"{gb(found.process)} of disk for each process that trains"
    return f"files of weights for vLLM's servers: {each}{every}"


def on_the_host(found: Estimate) -> bool:
    """Whether processes that load at once share the memory of a host, beside that of their devices."""
    return found.devices > 1 and found.device.name != CPU


def read(found: Loading) -> str:
    """What loading takes, as a line."""
    each = f"while models are loaded: {gb(found.process)} of the host's memory in each process"
    if found.node is None:
        return f"{each}, times the processes of a node"
    return f"{each}, {gb(found.node)} on a node of {found.processes}"


def gb(count: float) -> str:
    """Bytes for a reader."""
    return f"{count / GB:,.1f} GB" if count >= GB else f"{count * 1000 / GB:,.1f} MB"
