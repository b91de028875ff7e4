"""The protocol `Engine` over vLLM in the process that asks. It samples the tokens that the other engines sample."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.engines.lora.merging import merged_state
from rlanything.engines.vllm import support
from rlanything.engines.vllm.budget import GIB, SHARED
from rlanything.engines.vllm.copying import CopyingEngine, token_bytes
from rlanything.engines.vllm.instance import Instance

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


class VllmEngine(CopyingEngine[Instance]):
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
        eyes: Eyes | None = None,
    ) -> None:
        options = support.Options(
            max_batch, cache_gib, max_batched_tokens, dtype, prefix_caching, eager, tolerance
        )
        support.check_installed()
        super().__init__(model, tokenizer, options, eyes)
        SHARED.join(self)

    def close(self) -> None:
        """Stop vLLM and give back its memory."""
        super().close()
        SHARED.leave(self)

    def _start(self) -> Instance:
        SHARED.leave(self)
        SHARED.join(self)
        total = int(self._options.cache_gib * GIB)
        part = SHARED.take(self, total, self._context * token_bytes(self._model, self._dtype))
        return Instance(self._model, self._settings(part), self._eyes)

    def _take_over(self, instance: Instance) -> None:
        instance.load(merged_state(self._model))
        self._accept(partial(instance.generate, salt=self._salt))
