"""The protocol `Engine` over vLLM in the process that asks. It samples the tokens that the other engines sample."""

from __future__ import annotations

from functools import partial

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.engines.lora.merging import merged_state
from rlanything.engines.vllm import support
from rlanything.engines.vllm.budget import GIB, SHARED
from rlanything.engines.vllm.copying import CopyingEngine, token_bytes
from rlanything.engines.vllm.instance import Instance, Settings


class VllmEngine(CopyingEngine[Instance]):
    """`Engine` over vLLM in this process. Sessions and groups are what its prefix cache finds.

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
        super().__init__(model, tokenizer, dtype, tolerance)
        self._cache = int(cache_gib * GIB)
        self._starting = (max_batch, max_batched_tokens, prefix_caching, eager)
        SHARED.join(self)

    def close(self) -> None:
        """Stop vLLM and give back its memory."""
        super().close()
        SHARED.leave(self)

    def _start(self) -> Instance:
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
        return Instance(self._model, settings)

    def _take_over(self, instance: Instance) -> None:
        instance.load(merged_state(self._model))
        self._accept(partial(instance.generate, salt=self._salt))
