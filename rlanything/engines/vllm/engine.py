"""The protocol `Engine` over vLLM in the process that asks. It samples the tokens that the other engines sample."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.engines.lora.merging import merged_state
from rlanything.engines.vllm import bases, support
from rlanything.engines.vllm.bases import Tenant
from rlanything.engines.vllm.budget import SHARED
from rlanything.engines.vllm.copying import CopyingEngine, Sampled
from rlanything.engines.vllm.instance import Ask, Instance

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


class VllmEngine(CopyingEngine[Instance | Tenant]):
    """`Engine` over vLLM in this process. Sessions and groups are what its prefix cache finds.

    Args:
        model: the module that is being trained; vLLM takes over its weights at the start and at every `sync`.
        tokenizer: gives the ids that end a response.
        eyes: of a model that reads pictures. It never writes the token of a picture, whose log-prob is -inf.
        The rest: `support.Options`.

    Raises:
        ValueError: for values that are not allowed, a tokenizer without ids that end a response, heads of a size that
            vLLM does not have, eyes of a model that vLLM shows no pictures, and when vLLM is not installed in the
            version that is needed.
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
        lora: str = "auto",
        context: int | None = None,
        eyes: Eyes | None = None,
    ) -> None:
        options = support.Options(
            max_batch, cache_gib, max_batched_tokens, dtype, prefix_caching, eager, tolerance, lora, context
        )
        support.check_installed()
        super().__init__(model, tokenizer, options, eyes)
        self._base = bases.join(self, model, options, self._rank) if self._apart else None
        SHARED.join(self._holder, self._total_bytes, self._least_bytes)

    @property
    def _holder(self) -> object:
        """Who has a part of the memory for keys and values: all engines of a base have one together."""
        return self._base or self

    def sync(self, version: int) -> None:
        """See `CopyingEngine`."""
        self._notice_a_stop()
        super().sync(version)

    def close(self) -> None:
        """Stop vLLM, unless other engines share it, and give back its memory. All of it, also after an error."""
        if self._base is not None:
            self._base.members.pop(self, None)
        others = self._base is not None and len(self._base.members) > 0
        with ExitStack() as stack:
            if not others:
                stack.callback(SHARED.leave, self._holder)
            stack.callback(super().close)
            if others:
                self._leave()

    def _leave(self) -> None:
        """Leave vLLM to the other engines."""
        self._notice_a_stop()
        instance, self._instance = self._instance, None
        if isinstance(instance, Tenant):
            instance.leave()

    def _notice_a_stop(self) -> None:
        """Another engine of the base may have stopped vLLM."""
        if isinstance(self._instance, Tenant) and self._instance.evicted:
            self._instance = None

    def _started(self) -> Instance | Tenant:
        self._notice_a_stop()
        return super()._started()

    def _start(self) -> Instance | Tenant:
        base = self._base
        if base is None:
            return Instance(self._model, self._settings(self._cache_bytes()))
        if base.instance is None:
            base.start(self._model, self._settings(self._cache_bytes()))
        return Tenant(base, self._eyes)

    def _cache_bytes(self) -> int:
        return SHARED.take(self._holder, self._total_bytes)

    def _take_over(self, instance: Instance | Tenant) -> None:
        if isinstance(instance, Tenant):
            instance.load(self._model)
        else:
            instance.load(merged_state(self._model))
        self._accept(partial(self._ask, instance))

    def _ask(self, instance: Instance | Tenant, asked: Sequence[Ask]) -> Sampled:
        if isinstance(instance, Tenant):
            return instance.generate(asked, self._salt)
        return instance.generate(asked, self._salt, eyes=self._eyes)
