"""Warnings about how each arm trained, from its metrics: what went wrong, when, and what it means.

One function per check. It gets the metrics of one seed and returns a sentence, or '' where there is nothing to warn of.
A metric that was not measured gives no warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlanything.report.formatting import code
from rlanything.report.results.curves import RECENT, Curves, Run, Series
from rlanything.report.results.flattery import flattery

MU_SHARE = 0.2
"""mu <= 1 in more than this share of the iterations is worth a warning."""
INVALID_PROPOSALS = 0.5
"""Share of the proposals that cannot be used."""
RIGHT_TESTS = 0.05
HARMLESS = 0.25
"""detect below this share of ut: tests that are right but that nearly every program passes."""
BAND_LOW = 0.25
"""Share of the tasks between alpha_low and alpha_high."""
FORCE = (0.1, 10.0)
ONE_SIDED = 0.5
KL = 0.1
"""Distance that the policy moves in one iteration. A step inside the clip range of 0.2 moves a tenth of it."""
IDLE = 0.2
CONTEXT_FULL = 0.05
"""Share of episodes that were cut off because their prompt did not fit. They count as failures of the policy."""
CAPPED = 0.01
"""More ratios of the trainer's to the sampler's probabilities above the cap, or outside of the mask: the two disagree
(docs/engines.md)."""


def warnings(curves: Curves) -> dict[str, list[str]]:
    """arm -> sentences, the seed named in each; an arm without trouble has an empty list."""
    return {
        arm: [
            f"seed {seed}: {text}" for seed, run in runs.items() for check in CHECKS if (text := check(run))
        ]
        for arm, runs in curves.items()
    }


def lines(curves: Curves) -> list[str]:
    """One sentence for each warning of each run; the arm stands in a Markdown code span."""
    return [f"{code(arm)}, {text}" for arm, texts in warnings(curves).items() for text in texts]


def at_chance(run: Run) -> str:
    """mu <= 1, while Theorem 1 needs mu > 1."""
    mu = run.get("mu", {})
    low = [i for i, value in mu.items() if value <= 1.0]
    if not mu or len(low) <= MU_SHARE * len(mu):
        return ""
    return (
        f"mu was at most 1 in {len(low)} of {len(mu)} iterations (last {RECENT}: {_end(mu):.2f}): a reward model "
        "at chance; more votes do not help it and it can drive the loop downwards (Theorem 1)."
    )


def wrong_tests(run: Run) -> str:
    """Few tests are right. Such tests teach the policy little, or what is wrong (`signals.written`)."""
    right = run.get("ut", {})
    if not right or _end(right) >= RIGHT_TESTS:
        return ""
    return (
        f"only {_end(right):.0%} of the tests were right at the end: with `signals.written: right` they tell the "
        "policy next to nothing, with `all` they mislead it."
    )


def harmless(run: Run) -> str:
    """A right test that rejects no wrong program is worth nothing, and easy to write."""
    right, sharp = run.get("ut", {}), run.get("detect", {})
    if not right or not sharp or _end(right) < RIGHT_TESTS or _end(sharp) >= HARMLESS * _end(right):
        return ""
    return (
        f"{_end(right):.0%} of the tests were right at the end, but only {_end(sharp):.0%} also reject every wrong "
        "program: the reward model may be learning tests that anything passes."
    )


def invalid_proposals(run: Run) -> str:
    """Most proposals of the adapter cannot be used. The metric is a share of an iteration's proposals."""
    asked = run.get("proposals", {})
    bad = sum(share * asked.get(i, 0.0) for i, share in run.get("invalid_proposals", {}).items())
    made = sum(asked.values())
    if bad <= INVALID_PROPOSALS * made:
        return ""
    return f"{bad:.0f} of {made:.0f} proposals were invalid: the adapter seldom writes a usable task."


def stalled(run: Run) -> str:
    """Adaptation accepted tasks, but none in the last quarter of the run."""
    total = list(run.get("accepted_total", {}).values())
    quarter = len(total) // 4
    if quarter == 0 or total[-1] == 0 or total[-1] > total[-1 - quarter]:
        return ""
    return f"no task was accepted in the last {quarter} iterations ({total[-1]:.0f} before)."


def out_of_band(run: Run) -> str:
    """Few tasks lie between alpha_low and alpha_high; the others teach little."""
    coverage = run.get("band_coverage", {})
    if not coverage or _end(coverage) >= BAND_LOW:
        return ""
    return (
        f"only {_end(coverage):.0%} of the tasks lay between alpha_low and alpha_high at the end: "
        "most are too easy or too hard to teach."
    )


