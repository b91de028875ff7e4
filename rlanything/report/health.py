"""Warnings in words about how each arm trained, from its metrics: what went wrong, when, and what it means.

One function per check; each sees one seed's run and answers a sentence or ''. Thresholds are named constants.
A check of what was not measured (votes where tests are written, tests where votes are given) has nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rlanything.report.records import Curves, Run, Series

RECENT = 5
"""Iterations that count as 'the end' of a run."""
MU_SHARE = 0.2
"""mu <= 1 in more than this share of the iterations is worth a warning."""
INVALID_VOTES = 0.1
INVALID_PROPOSALS = 0.5
UNANIMOUS = 0.9
INVALID_TESTS = 0.1
RIGHT_TESTS = 0.05
TOOTHLESS = 0.25
"""Detect below this share of UT: tests that are right, and that nearly every program passes."""
BAND_LOW = 0.25
FORCE = (0.1, 10.0)
KL = 0.1
IDLE = 0.2
PLEASING = 0.2
"""Rise of the mean vote (range -1 to 1) that accuracy does not share."""


def warnings(curves: Curves) -> dict[str, list[str]]:
    """arm -> sentences, the seed named in each; an arm without trouble has an empty list."""
    return {
        arm: [
            f"seed {seed}: {text}" for seed, run in runs.items() for check in CHECKS if (text := check(run))
        ]
        for arm, runs in curves.items()
    }


def at_chance(run: Run) -> str:
    """Theorem 1 needs mu > 1."""
    mu = run.get("mu", {})
    low = [i for i, value in mu.items() if value <= 1.0]
    if not mu or len(low) <= MU_SHARE * len(mu):
        return ""
    return (
        f"mu was at most 1 in {len(low)} of {len(mu)} iterations (last {RECENT}: {_end(mu):.2f}): a reward model "
        "at chance; more votes do not help it and it can drive the loop downwards (Theorem 1)."
    )


def invalid_votes(run: Run) -> str:
    """Votes without a verdict are left out, so many of them mean few votes."""
    return _high(
        run, "invalid_votes", INVALID_VOTES, "of the votes had no verdict: the reward model's format slips"
    )


def unanimous(run: Run) -> str:
    """A unanimous step does not train the reward model."""
    return _high(
        run, "unanimous", UNANIMOUS, "of the steps had unanimous votes, which do not train the reward model"
    )


def invalid_tests(run: Run) -> str:
    """A reply without a test earns nothing and says nothing about a program."""
    return _high(
        run,
        "invalid_tests",
        INVALID_TESTS,
        "of the replies held no readable test: the reward model's format slips",
    )


def wrong_tests(run: Run) -> str:
    """Only a test that right programs pass counts in the policy's reward."""
    right = run.get("ut", {})
    if not right or _end(right) >= RIGHT_TESTS:
        return ""
    return f"only {_end(right):.0%} of the tests were right at the end: they tell the policy next to nothing."


def toothless(run: Run) -> str:
    """A right test that rejects no wrong program is worth nothing, and easy to write."""
    right, sharp = run.get("ut", {}), run.get("detect", {})
    if not right or not sharp or _end(right) < RIGHT_TESTS or _end(sharp) >= TOOTHLESS * _end(right):
        return ""
    return (
        f"{_end(right):.0%} of the tests were right at the end, but only {_end(sharp):.0%} also reject every wrong "
        "program: the reward model may be learning tests that anything passes."
    )


def invalid_proposals(run: Run) -> str:
    """An adapter that writes nonsense adapts nothing. In the metrics it is a share of the iteration's proposals."""
    asked = run.get("proposals", {})
    bad = sum(share * asked.get(i, 0.0) for i, share in run.get("invalid_proposals", {}).items())
    made = sum(asked.values())
    if bad <= INVALID_PROPOSALS * made:
        return ""
    return f"{bad:.0f} of {made:.0f} proposals were invalid: the adapter seldom writes a usable task."


