"""The decoding loop: feed the pending tokens, sample one token per row, until every row has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlanything.core.types import Completion, Request
from rlanything.engines import sampling
from rlanything.engines.choices import Cursor


class Draft:
    """A completion that is being sampled.

    `pending`: the tokens that the model has not read yet. `done`: no more tokens are needed. `finished`: the completion
    ended by a stop id or a complete choice, not by `max_tokens`.
    """

    __slots__ = ("_cursor", "_stops", "allowed", "done", "finished", "ids", "logprobs", "pending", "request")

    def __init__(self, request: Request, pending: Sequence[int], stops: frozenset[int]) -> None:
        self.request, self.pending, self._stops = request, list(pending), stops
        self._cursor = Cursor(request.choices) if request.choices else None
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.allowed: list[tuple[int, ...]] = []
        self.done = self.finished = False
        self.take_forced()

    def options(self) -> tuple[int, ...]:
        """The ids allowed next, sorted; empty in free decoding."""
        return self._cursor.allowed if self._cursor else ()

    def take(self, token: int, logprob: float, options: tuple[int, ...]) -> None:
        """Append a sampled token, and the forced tokens after it."""
        self._append(token, logprob, options)
        self.take_forced()

    def take_forced(self) -> None:
        """Append tokens while only one is allowed. Such a token has log-prob 0 and needs no logits."""
        while self._cursor is not None and not self.done and len(self._cursor.allowed) == 1:
            self._append(self._cursor.allowed[0], 0.0, self._cursor.allowed)

    def completion(self, version: int) -> Completion:
        """The tokens so far, as a `Completion` by weights of this version."""
        return Completion(tuple(self.ids), tuple(self.logprobs), tuple(self.allowed), self.finished, version)

    def _append(self, token: int, logprob: float, options: tuple[int, ...]) -> None:
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.pending.append(token)
        if self._cursor is None:
            self.finished = token in self._stops
        else:
            self.allowed.append(options)
            self._cursor.advance(token)
            self.finished = not self._cursor.allowed
        self.done = self.finished or len(self.ids) >= self.request.max_tokens


def check_request(request: Request, vocabulary: int, context: int, *, sees: bool = False) -> None:
    """Raise `ValueError` for a request that cannot be served.

    vocabulary: number of token ids of the model. context: number of its positions. sees: the engine was made to read
    pictures.
    """
    if request.images and not sees:
        raise ValueError(
            f"a prompt shows {len(request.images)} pictures, and this engine reads text alone; pictures need "
            "engine=transformers, vllm or vllm_servers, and a checkpoint that reads them"
        )
    if not request.prompt_ids or request.max_tokens < 1 or request.temperature < 0:
        raise ValueError(
            "a request needs a prompt, max_tokens of at least 1 and a temperature of at least 0; got "
            f"{len(request.prompt_ids)} prompt tokens, {request.max_tokens} and {request.temperature}"
        )
    for ids in (request.prompt_ids, *request.choices):
        if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
            raise ValueError(f"a prompt or choice holds a token id outside the vocabulary of {vocabulary}")
    total = len(request.prompt_ids) + request.max_tokens
    if total > context:
        raise ValueError(f"prompt and max_tokens need {total} positions; the model has {context}")


Feed = Callable[[list[Draft]], Tensor]
"""Feeds the pending tokens of drafts to the model. Returns logits BV in the order of the drafts."""


def decode(drafts: Sequence[Draft], feed: Feed) -> None:
    """Sample until all drafts are done. `feed` gets the open drafts and must read their pending tokens."""
    noise = sampling.uniforms([d.request.seed for d in drafts], max(d.request.max_tokens for d in drafts))
    open_rows = [row for row, draft in enumerate(drafts) if not draft.done]
    while open_rows:
        active = [drafts[row] for row in open_rows]
        logits = feed(active)
        uniform = noise[open_rows, [len(draft.ids) for draft in active]]
        step(active, logits, uniform)
        open_rows = [row for row in open_rows if not drafts[row].done]


def step(active: Sequence[Draft], logits: Tensor, uniform: NDArray[np.float64]) -> None:
    """Sample one token for each active draft from logits BV, on their device, and append it to the draft."""
    options, place = [draft.options() for draft in active], logits.device
    for draft in active:
        draft.pending.clear()
    temperature = torch.tensor([draft.request.temperature for draft in active])
    uniform_b = torch.from_numpy(uniform).to(place)
    for constrained in (False, True):
        rows = [row for row, option in enumerate(options) if bool(option) == constrained]
        if not rows:
            continue
        index = torch.tensor(rows, device=place)
        chosen_logits = logits if len(rows) == len(active) else logits[index]
        if constrained:
            chosen_logits = restrict(chosen_logits, [options[row] for row in rows])
        chosen, logprobs = sampling.draw(chosen_logits, uniform_b[index], temperature[rows])
        for row, choice, logprob in zip(rows, chosen.tolist(), logprobs.tolist(), strict=True):
            active[row].take(options[row][choice] if constrained else choice, logprob, options[row])


def restrict(logits: Tensor, options: Sequence[tuple[int, ...]]) -> Tensor:
    """Logits BA of the allowed ids (at least one) of each row of logits BV; -inf where a row has fewer than A."""
    width = max(len(option) for option in options)
    padded = [option + (-1,) * (width - len(option)) for option in options]
    ids = torch.tensor(padded, device=logits.device)
    return logits.gather(1, ids.clamp(min=0)).masked_fill(ids < 0, float("-inf"))
