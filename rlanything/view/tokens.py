"""The tokens of an iteration with their log-probs. The page loads them when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlanything.core.types import Episode, Json, Reply, Step
from rlanything.loop.record import EpisodeRecord
from rlanything.rollouts.decoding import Texts, decode
from rlanything.rollouts.page import sequences
from rlanything.rollouts.runs import NamedRun

DIGITS = 4
_MOST = 1_000_000
"""Tokens that are decoded at a time: their decoding has a limit of seconds."""


def read_ahead(run: NamedRun, records: Iterable[EpisodeRecord]) -> None:
    """Decode what the pages of these episodes show, all at once: each decoding starts a process."""
    episodes = [record.episode for record in records]
    asked = {
        "policy": [ids for e in episodes for ids in sequences(e.trajectory.steps)],
        "reward": [
            vote.response_ids for e in episodes for j in e.judgements for vote in j.votes if vote.logprobs
        ],
    }
    for role, wanted in asked.items():
        part: list[tuple[int, ...]] = []
        held = 0
        for ids in set(wanted):
            part.append(ids)
            held += len(ids)
            if held > _MOST:
                decode(run, role, part)
                part, held = [], 0
        decode(run, role, part)


class Tokens:
    """Collects the tokens of one iteration's episodes."""

    def __init__(self, run: NamedRun) -> None:
        self.run = run
        self.rollouts: dict[str, Json] = {}
        self.ids: dict[str, set[int]] = {"policy": set(), "reward": set()}
        self.problems: list[str] = []

    def add(self, slot: int, proposal: bool, episode: Episode, steps: Sequence[Mapping[str, Any]]) -> None:
        """An episode of a slot, and the steps of its page."""
        name = f"{slot}/{int(proposal)}/{episode.trajectory.rollout}"
        votes = [[self._sampled("reward", vote) for vote in j.votes] for j in episode.judgements]
        self.rollouts[name] = {
            "steps": [
                {"prompt": page["prompt"], "read": page["prompt_tokens"], **self._sampled("policy", step)}
                | {"allowed": [len(some) for some in step.allowed]}
                for step, page in zip(episode.trajectory.steps, steps, strict=True)
            ],
            "votes": votes,
        }

    def page(self) -> dict[str, Json]:
        """rollouts: by slot/proposal/rollout. texts: by role and id, the text of every token that was sampled."""
        texts = {role: self._texts(role, sorted(ids)) for role, ids in self.ids.items()}
        return {"rollouts": self.rollouts, "texts": texts}

    def _sampled(self, role: str, reply: Reply | Step) -> dict[str, Json]:
        if reply.logprobs:  # replies of endpoints have bytes for ids, and no log-probs
            self.ids[role].update(reply.response_ids)
        return {"ids": list(reply.response_ids), "logprobs": [round(x, DIGITS) for x in reply.logprobs]}

    def _texts(self, role: str, ids: Sequence[int]) -> dict[str, str | None]:
        found: Texts = decode(self.run, role, [(one,) for one in ids])
        self.problems += [found.problem] if ids and found.problem else []
        return {str(one): found.of((one,)) for one in ids}
