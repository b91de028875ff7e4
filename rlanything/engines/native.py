"""The embedded default engine: samples from a copy of the training module's Qwen2 or Llama weights, on a CPU.

It is fast for four reasons. One fused forward pass serves all rows (`forward`). Equal prompts and shared trunks are
read once (`prompt_trunks`, `cache`). Sessions keep their cache from turn to turn (`sessions`). Tokens that constrained
decoding forces take no forward pass of their own (`decode`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.core.types import Completion, Request
from rlanything.engines.cache import Branches, Trunks
from rlanything.engines.chat import declared_ends, stop_ids
from rlanything.engines.decode import Draft, check_request, decode
from rlanything.engines.forward import Rotary
from rlanything.engines.prompt_trunks import Chunk, chunks
from rlanything.engines.sessions import Sessions
from rlanything.engines.weights import Weights, fuse

SHRINK = 0.5
"""When at most this share of the rows is still open, the open rows are copied into a smaller batch."""


class NativeEngine:
    """`Engine` over the live weights of a `Qwen2ForCausalLM` or `LlamaForCausalLM`.

    Args:
        model: the module that is being trained; its weights are copied at construction and at every `sync`, as
            float32. So log-probs are the module's to 1e-5 where it is float32 too.
        tokenizer: gives the ids that end a response.
        max_batch: the most rows that are decoded together.

    Raises:
        ValueError: for an architecture or device that `forward` does not implement (the message names it), for
            `max_batch` below 1, and for a tokenizer without ids that end a response.

    Sessions: when a request continues a known session, only its new tokens are fed. The tokens are compared every time.
    From the first different token on, the prompt is read again. So a mismatch costs time, never correctness.
    Sessions that start in one call form batches, and each batch advances together. When a later call names only some
    sessions of a batch, the others are released. While more than `8 * max_batch` sessions are kept, the batch that was
    used least recently is released. `release` frees sessions by name.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, max_batch: int = 256
    ) -> None:
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, got {max_batch}")
        self._model, self._max_batch = model, max_batch
        self._stops = frozenset(stop_ids(tokenizer, declared_ends(model.generation_config)))
        self._weights: Weights
        self._rotary: Rotary
        self._sessions = Sessions(limit=8 * max_batch)
        self.sync(version=0)

    def sync(self, version: int) -> None:
        """Copy the module's weights as they are now; drops every session's cache."""
        self._version = version
        self._sessions.clear()
        self._weights = fuse(self._model)
        self._rotary = Rotary(self._weights)

    def close(self) -> None:
        """Drop every session's cache."""
        self._sessions.clear()

    def release(self, sessions: Iterable[str]) -> None:
        """Drop the caches of these sessions; unknown names are ignored."""
        self._sessions.release(sessions)

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests.

        Raises:
            ValueError: for a request that cannot be served: an empty prompt, a token id outside the vocabulary,
                a negative temperature, `max_tokens` below 1, more tokens than the model has positions for,
                unusable choices, or a session named twice in one call.
        """
        for request in requests:
            check_request(request, len(self._weights.embed), self._weights.context)
        drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
        fresh = self._continue_sessions(drafts)
        in_session = [draft for draft in fresh if draft.request.session]
        alone = [draft for draft in fresh if not draft.request.session]
        for chunk in chunks(in_session, self._max_batch):
            branches = self._run(self._open(chunk), chunk.drafts)
            self._sessions.add(chunk.drafts, branches)
        for chunk in chunks(alone, self._max_batch):
            self._run(self._open(chunk), chunk.drafts)
        return [draft.completion(self._version) for draft in drafts]

    def _continue_sessions(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Serve the requests that extend a cached session; return the others."""
        batches, fresh = self._sessions.resume(drafts)
        for batch in batches:
            self._run(batch.branches, batch.drafts)
            batch.record()
        return fresh

    def _open(self, chunk: Chunk) -> Branches:
        """Rows for the drafts of a chunk. What follows the trunk is read once for equal prompts, then copied."""
        trunks = Trunks.read(self._weights, self._rotary, chunk.trunks)
        branches = Branches(self._rotary, trunks, np.array(chunk.trunk_of), np.array(chunk.visible))
        branches.read(chunk.suffixes)
        copied = len(chunk.suffixes) < len(chunk.drafts)
        return branches.select(np.array(chunk.prompt_of)) if copied else branches

    def _run(self, branches: Branches, drafts: Sequence[Draft]) -> Branches:
        """Decode drafts, whose pending tokens follow the cached tokens of the branches. Returns the same branches."""
        decode(drafts, _Feeder(branches, drafts).feed)
        return branches


class _Feeder:
    """Feeds open drafts to their rows. Once enough rows have ended (`SHRINK`), it goes on with a smaller copy."""

    def __init__(self, branches: Branches, drafts: Sequence[Draft]) -> None:
        self._branches = branches
        self._row_of = {id(draft): row for row, draft in enumerate(drafts)}

    def feed(self, active: list[Draft]) -> Tensor:
        """Logits BV of the active drafts after their pending tokens. The drafts must be in the order of the rows."""
        if len(active) <= SHRINK * len(self._branches):
            rows = np.array([self._row_of[id(draft)] for draft in active])
            self._branches = self._branches.select(rows)
            self._row_of = {id(draft): row for row, draft in enumerate(active)}
        tokens: list[Sequence[int]] = [()] * len(self._branches)
        for draft in active:
            tokens[self._row_of[id(draft)]] = draft.pending
        return self._branches.feed(tokens)
