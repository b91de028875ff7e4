"""What vLLM in this process and vLLM in servers have in common: a copy of a live model's weights, and its probe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.core.types import Completion, Request
from rlanything.engines.chat import declared_ends, stop_ids
from rlanything.engines.decode import Draft, check_request
from rlanything.engines.lora.merging import has_lora, lora_rank
from rlanything.engines.vllm import probe, support
from rlanything.engines.vllm.asking import ask, take
from rlanything.engines.vllm.budget import GIB
from rlanything.engines.vllm.instance import Ask, Settings

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Sampled = list[tuple[list[int], list[float]]]
"""Ids and log-probs of the drawn tokens, for each question."""


class Sampler(Protocol):
    """vLLM, as an engine uses it."""

    def generate(self, asked: Sequence[Ask], salt: str) -> Sampled:
        """Answers in the order of the questions. salt: names the weights that must sample."""
        ...

    def close(self) -> None:
        """Stop it."""
        ...


S = TypeVar("S", bound=Sampler)


class CopyingEngine(ABC, Generic[S]):
    """`Engine` over a copy of a live model's weights. vLLM starts when the engine is first asked.

    Args:
        model: the module that is being trained; its weights are taken over at the start and at every `sync`.
        tokenizer: gives the ids that end a response.
        options: how vLLM runs.
        eyes: of a model that reads pictures.

    Raises `ValueError` for a tokenizer without ids that end a response, heads of a size that vLLM does not have, LoRA's
    weights that it does not take apart, eyes of a model that it shows no pictures, and when vLLM is not installed in
    the version that is needed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        options: support.Options,
        eyes: Eyes | None = None,
    ) -> None:
        self._config = model.config.get_text_config()
        support.check_heads(head_size(model), model.device.type, "Use engine=native or engine=transformers")
        if eyes is not None:
            support.check_sight(type(model).__name__)
        self._model, self._stops = (
            model,
            frozenset(stop_ids(tokenizer, declared_ends(model.generation_config))),
        )
        self._eyes = None if eyes is None else eyes.knowing(probe.picture())
        self._sighted = type(model).__name__ in support.SIGHTED
        self._options, self._dtype = options, DTYPES.get(options.dtype, model.dtype)
        self._context: int = options.fitting(self._config.max_position_embeddings)
        default = probe.TOLERANCE[self._dtype]
        tolerance = default if options.tolerance is None else options.tolerance
        self._apart = options.sends_apart(self._format)
        self._rank = 0
        if self._apart and has_lora(model):
            self._rank = support.rank_for(lora_rank(model), "the rank of LoRA")
        as_it_is = self._dtype == torch.float32 if self._rank else not has_lora(model)
        exact = self._dtype == model.dtype and as_it_is
        self._probe = probe.Probe(model, self._context, tolerance, exact=exact, eyes=self._eyes)
        self._instance: S | None = None
        self._version = self._loads = 0
        self._closed = False

    @property
    def _format(self) -> str:
        """The number format of vLLM's copy."""
        return str(self._dtype).removeprefix("torch.")

    def _settings(self, cache_bytes: int) -> Settings:
        """How vLLM is started with so much memory for keys and values."""
        return Settings(
            device=self._model.device.type,
            dtype=self._format,
            context=self._context,
            max_batch=self._options.max_batch,
            max_batched_tokens=self._options.max_batched_tokens,
            cache_bytes=cache_bytes,
            prefix_caching=self._options.prefix_caching,
            eager=self._options.eager,
            lora_rank=self._rank,
            sighted=self._sighted,
        )

    @property
    def _least_bytes(self) -> int:
        """Bytes of the keys and values of the longest prompt with its reply, the least that vLLM starts with."""
        return self._context * token_bytes(self._model, self._dtype)

    @property
    def _total_bytes(self) -> int:
        """Bytes of the keys and values of all engines of the process together."""
        return int(self._options.cache_gib * GIB)

    @abstractmethod
    def _start(self) -> S:
        """A running vLLM."""

    @abstractmethod
    def _take_over(self, instance: S) -> None:
        """Give vLLM the module's weights under the name `_salt`, and pass `_accept` whatever samples with them."""

    @property
    def _salt(self) -> str:
        """The name of the weights that vLLM has now. Cached prefixes of other weights are not found under it.

        It counts how often they were taken over: a caller may give one version to two states.
        """
        return f"weights {self._loads}"

    def sync(self, version: int) -> None:
        """Take over the module's weights, and compare log-probs. Before the start only the name is new.

        Caches of the old weights are not used again. Raises as `Probe.check`.
        """
        self._version = version
        if self._instance is not None:
            self._load(self._instance)

    def rename(self, version: int) -> None:
        """See `Renames`. Nothing is sent: vLLM takes the weights over when it starts."""
        self._version = version

    def ensure_started(self) -> None:
        """See `LateStart`. Raises as `generate` does when vLLM starts, and `ValueError` when the engine is closed."""
        self._check_open()
        self._started()

    def release(self, sessions: Sequence[str]) -> None:
        """Nothing to free: the prefix cache drops what was used least recently."""

    def close(self) -> None:
        """Stop vLLM and give back its memory."""
        self._closed = True
        self._stop()

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests.

        Raises:
            ValueError: for a request that cannot be served, for pictures that do not fit their prompt, for weights that
                have diverged, when vLLM cannot run the model, and when the engine is closed.
            FileError: for a picture that is not there.
            WeightsMismatch: when vLLM starts and does not have the module's weights.
            DrawsMismatch: when vLLM starts and draws other tokens than the other engines.
        """
        self._check_open()
        for request in requests:
            check_request(request, self._config.vocab_size, self._context, sees=self._eyes is not None)
        drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
        waiting = [draft for draft in drafts if not draft.done]
        if waiting:
            self._sample(waiting, self._answers)
        return [draft.completion(self._version) for draft in drafts]

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the engine is closed")

    def _sample(self, drafts: Sequence[Draft], generate: Callable[[Sequence[Ask]], Sampled]) -> None:
        asked = [ask(draft, self._stops, self._config.vocab_size, self._eyes) for draft in drafts]
        sampled = generate(asked)
        for draft, (ids, logprobs) in zip(drafts, sampled, strict=True):
            take(draft, ids, logprobs)

    def _answers(self, asked: Sequence[Ask]) -> Sampled:
        instance = self._started()
        try:
            return self._ask(instance, asked)
        except BaseException:
            self._stop()  # it may hold requests that were not finished; the next call starts anew
            raise

    def _ask(self, instance: S, asked: Sequence[Ask]) -> Sampled:
        return instance.generate(asked, self._salt)

    def _started(self) -> S:
        if self._instance is None:
            self._instance = self._start()
            self._load(self._instance)
        return self._instance

    def _load(self, instance: S) -> None:
        """Give vLLM the module's weights and check that it has them."""
        self._loads += 1
        try:
            self._take_over(instance)
        except BaseException:
            self._stop()  # so that nothing can be sampled with these weights
            raise

    def _accept(self, generate: Callable[[Sequence[Ask]], Sampled]) -> None:
        """Compare what samples with the module. Raises as `Probe.check`."""

        def sample(requests: Sequence[Request]) -> list[Completion]:
            drafts = [Draft(request, request.prompt_ids, self._stops) for request in requests]
            self._sample(drafts, generate)
            return [draft.completion(self._version) for draft in drafts]

        self._probe.check(sample, self._loads)

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
