"""What an iteration reports about itself: learning, votes (section 6 of docs/paper_map.md), adaptation, statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import nan

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import Config
from rlanything.core.coding_signals import CodingCounts, counts
from rlanything.core.signals import mean_vote
from rlanything.core.theory import empirical_precision, force_ratio, precision, precision_bound
from rlanything.core.types import EventKind, ScoredJudgements, Status
from rlanything.loop.group import Group


def iteration_metrics(
    config: Config,
    groups: Sequence[Group],
    events: Sequence[Event],
    buffer: TaskBuffer,
    policy_lessons: int,
    reward_lessons: Sequence[ScoredJudgements],
) -> dict[str, float]:
    """Flat name -> number; nan where nothing was measured."""
    heads = [g for g in groups if g.proposal is None]
    measured = [g.accuracy for g in heads if g.accuracy is not None]
    low, high = config.adaptation.alpha_low, config.adaptation.alpha_high
    statuses = Counter(t.status for g in groups for t in g.trajectories)
    lengths = [len(t.steps) for g in groups for t in g.trajectories if t.counts]
    steps = [s for g in groups for t in g.trajectories for s in t.steps]
    return {
        "accuracy": _mean(measured),
        "band_coverage": _mean([float(low <= a <= high) for a in measured]),
        "episode_steps": _mean([float(n) for n in lengths]),
        "invalid_actions": _mean([float(not s.valid) for s in steps]),
        "policy_trajectories": float(policy_lessons),
        "reward_steps": float(sum(len(lesson.judgements) for lesson in reward_lessons)),
        **{f"status/{status.value}": float(statuses[status]) for status in Status},
        **adaptation_metrics(events, buffer),
    }


def adaptation_metrics(events: Sequence[Event], buffer: TaskBuffer) -> dict[str, float]:
    """Counts of this iteration's events, and the accepted tasks so far."""
    kinds = Counter(e.kind for e in events)
    decided = kinds[EventKind.ACCEPTED] + kinds[EventKind.REJECTED]
    asked = kinds[EventKind.PROPOSED] + kinds[EventKind.INVALID]
    return {
        "accepted_total": float(buffer.accepted),
        "accepted": float(kinds[EventKind.ACCEPTED]),
        "accept_rate": kinds[EventKind.ACCEPTED] / decided if decided else nan,
        "proposals": float(asked),
        "invalid_proposals": kinds[EventKind.INVALID] / asked if asked else nan,
    }


def vote_metrics(groups: Sequence[Group], m: int) -> dict[str, float]:
    """Health of the reward model: p+, p-, mu, A and its bound, ||f+||/||f-||, invalid and unanimous rates."""
    judged = [
        (t.outcome, [v.verdict for v in judgement.votes])
        for g in groups
        for t, judgements in zip(g.trajectories, g.judgements, strict=True)
        for judgement in judgements
    ]
    if not judged:
        return {}
    votes = [(outcome, v) for outcome, step in judged for v in step]
    valid = [(outcome, v) for outcome, v in votes if v is not None]
    rates = precision(valid)
    success = [mean_vote(step) for outcome, step in judged if outcome == 1]
    failure = [mean_vote(step) for outcome, step in judged if outcome == -1]
    return {
        "votes": float(len(votes)),
        "mean_vote": _mean([float(v) for _, v in valid]),
        "p_plus": rates.p_plus,
        "p_minus": rates.p_minus,
        "mu": rates.mu,
        "precision": empirical_precision(success, failure),
        "precision_bound": precision_bound(rates.mu, m),
        "force_ratio": force_ratio(valid),
        "invalid_votes": 1.0 - len(valid) / len(votes),
        "unanimous": _mean([float(set(step) in ({1}, {-1})) for _, step in judged]),
    }


def unit_test_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Health of a test writer: tests written; shares of unreadable, of right and of telling ones."""
    tables = [g.examined.tables for g in groups if g.examined is not None]
    readable = [known for table in tables for known in table.readable]
    if not readable:
        return {}
    tried = [counts(t.dataset, t.generated, t.readable) for t in tables if t.dataset]
    rates = sum(tried, CodingCounts()).rates
    return {
        "tests": float(len(readable)),
        "invalid_tests": 1.0 - sum(readable) / len(readable),
        "ut": rates["ut"],
        "detect": rates["detect"],
    }


def warnings(history: Sequence[Mapping[str, float | None]], patience: int = 3) -> list[str]:
    """What is wrong with a run, in words, from its metrics so far (None: not measured in that iteration)."""

    def values(key: str) -> list[float]:
        return [value for row in recent if (value := row.get(key)) is not None and value == value]

    recent = history[-patience:]
    if len(recent) < patience:
        return []
    found = []
    mu, trained = values("mu"), values("policy_trajectories")
    if len(mu) == patience and max(mu) <= 1.0:
        found.append(
            f"mu = {mu[-1]:.2f} has been at or below 1 for {patience} iterations: the reward model's votes "
            "carry no information (Theorem 1), and training on them pulls the policy down. Train the reward model "
            "on the current policy's rollouts, set signals.reward_balance to outcome, or lower signals.lambda."
        )
    for what, missing in (("votes", "verdict"), ("tests", "test that can be read")):
        invalid = values(f"invalid_{what}")
        if len(invalid) == patience and min(invalid) > 0.5:
            where = "model.verdict_format and the judge template" if what == "votes" else "the judge template"
            found.append(f"{invalid[-1]:.0%} of the {what} hold no {missing}: check {where}.")
    if len(trained) == patience and max(trained) == 0.0:
        found.append(
            f"no task fell inside the policy filter for {patience} iterations: the policy learns nothing. Check "
            "signals.policy_min/policy_max and the difficulty of the tasks."
        )
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
