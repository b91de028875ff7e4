"""Metrics of votes (section 6 of docs/paper_map.md), and the warnings that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.signals import mean_vote
from rlanything.core.theory import (
    Forces,
    empirical_precision,
    force_ratio,
    forces,
    one_sided_share,
    precision,
    precision_bound,
)
from rlanything.loop.group import Group
from rlanything.loop.metrics import PATIENCE, last_values, mean


def vote_metrics(groups: Sequence[Group], m: int) -> dict[str, float]:
    """p+, p-, mu, A and its bound, shares of invalid votes and unanimous steps; empty where no step was judged.

    The mean vote is of the buffer's tasks, without proposals, so that it can be compared with the metric `accuracy`.
    """
    asked = [
        (e.trajectory.outcome, j.votes) for group in groups for e in group.episodes for j in e.judgements
    ]
    if not asked:
        return {}
    judged = [(outcome, [v.verdict for v in step]) for outcome, step in asked]
    votes = [(outcome, v) for outcome, step in judged for v in step]
    valid = [(outcome, v) for outcome, v in votes if v is not None]
    on_tasks = [
        v.verdict
        for g in groups
        if g.proposal is None
        for e in g.episodes
        for j in e.judgements
        for v in j.votes
    ]
    rates = precision(valid)
    readable = [(outcome, step) for outcome, step in judged if any(v is not None for v in step)]
    success = [mean_vote(step) for outcome, step in readable if outcome == 1]
    failure = [mean_vote(step) for outcome, step in readable if outcome == -1]
    return {
        "votes": float(len(votes)),
        "reward_tokens": float(sum(len(v.response_ids) for _, step in asked for v in step)),
        "mean_vote": mean([float(v) for v in on_tasks if v is not None]),
        "p_plus": rates.p_plus,
        "p_minus": rates.p_minus,
        "mu": rates.mu,
        "precision": empirical_precision(success, failure),
        "precision_bound": precision_bound(rates.mu, m),
        "invalid_votes": 1.0 - len(valid) / len(votes),
        "unanimous": mean([float(set(step) in ({1}, {-1})) for _, step in judged]),
    }


def force_metrics(groups: Sequence[Group], lam: float) -> dict[str, float]:
    """Theorem 2's ratio for the median task, and the share of one-sided tasks. lam: the reward model's lambda."""
    tasks = [task_forces(group, lam) for group in groups]
    return {"task_force_ratio": force_ratio(tasks), "one_sided_tasks": one_sided_share(tasks)}


def task_forces(group: Group, lam: float) -> Forces:
    """Theorem 2's norms for the task of a group."""
    votes = [
        (episode.trajectory.outcome, vote.verdict)
        for episode in group.episodes
        for judgement in episode.judgements
        for vote in judgement.votes
        if vote.verdict is not None
    ]
    return forces(group.outcomes, votes, lam)


def warnings(history: Sequence[Mapping[str, float | None]], patience: int = PATIENCE) -> list[str]:
    """Messages about problems of the votes in the last `patience` iterations."""
    found = []
    mu, invalid = last_values(history, "mu", patience), last_values(history, "invalid_votes", patience)
    if mu and max(mu) <= 1.0:
        found.append(
            f"mu = {mu[-1]:.2f} has been at or below 1 for {patience} iterations: the reward model's votes "
            "carry no information (Theorem 1), and training on them pulls the policy down. Train the reward model "
            "on the current policy's rollouts, set signals.reward_balance to outcome, or lower signals.lambda."
        )
    if invalid and min(invalid) > 0.5:
        found.append(
            f"{invalid[-1]:.0%} of the votes hold no verdict: check model.verdict_format and the judge template."
        )
    return found
