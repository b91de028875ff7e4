"""The protocol `Engine` over vLLM. It samples the tokens that the other engines sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.core.types import Completion, Request
from rlanything.engines.chat import stop_ids
from rlanything.engines.decode import Draft, check_request
from rlanything.engines.vllm import probe, support
from rlanything.engines.vllm.asking import ask, take
from rlanything.engines.vllm.budget import GIB, SHARED
from rlanything.engines.vllm.instance import Instance, Settings

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class VllmEngine:
    """`Engine` over the weights of a live Hugging Face model, which vLLM has a copy of.

    vLLM starts when the engine is first asked. Sessions and groups are what its prefix cache finds.

    Args:
        model: the module that is being trained; vLLM takes over its weights at the start and at every `sync`.
        tokenizer: gives the ids that end a response.
        max_batch: the most requests that are decoded together.
        cache_gib: memory for keys and values, GiB, of all engines of the process together.
        max_batched_tokens: the most tokens of one forward pass; longer prompts are read in parts.
        dtype: number format of the copy, `float32` or `bfloat16`; `auto`: that of the module.
        prefix_caching: whether common beginnings of prompts are read once.
        eager: without CUDA graphs. They make a GPU faster and take memory.
        tolerance: the largest difference of log-probs between vLLM and the module; None: by `dtype`.

    Raises:
        ValueError: for values that are not allowed, a tokenizer without ids that end a response, heads of a size that
            vLLM does not have, and when vLLM is not installed in the version that is needed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_batch: int = 256,
        cache_gib: float = 1.0,
        max_batched_tokens: int = 8192,
        dtype: str = "auto",
        prefix_caching: bool = True,
        eager: bool = True,
        tolerance: float | None = None,
    ) -> None:
        support.check_settings(
            max_batch, cache_gib, max_batched_tokens, dtype, prefix_caching, eager, tolerance
        )
        support.check_installed()
        self._config = config = model.config.get_text_config()
        support.check_heads(head_size(model), model.device.type, "Use engine=native or engine=transformers")
        self._model, self._stops = model, frozenset(stop_ids(tokenizer))
        self._dtype = DTYPES.get(dtype, model.dtype)
        self._context: int = config.max_position_embeddings
        self._cache = int(cache_gib * GIB)
        self._tolerance = probe.TOLERANCE[self._dtype] if tolerance is None else tolerance
        self._starting = (max_batch, max_batched_tokens, prefix_caching, eager)
        self._instance: Instance | None = None
        self._version = 0
        self._closed = False
        SHARED.join(self)

    def sync(self) -> None:
        """Take over the module's weights, and compare log-probs. Before the start there is nothing to do.

        Caches of the old weights are not used again. Raises `WeightsMismatch`.
        """
        if self._instance is not None:
            self._load(self._instance)

    def release(self, sessions: Sequence[str]) -> None:
        """Nothing to free: the prefix cache drops what was used least recently."""

    def close(self) -> None:
        """Stop vLLM and give back its memory."""
        self._stop()
        self._closed = True
        SHARED.leave(self)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests.

        Raises:
            ValueError: for a request that cannot be served, for weights that have diverged, when vLLM cannot run the
                model, and when the engine is closed.
            WeightsMismatch: when vLLM starts and does not have the module's weights.
        """
        if self._closed:
            raise ValueError("the engine is closed")
        for request in requests:
            check_request(request, self._config.vocab_size, self._context)
        drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
        waiting = [draft for draft in drafts if not draft.done]
        if waiting:
            self._sample(self._started(), waiting)
        return [draft.completion() for draft in drafts]

    def _sample(self, instance: Instance, drafts: Sequence[Draft]) -> None:
        asked = [ask(draft, self._stops, self._config.vocab_size) for draft in drafts]
        try:
            sampled = instance.generate(asked, f"weights {self._version}")
        except BaseException:
            self._stop()  # it may hold requests that were not finished; the next call starts anew
            raise
        for draft, (ids, logprobs) in zip(drafts, sampled, strict=True):
            take(draft, ids, logprobs)

    def _started(self) -> Instance:
        if self._instance is None:
            SHARED.leave(self)
            SHARED.join(self)
            part = SHARED.take(self, self._cache, self._context * token_bytes(self._model, self._dtype))
            batch, tokens, caching, eager = self._starting
            settings = Settings(
                device=self._model.device.type,
                dtype=str(self._dtype).removeprefix("torch."),
                context=self._context,
                max_batch=batch,
                max_batched_tokens=tokens,
                cache_bytes=part,
                prefix_caching=caching,
                eager=eager,
            )
            self._instance = Instance(self._model, settings)
            self._load(self._instance)
        return self._instance

    def _load(self, instance: Instance) -> None:
        """Give vLLM the module's weights and check that it has them."""
        self._version += 1
        try:
            instance.load(self._model.state_dict())
            probe.check(self._model, self._probe, self._context, self._tolerance)
        except BaseException:
            self._stop()  # so that nothing can be sampled with these weights
            raise

    def _probe(self, requests: Sequence[Request]) -> list[Completion]:
        assert self._instance is not None
        drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
        self._sample(self._instance, drafts)
        return [draft.completion() for draft in drafts]

    def _stop(self) -> None:
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()


def head_size(model: PreTrainedModel) -> int:
    """The size of an attention head."""
    config = model.config.get_text_config()
    named = getattr(config, "head_dim", None)  # not every configuration has it
    return int(named or config.hidden_size // config.num_attention_heads)


def token_bytes(model: PreTrainedModel, dtype: torch.dtype) -> int:
    """Bytes of the keys and values of one token."""
    config = model.config.get_text_config()
    return int(2 * config.num_hidden_layers * config.num_key_value_heads * head_size(model) * dtype.itemsize)
