"""The reference engine: `model.generate` of Hugging Face, for every architecture that has it.

It reads every prompt again. It samples the same tokens as the native engine: a logits processor draws each token with
the request's own uniform numbers, and gives `generate` this token only. The native engine is tested against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.generation import GenerationMixin

from rlanything.core.types import Completion, Request
from rlanything.engines import sampling
from rlanything.engines.chat import declared_ends, stop_ids
from rlanything.engines.decode import Draft, check_request, step

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


class TransformersEngine:
    """`Engine` over a live Hugging Face causal language model on any device. Sessions and groups are ignored.

    Args:
        model: each call samples from its current weights, in evaluation mode; its mode is restored afterwards.
        tokenizer: gives the ids that end a response.
        max_batch: the most prompts of one call of `model.generate`.
        eyes: of a model that reads pictures. It never writes the token of a picture, whose log-prob is -inf.

    Raises:
        ValueError: when the model has no `generate`, for `max_batch` below 1, and for a tokenizer without ids that end
            a response.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_batch: int = 64,
        eyes: Eyes | None = None,
    ) -> None:
        if not isinstance(model, GenerationMixin):
            raise ValueError(f"{type(model).__name__} cannot generate text: use a causal language model")
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, got {max_batch}")
        self._model, self._max_batch, self._eyes = model, max_batch, eyes
        self._stops = frozenset(stop_ids(tokenizer, declared_ends(model.generation_config)))
        self._version = 0

    def sync(self, version: int) -> None:
        """Only the name is new: the live weights are used, and nothing is cached."""
        self._version = version

    def release(self, sessions: Sequence[str]) -> None:
        """Nothing to free: every prompt is read again."""

    def close(self) -> None:
        """Nothing to free."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests. Raises `ValueError` for a request that cannot be served."""
        config = self._model.config.get_text_config()
        for request in requests:
            check_request(
                request, config.vocab_size, config.max_position_embeddings, sees=self._eyes is not None
            )
            if self._eyes is not None:
                self._eyes.places(request.prompt_ids, request.images)
        drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
        waiting = sorted((d for d in drafts if not d.done), key=lambda d: len(d.request.prompt_ids))
        with _evaluating(self._model), torch.no_grad():
            for start in range(0, len(waiting), self._max_batch):
                self._run(waiting[start : start + self._max_batch])
        return [draft.completion(self._version) for draft in drafts]

    def _run(self, drafts: Sequence[Draft]) -> None:
        ids, mask = _left_padded([draft.request.prompt_ids for draft in drafts])
        ids = ids.to(self._model.device)
        names = [name for draft in drafts for name in draft.request.images]
        sampler = _Sampler(drafts, min(self._stops), self._eyes.token if self._eyes else None)
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=max(draft.request.max_tokens for draft in drafts),
            pad_token_id=min(self._stops),
        )
        self._model.generate(  # type: ignore[misc]
            ids,
            attention_mask=mask.to(ids.device),
            **(self._eyes.inputs(ids, names) if self._eyes else {}),
            generation_config=config,
            logits_processor=LogitsProcessorList([sampler]),
            stopping_criteria=StoppingCriteriaList([_AllEmitted(sampler)]),
        )


class _Sampler(LogitsProcessor):
    """Draws the next token of each row, and masks every other token for `generate`. never: an id that is not drawn."""

    def __init__(self, drafts: Sequence[Draft], filler: int, never: int | None) -> None:
        self._drafts, self._filler, self._never = drafts, filler, never
        longest = max(draft.request.max_tokens for draft in drafts)
        self._noise = sampling.uniforms([draft.request.seed for draft in drafts], longest)
        self._emitted = 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores BV that leave one token per row. `generate` calls this once per generated position."""
        needy = [
            row
            for row, draft in enumerate(self._drafts)
            if not draft.done and len(draft.ids) == self._emitted
        ]
        if needy:
            active = [self._drafts[row] for row in needy]
            logits = scores[needy].float()
            if logits.device.type != "cuda":  # the draw needs float64, which MPS lacks
                logits = logits.cpu()
            if self._never is not None:
                logits[:, self._never] = float("-inf")
            step(active, logits, self._noise[needy, self._emitted])
        tokens = [d.ids[self._emitted] if self._emitted < len(d.ids) else self._filler for d in self._drafts]
        self._emitted += 1
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, torch.tensor(tokens, device=scores.device).unsqueeze(1), 0.0)

    def ended(self) -> list[bool]:
        """Which rows are done. The forced tokens that `generate` has not returned yet are known already."""
        return [draft.done for draft in self._drafts]


class _AllEmitted(StoppingCriteria):
    """Stops a row of `generate` when its draft is done. The end-of-turn id need not be the model's eos id."""

    def __init__(self, sampler: _Sampler) -> None:
        self._sampler = sampler

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: object) -> Tensor:
        return torch.tensor(self._sampler.ended(), device=input_ids.device)


def _left_padded(prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    """Ids and attention mask (both BT) with the padding on the left, as `generate` needs it."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([(0,) * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return ids, mask


@contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    """Within it, dropout is off, and the defaults of the checkpoint's generation_config.json do not apply."""
    training, defaults = model.training, model.generation_config
    model.eval()
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.train(training)
        model.generation_config = defaults