def stalled(run: Run) -> str:
    """Adaptation that was at work and then accepted nothing in the last quarter of the run."""
    total = list(run.get("accepted_total", {}).values())
    quarter = len(total) // 4
    if quarter == 0 or total[-1] == 0 or total[-1] > total[-1 - quarter]:
        return ""
    return f"no task was accepted in the last {quarter} iterations ({total[-1]:.0f} before)."


def out_of_band(run: Run) -> str:
    """Tasks outside of (alpha_low, alpha_high) teach little."""
    coverage = run.get("band_coverage", {})
    if not coverage or _end(coverage) >= BAND_LOW:
        return ""
    return (
        f"only {_end(coverage):.0%} of the tasks lay between alpha_low and alpha_high at the end: "
        "most are too easy or too hard to teach."
    )


def one_sided(run: Run) -> str:
    """Theorem 2: the reward model's objective must not be all successes or all failures."""
    ratio = run.get("force_ratio", {})
    end = _end(ratio) if ratio else 1.0
    if FORCE[0] <= end <= FORCE[1]:
        return ""
    side = "successes" if end > FORCE[1] else "failures"
    return f"||f+|| / ||f-|| was {end:.2g} at the end: the reward model learned almost only from {side} (Theorem 2)."


def pleasing(run: Run) -> str:
    """The votes rise while success does not: the policy has learned to please its judge."""
    vote, accuracy = run.get("mean_vote", {}), run.get("accuracy", {})
    if len(vote) < 2 * RECENT or len(accuracy) < 2 * RECENT:
        return ""
    rise, gain = _end(vote) - _start(vote), _end(accuracy) - _start(accuracy)
    if rise < PLEASING or gain > 0:
        return ""
    return (
        f"the mean vote rose by {rise:.2f} while accuracy changed by {100 * gain:+.1f} points: "
        "the policy may be learning to please the reward model."
    )


def idle(run: Run) -> str:
    """Iterations in which no task passed the policy's data filter."""
    rows = run.get("policy_trajectories", {})
    empty = [i for i, value in rows.items() if value == 0]
    if len(empty) <= IDLE * len(rows):
        return ""
    return f"the policy had nothing to learn from in {len(empty)} of {len(rows)} iterations (signals.policy_min/max)."


def crashed(run: Run) -> str:
    """Episodes that say nothing about the policy."""
    lost = sum(sum(run.get(key, {}).values()) for key in ("status/env_error", "status/timeout"))
    return f"{lost:.0f} episodes crashed or timed out and were left out." if lost else ""


def diverged(run: Run) -> str:
    """Losses that are not finite, or a policy that moves far in one iteration."""
    for key in ("policy/loss", "reward/loss"):
        if any(math.isinf(value) for value in run.get(key, {}).values()):
            return f"{key} was infinite."
    kl = run.get("policy/kl", {})
    worst = max(kl, key=lambda i: kl[i]) if kl else 0
    if not kl or kl[worst] <= KL:
        return ""
    return f"the policy moved by a KL of {kl[worst]:.2f} in iteration {worst}: its learning rate may be too high."


CHECKS: Sequence[Callable[[Run], str]] = (
    at_chance, invalid_votes, unanimous, one_sided, pleasing, invalid_tests, wrong_tests, toothless, out_of_band, idle,
    invalid_proposals, stalled, crashed, diverged,
)  # fmt: skip


def _high(run: Run, key: str, limit: float, what: str) -> str:
    series = run.get(key, {})
    mean = sum(series.values()) / len(series) if series else 0.0
    return f"{mean:.0%} {what} (last {RECENT}: {_end(series):.0%})." if mean > limit else ""


def _start(series: Series) -> float:
    return _mean(list(series.values())[:RECENT])


def _end(series: Series) -> float:
    return _mean(list(series.values())[-RECENT:])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
