"""The tables of a place: where each run is, and what it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from rlanything.core.printable import one_line
from rlanything.runs import timings
from rlanything.watch import seeds
from rlanything.watch.advice.warned import is_policy_panel
from rlanything.watch.seeds import Seed
from rlanything.watch.text.words import NONE, bar, number, percent, spark, time_left
from rlanything.watch.tolerant import Row, number_at

CURVE = 10
"""Columns of a curve."""
LEAST = 8
"""Columns that the name of a run keeps in a narrow terminal."""
MOST = 1e9
"""More rewrites than an iteration can have; a stranger's metrics may say anything."""
_LEFT = frozenset({"", "now", "runs"})
_STYLES = {
    seeds.RUNNING: "green",
    seeds.STOPPED: "yellow",
    seeds.WAITING: "dim",
    seeds.DONE: "",
    seeds.FINISHED: "dim",
}


def empty(*columns: str) -> Table:
    """A table without lines around it. Numbers stand right; text, and curves, which have no name, stand left."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        left, least = place == 0 or name in _LEFT, LEAST if place == 0 else None
        table.add_column(
            name, justify="left" if left else "right", no_wrap=True, overflow="ellipsis", min_width=least
        )
    return table


def progress(shown: Sequence[Seed], blocks: str) -> Table:
    """Where each run is: its iteration, what it does now, time left, pace. blocks: '' for no bars."""
    bars = [""] if blocks else []
    table = empty("run", *bars, "iteration", "now", "left", "s/iteration", "tokens/s")
    for seed in shown:
        drawn = [bar(seed.share, CURVE, blocks)] if blocks else []
        table.add_row(
            Text(one_line(seed.name)), *drawn, iteration(seed),
            Text(now(seed), style=_STYLES[seed.state]), time_left(seed.left(_pace(shown))),
            number(seed.pace, 1), rate(seed),
        )  # fmt: skip
    return table


def now(seed: Seed) -> str:
    """What a run does, or that it does nothing."""
    if seed.state != seeds.RUNNING or seed.now is None:
        return {seeds.RUNNING: "starts", seeds.STOPPED: "not running"}.get(seed.state, seed.state)
    phase = one_line(seed.now.phase) or "starts"
    turn = f", turn {seed.now.calls}" if phase == "rollout" and seed.now.calls else ""
    return f"{phase}{turn}"


def measured(shown: Sequence[Seed], panel: str, blocks: str) -> Table:
    """What each run measured: the last values, and curves of accuracies. blocks: '' for no curves."""
    votes = any("votes" in row for seed in shown for row in seed.rows)
    invalid, sharp = ("invalid_votes", "mu") if votes else ("invalid_tests", "ut")
    curves = ["accuracy", *([panel] if panel else [])]
    names = [
        name for key in curves for name in (one_line(key.removeprefix("panel/")), *([""] if blocks else []))
    ]
    table = empty("run", *names, "in band", sharp, "invalid", "accepted", "errors")
    for seed in shown:
        drawn = [cell for key in curves for cell in _curve(seed.rows, key, blocks)]
        accepted, rejected = decided(seed.rows)
        tried = NONE if accepted is None or rejected is None else f"{accepted} of {accepted + rejected}"
        table.add_row(
            Text(one_line(seed.name)), *drawn, percent(newest(seed.rows, "band_coverage")),
            number(newest(seed.rows, sharp)), percent(newest(seed.rows, invalid)), tried, errors(seed.rows),
        )  # fmt: skip
    return table


def panel_of(shown: Sequence[Seed]) -> str:
    """The first panel of the policy that any of the runs measured; '' without one."""
    keys = {key for seed in shown for row in seed.rows for key in row}
    own = [key for key in sorted(keys) if is_policy_panel(key)]
    return "panel/in_domain" if "panel/in_domain" in own else next(iter(own), "")


def newest(rows: Sequence[Row], key: str) -> float | None:
    """The last value of a metric that was measured."""
    return next((row[key] for row in reversed(rows) if row.get(key) is not None), None)


def decided(rows: Sequence[Row]) -> tuple[int | None, int | None]:
    """How many rewrites were accepted and rejected so far; None for an arm that rewrites none."""
    if not any(row.get("proposals") for row in rows):
        return None, None
    accepted = sum(min(row.get("accepted") or 0.0, MOST) for row in rows)
    tried = sum(min(one, MOST) for one in map(_tried, [{}, *rows], rows))
    return int(accepted), int(max(0.0, tried - accepted))


def _tried(before: Row, row: Row) -> float:
    """How many rewrites an iteration decided on. Where it accepted none, what the one before proposed says it."""
    rate, accepted = row.get("accept_rate"), row.get("accepted") or 0.0
    if rate is None:
        return 0.0
    if rate and accepted:
        return round(min(accepted / rate, MOST))
    return max(
        1.0, round((before.get("proposals") or 0.0) * (1.0 - (before.get("invalid_proposals") or 0.0)))
    )


def errors(rows: Sequence[Row]) -> str:
    """Episodes that crashed or timed out so far, by class."""
    found = {
        name: sum(row.get(f"status/{key}") or 0.0 for row in rows)
        for key, name in (("env_error", "crashed"), ("timeout", "timed out"))
    }
    return ", ".join(f"{count:.0f} {name}" for name, count in found.items() if count) or "none"


def seconds_of(shown: Sequence[Seed]) -> str:
    """Mean seconds an iteration by phase, of the last iterations of the runs."""
    laps = [lap for seed in shown for lap in seed.laps[-seeds.RECENT :]]
    phases: dict[str, float] = {}
    for lap in laps:
        found = lap.get("phases")
        for name in found if isinstance(found, dict) else ():
            spent = number_at(found, name, "seconds")
            if isinstance(name, str) and "/" not in name and spent is not None:
                phases[name] = phases.get(name, 0.0) + spent / len(laps)
    ordered = sorted(phases.items(), key=lambda item: -item[1])[:8]
    return "  ".join(f"{one_line(name)[:20]} {spent:.1f}" for name, spent in ordered if spent >= 0.05)


def _curve(rows: Sequence[Row], key: str, blocks: str) -> list[str]:
    value = number(newest(rows, key))
    return [value, spark([row.get(key) for row in rows], CURVE, blocks)] if blocks else [value]


def iteration(seed: Seed) -> str:
    """The iteration that goes on, or the last one; and the number of the last of all."""
    of = "?" if seed.total is None else str(seed.total)
    if seed.state == seeds.RUNNING:
        most = len(seed.rows) if seed.total is None else seed.total
        return f"{min(len(seed.rows), most)}/{of}"
    return f"{len(seed.rows) - 1}/{of}" if seed.rows else f"{NONE}/{of}"


def _pace(shown: Sequence[Seed]) -> float | None:
    found = [seed.pace for seed in shown if seed.pace is not None]
    return sum(found) / len(found) if found else None


def rate(seed: Seed) -> str:
    """Tokens that the last iteration with rollouts sampled a second."""
    rows = {row.get("iteration"): row for row in seed.rows}
    for lap in reversed(seed.laps[-seeds.RECENT :]):
        row = rows.get(number_at(lap, "iteration"))
        found = timings.tokens_per_second(lap, row) if row is not None and _timed(lap) else None
        if found is not None:
            return f"{found:,.0f}"
    return NONE


def _timed(lap: object) -> bool:
    """Whether it says how long it sampled. An arm without votes has times of its rollouts only."""
    found = [number_at(lap, "phases", name, "seconds") for name in timings.SAMPLING]
    phases = lap.get("phases") if isinstance(lap, Mapping) else None
    there = [name in phases for name in timings.SAMPLING] if isinstance(phases, Mapping) else []
    return any(there) and all(value is not None for value, here in zip(found, there, strict=True) if here)
