"""What votes on steps made of a rollout: its votes, Eq. 1 and what trained, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlanything.core.signals import integrated_rewards, mean_vote
from rlanything.core.types import Episode, Judgement, Vote
from rlanything.loop.record import EpisodeRecord
from rlanything.rollouts.decoding import Texts, decode, decode_endpoint
from rlanything.rollouts.runs import NamedRun, Terms
from rlanything.rollouts.select import Chosen


def rewards(episode: Episode, terms: Terms, lam: float) -> list[float]:
    """Eq. 1 for every step, by the outcome switch of the run's arm. A step without votes has R = O."""
    verdicts = [[vote.verdict for vote in votes] for votes in votes_of(episode)]
    return integrated_rewards(episode.trajectory.outcome, verdicts, lam, use_outcome=terms.arm.outcome)


def votes_of(episode: Episode) -> list[Sequence[Vote]]:
    """The votes on every step; none on steps that were not judged."""
    missing = len(episode.trajectory.steps) - len(episode.judgements)
    return [*(judgement.votes for judgement in episode.judgements), *([()] * missing)]


def explain(run: NamedRun, chosen: Chosen) -> dict[str, Any]:
    """The parts of the page that this kind of reward model fills: `steps` for every step, and `notes`."""
    episode, terms = chosen.record.episode, run.terms
    texts = _texts(run, episode.judgements)
    paid = rewards(episode, terms, terms.arm.lambda_of(terms.signals))
    consistency = rewards(episode, terms, terms.signals.consistency_lambda)
    steps = [
        {
            "votes": [
                _vote(vote, texts, episode, step, number)
                for number, vote in enumerate(votes_of(episode)[step])
            ],
            "mean_vote": mean_vote([vote.verdict for vote in votes_of(episode)[step]]),
            "reward": paid[step],
            "consistency_reward": consistency[step],
        }
        for step in range(len(episode.trajectory.steps))
    ]
    return {"steps": steps, "notes": [texts.problem] if texts.problem else []}


def reward_of(record: EpisodeRecord, terms: Terms) -> float | None:
    """The mean reward of a rollout's steps, for the list of rollouts; None where it has no step."""
    found = rewards(record.episode, terms, terms.arm.lambda_of(terms.signals))
    return sum(found) / len(found) if found else None


def _vote(vote: Vote, texts: Texts, episode: Episode, step: int, number: int) -> dict[str, Any]:
    lesson = episode.lessons[step] if episode.lessons else None
    advantage = None if lesson is None else lesson.advantages[number]
    return {
        "verdict": vote.verdict,
        "reason": vote.reasoning,
        "reply": texts.of(vote.response_ids),
        "tokens": len(vote.response_ids),
        "advantage": advantage,
        "weight": None if lesson is None else lesson.weight,
        "trains": advantage is not None and lesson is not None and lesson.weight != 0,
    }


def _texts(run: NamedRun, judgements: Sequence[Judgement]) -> Texts:
    votes = [vote for judgement in judgements for vote in judgement.votes]
    ids = [vote.response_ids for vote in votes]
    if any(vote.logprobs or not vote.response_ids for vote in votes) or not votes:
        return decode(run, "reward", ids)
    return decode_endpoint(ids)