def one_sided(run: Run) -> str:
    """The median task teaches the reward model from successes or from failures alone; Theorem 2 needs both."""
    alone, ratio = run.get("one_sided_tasks", {}), run.get("task_force_ratio", {})
    if alone and _end(alone) > ONE_SIDED:
        return (
            f"{_end(alone):.0%} of the tasks were one-sided at the end: the reward model saw no success, or no "
            "failure, of theirs that it could learn from (Theorem 2)."
        )
    end = _end(ratio) if ratio else 1.0
    if FORCE[0] <= end <= FORCE[1]:
        return ""
    side = "successes" if end > FORCE[1] else "failures"
    return (
        f"||f+|| / ||f-|| of the median task was {end:.2g} at the end: the reward model learned almost only from "
        f"{side} (Theorem 2)."
    )


def flattering(run: Run) -> str:
    """The votes rise while success does not: the policy may be exploiting its reward model."""
    found = flattery(run.get("mean_vote", {}), run.get("accuracy", {}))
    if found is None:
        return ""
    return (
        f"the mean vote rose by {found.rise:.2f} while accuracy changed by {100 * found.gain:+.1f} points, from "
        f"iteration {found.since} on: the policy may be learning to please the reward model."
    )


def idle(run: Run) -> str:
    """Iterations in which no task passed the policy's data filter."""
    rows = run.get("policy_trajectories", {})
    empty = [i for i, value in rows.items() if value == 0]
    if len(empty) <= IDLE * len(rows):
        return ""
    return f"the policy had nothing to learn from in {len(empty)} of {len(rows)} iterations (signals.policy_min/max)."


def crashed(run: Run) -> str:
    """Episodes that crashed or timed out say nothing about the policy."""
    lost = sum(sum(run.get(key, {}).values()) for key in ("status/env_error", "status/timeout"))
    return f"{lost:.0f} episodes crashed or timed out and were left out." if lost else ""


def diverged(run: Run) -> str:
    """A policy that moves far in one iteration."""
    kl = run.get("policy/kl", {})
    worst = max(kl, key=lambda i: kl[i]) if kl else 0
    if not kl or kl[worst] <= KL:
        return ""
    return f"the policy moved by a KL of {kl[worst]:.2f} in iteration {worst}: its learning rate may be too high."


def mostly(key: str, limit: float, what: str) -> Callable[[Run], str]:
    """A check of a share whose mean over the run must not be above `limit`."""

    def check(run: Run) -> str:
        series = run.get(key, {})
        mean = sum(series.values()) / len(series) if series else 0.0
        return f"{mean:.0%} {what} (last {RECENT}: {_end(series):.0%})." if mean > limit else ""

    return check


def aged(check: Callable[[Run], str]) -> Callable[[Run], str]:
    """A check of ratios, which says as well when older weights than those that learn have sampled."""

    def checked(run: Run) -> str:
        text, ages = check(run), run.get("staleness", {})
        old = bool(ages) and _end(ages) > 0
        return f"{text} The samples were an iteration old (train.staleness)." if text and old else text

    return checked


def _end(series: Series) -> float:
    return _mean(list(series.values())[-RECENT:])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


CHECKS: Sequence[Callable[[Run], str]] = (
    at_chance,
    mostly("invalid_votes", 0.1, "of the votes had no verdict: the reward model's format slips"),
    mostly("unanimous", 0.9, "of the steps had unanimous votes, which do not train the reward model"),
    one_sided,
    flattering,
    mostly("invalid_tests", 0.1, "of the replies held no readable test: the reward model's format slips"),
    wrong_tests,
    harmless,
    out_of_band,
    idle,
    invalid_proposals,
    stalled,
    crashed,
    mostly(
        "context_full",
        CONTEXT_FULL,
        "of the episodes were cut off and count as failures, because the policy's context was full (engine.context, "
        "rollout.max_tokens)",
    ),
    diverged,
    aged(
        mostly(
            "policy/ratio_capped",
            CAPPED,
            "of the policy's importance ratios were cut at learn.importance_cap",
        )
    ),
    mostly(
        "reward/ratio_capped",
        CAPPED,
        "of the reward model's importance ratios were cut at learn.importance_cap",
    ),
    aged(
        mostly("policy/ratio_masked", CAPPED, "of the policy's tokens taught nothing (learn.importance_mask)")
    ),
    mostly(
        "reward/ratio_masked", CAPPED, "of the reward model's tokens taught nothing (learn.importance_mask)"
    ),
)
"""In the order in which their warnings are shown."""
