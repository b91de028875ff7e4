"""A look as a page, the most urgent first: what runs, warnings, where each run is, times, what was measured.

A terminal that is too low for all of it loses the end (`watch.screen`).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from rlanything.core.errors import in_workspace
from rlanything.core.printable import one_line, safe
from rlanything.stages import TRAIN, of_arm
from rlanything.watch import seeds, stages
from rlanything.watch.left import Left
from rlanything.watch.machine import Use
from rlanything.watch.places import PROJECT, Place
from rlanything.watch.text import tables
from rlanything.watch.text.words import BLOCKS, NONE, percent, rounded, size, spark, time_left
from rlanything.watch.view import View

NOTHING = "nothing has run here yet; start with `make repro`, or with `rlanything train --arm full`"

_ORDER = (seeds.RUNNING, seeds.STOPPED, seeds.WAITING, seeds.DONE, seeds.FINISHED)


def page(view: View, blocks: str = BLOCKS) -> list[RenderableType]:
    """The parts of the page, one below the other. blocks: the characters of curves, '' for none."""
    place = view.single
    if place is None:
        head, body = _overview_head(view), _overview(view, blocks)
    else:
        head, body = _head(place, view.whole[0]), _detail(place, blocks)
    return [*head, *_warnings(view), *body, Text(), _use(view.use)]


def _head(place: Place, whole: Left) -> Iterator[RenderableType]:
    """What runs, and what does not though it should."""
    yield Text(_title(place, whole), style="bold")
    if place.problem:
        yield Text(safe(f"params.yaml cannot be read: {place.problem}"), style="yellow")
    if place.whole and place.stages and (place.seeds or place.in_progress):
        yield _stages(place.stages)
    for line in again(place):
        yield Text(line, style="yellow")


def _detail(place: Place, blocks: str) -> Iterator[RenderableType]:
    """Where each run is and what it measured: those in training first, finished ones last."""
    if not place.seeds:
        hint = in_workspace(NOTHING, "" if place.name == PROJECT else place.name)
        yield Text("" if place.in_progress else safe(hint))
        return
    yield Text()
    ordered = sorted(place.seeds, key=lambda seed: _ORDER.index(seed.state))
    shown = [seed for seed in ordered if seed.state != seeds.FINISHED] or ordered
    yield tables.progress(shown, blocks)
    if spent := tables.seconds_of(shown):
        yield Text()
        yield Text(f"seconds an iteration: {spent}")
    if any(seed.rows for seed in place.seeds):
        yield Text()
        yield tables.measured(ordered, tables.panel_of(place.seeds), blocks)


def _title(place: Place, whole: Left) -> str:
    running = [one for one in place.stages if one.state == stages.RUNNING]
    what = ", ".join(one.words for one in running) or _without_stage(place)
    name = "" if place.name == PROJECT else f"{one_line(place.name)}: "
    parts = [f"{name}{what}"]
    for one in running:
        parts.append(f"{time_left(one.spent)} so far, {time_left(one.left)} left" if one.left is not None
                     else f"{time_left(one.spent)} so far")  # fmt: skip
    if running and place.whole and whole.commands > len(running):
        parts.append(in_all(whole))
    return one_line("; ".join(parts))


def _without_stage(place: Place) -> str:
    """What goes on in a place where no stage runs."""
    if any(seed.state == seeds.RUNNING for seed in place.seeds):
        return "in training"
    return "between stages" if place.in_progress else "nothing runs"


def in_all(whole: Left) -> str:
    """The time left for everything, and what nobody knows of it."""
    if whole.unknown and len(whole.unknown) == whole.commands:
        return f"in all: {whole.commands} commands, nothing says yet how long they take"
    untimed = "1 command that was" if len(whole.unknown) == 1 else f"{len(whole.unknown)} commands that were"
    beside = f", and {untimed} not timed yet" if whole.unknown else ""
    return f"in all {rounded(whole.seconds)}{beside}"


def _stages(found: Sequence[stages.StageState]) -> Text:
    """A line with the stages in their order, the arms of each together."""
    text = Text()
    for name in dict.fromkeys(one.name for one in found):
        parts = [one for one in found if one.name == name]
        text.append(f"{name} ", style="bold")
        marks = Counter(one.state for one in parts)
        running = [one.arm or "runs" for one in parts if one.state == stages.RUNNING]
        if len(parts) == 1:
            said = running[0] if running else "done" if marks[stages.THERE] else "to do"
        else:
            said = f"{marks[stages.THERE]} of {len(parts)}"
            said += f", {' and '.join(running)} now" if running else ""
        text.append(f"{one_line(said)}   ", style="green" if running else "")
    return text


def again(place: Place) -> Iterator[str]:
    """What continues the runs that nobody trains."""
    for arm in dict.fromkeys(seed.arm for seed in place.seeds if seed.state == seeds.STOPPED):
        option = "" if place.name == PROJECT else f"--workspace {shlex.quote(place.name)} "
        words = f"rlanything {option}{of_arm(TRAIN, shlex.quote(arm))}"
        done = sum(len(s.rows) for s in place.seeds if s.arm == arm and s.state == seeds.STOPPED)
        # A name with a slash is that of another project or of a trial: `train` here would train something else.
        known = "/" not in place.name and any(one.arm == arm for one in place.stages)
        how = f"continue with `{words}`" if known else "the command that trained it goes on from there"
        how += " or `dvc repro`" if known and place.whole else ""
        yield one_line(f"{arm} is not running ({done} iterations are kept); {how}")


def _overview_head(view: View) -> Iterator[RenderableType]:
    running = sum(place.in_progress for place in view.places)
    yield Text(f"{len(view.places)} places, something runs in {running}", style="bold")


def _overview(view: View, blocks: str) -> Iterator[RenderableType]:
    """A line for each place, those where something runs first."""
    yield Text()
    table = tables.empty("where", "now", "runs", "done", "left", "accuracy", *([""] if blocks else []))
    pairs = sorted(zip(view.places, view.whole, strict=True), key=lambda pair: not pair[0].in_progress)
    for place, whole in pairs:
        now = ", ".join(one.words for one in place.stages if one.state == stages.RUNNING)
        shares = [seed.share for seed in place.seeds]
        rows = max((seed.rows for seed in place.seeds), key=len, default=())
        accuracies = [a for s in place.seeds if (a := tables.newest(s.rows, "accuracy")) is not None]
        table.add_row(
            Text(one_line(place.name)), Text(one_line(now or ("in training" if place.in_progress else "not running"))),
            one_line(", ".join(dict.fromkeys(seed.arm for seed in place.seeds))) or NONE,
            percent(sum(shares) / len(shares)) if shares else NONE,
            _left(place, whole),
            f"{sum(accuracies) / len(accuracies):.2f}" if accuracies else NONE,
            *([spark([row.get("accuracy") for row in rows], tables.CURVE, blocks)] if blocks else []),
        )  # fmt: skip
    yield table
    yield Text()
    yield Text("one of them: `rlanything watch WHERE`")


def _left(place: Place, whole: Left) -> str:
    """Time left in a place: of the whole pipeline where one is run, or else of what runs."""
    if not place.in_progress or (place.whole and whole.unknown):
        return NONE
    running = [one.left for one in place.stages if one.state == stages.RUNNING and one.left is not None]
    return time_left(whole.seconds if place.whole else max(running, default=None))


def _use(use: Use) -> Text:
    cores = "" if use.busy is None else f", {use.busy:.1f} cores busy"
    noun = "process" if use.processes == 1 else "processes"
    own = f"{use.processes} {noun}, {size(use.memory)}{cores}; " if use.processes else ""
    away = f"others on {', '.join(use.elsewhere)}; " if use.elsewhere else ""
    text = f"{own}{away}free: {size(use.memory_free)} of {size(use.memory_total)} memory, {size(use.disk_free)} disk"
    for gpu in use.gpus:
        text += f"; GPU {gpu.index} {percent(gpu.busy)} busy, {size(gpu.used * 2**20)} of {size(gpu.total * 2**20)}"
    return Text(one_line(text), style="dim")


def _warnings(view: View) -> Iterator[RenderableType]:
    """Each warning once, with the runs that it is about and what to do."""
    told: dict[str, list[tuple[str, str, str]]] = {}
    for name, one in view.warnings:
        told.setdefault(one.kind, []).append((name, one.text, one.todo))
    for found in told.values():
        names = ", ".join(dict.fromkeys(name for name, *_ in found if name))
        first = f"{names}: {found[0][1]}" if names else found[0][1]
        yield Text()
        yield Text(one_line(f"! {first}"), style="yellow")
        yield Text(f"  {one_line(found[0][2])}")
