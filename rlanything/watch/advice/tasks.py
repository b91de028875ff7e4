"""Checks of the tasks: too easy, too hard, rewritten in vain, and episodes that failed for other reasons."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rlanything.report.health import BAND_LOW, INVALID_PROPOSALS
from rlanything.watch.advice.warned import LAST, Check, Warned, last
from rlanything.watch.tolerant import Row

NO_REWRITE = 5
"""Iterations with rewrites on trial and none accepted. In the recorded runs of `full` half of them are accepted, and an
iteration tries several, so five without one are no chance."""
SPREAD = 0.25
"""Share of the tasks with a success and a failure. Below it, three of four tasks compare no outcomes."""
ERRORS = 0.05
"""Share of episodes that crashed or timed out. They leave the statistics, and not at random: hard tasks run longer."""
GROWING = 2.0
"""Errors grow where their share is this many times that of the iterations before, and above `FEW`."""
FEW = 0.02
"""One crash in three iterations of a small run is less."""


def no_spread(rows: Sequence[Row]) -> Warned | None:
    """In most tasks all rollouts end alike, so outcomes teach nothing there."""
    spread, tasks = last(rows, "tasks_with_spread"), last(rows, "rolled_out_tasks")
    if not spread or not tasks or not sum(tasks) or sum(spread) >= SPREAD * sum(tasks):
        return None
    share = sum(spread) / sum(tasks)
    return Warned(
        "no spread",
        f"only {share:.0%} of the tasks had a success and a failure in the last {LAST} iterations",
        "more rollouts (rollout.rollouts) or a higher rollout.temperature; tasks nearer to what the policy can do",
    )


def few_in_band(rows: Sequence[Row]) -> Warned | None:
    """Most tasks are too easy or too hard."""
    band = last(rows, "band_coverage")
    if not band or fmean(band) >= BAND_LOW:
        return None
    accuracy = last(rows, "accuracy")
    what = "too easy" if accuracy and fmean(accuracy) > 0.5 else "too hard"
    return Warned(
        "outside the band",
        f"only {fmean(band):.0%} of the tasks lie between alpha_low and alpha_high; most are {what}",
        "other tasks to start from (the environment's settings), or arm `full`, which rewrites them",
    )


def no_rewrite(rows: Sequence[Row]) -> Warned | None:
    """Rewrites are tried and none is taken."""
    tried = [row for row in rows if row.get("accept_rate") is not None][-NO_REWRITE:]
    if len(tried) < NO_REWRITE or any(row.get("accepted") for row in tried):
        return None
    return Warned(
        "no rewrite",
        f"no rewrite was accepted in the last {NO_REWRITE} iterations that tried some",
        "`rlanything buffer log RUN` says why each was refused; adaptation.alpha_low and alpha_high are the band, "
        "adaptation.acceptance the rule",
    )


def bad_proposals(rows: Sequence[Row]) -> Warned | None:
    """Most proposals cannot be used."""
    bad = last(rows, "invalid_proposals")
    if not bad or fmean(bad) <= INVALID_PROPOSALS:
        return None
    return Warned(
        "invalid proposals",
        f"{fmean(bad):.0%} of the proposed tasks cannot be used",
        "`rlanything buffer log RUN` says why; another adapter (model.adapter), or adaptation.attempts",
    )


def errors(status: str, what: str, todo: str) -> Check:
    """A check of the share of episodes that end in `status`: too many, or more and more."""

    def check(rows: Sequence[Row]) -> Warned | None:
        shares = [share for row in rows if (share := _share(row, status)) is not None]
        if len(shares) < LAST:
            return None
        now, before = fmean(shares[-LAST:]), fmean(shares[:-LAST] or [0.0])
        grows = len(shares) >= 2 * LAST and now > FEW and now > GROWING * before
        if now <= ERRORS and not grows:
            return None
        more = f", {before:.1%} before" if grows else ""
        return Warned(what, f"{what}: {now:.1%} of the episodes in the last {LAST} iterations{more}", todo)

    return check


def _share(row: Row, status: str) -> float | None:
    """The share of an iteration's episodes that ended so."""
    counts = {key: value or 0.0 for key, value in row.items() if key.startswith("status/")}
    whole = sum(counts.values())
    return counts.get(f"status/{status}", 0.0) / whole if whole else None
