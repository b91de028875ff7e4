"""vLLM's models that read pictures, as they run here: their pixels are made by `engines.sight`, as those of training.

vLLM has a processor of pictures for each model, which needs the checkpoint's tokenizer and torchvision. Ours takes its
place and needs neither. In this process prompts come with their pixels. A server is sent PNGs, and makes them itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from torch import Tensor
from transformers.utils import logging
from vllm import ModelRegistry
from vllm.inputs import mm_input
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import (
    MultiModalBatchedField,
    MultiModalFieldElem,
    MultiModalFlatField,
    MultiModalKwargsItem,
    MultiModalKwargsItems,
    PlaceholderRange,
)
from vllm.multimodal.processing import BaseDummyInputsBuilder, BaseMultiModalProcessor, BaseProcessingInfo

from rlanything.core.images import Image
from rlanything.engines.sight.eyes import KEPT, MOST_TOKENS, decode, load_processor, locate

KIND = "image"
"""vLLM's name of what the processor takes."""
_NEEDED = "transformers.models.qwen2_vl.image_processing_qwen2_vl"
"""vLLM's models import one function of it, `smart_resize`. It needs torchvision. Its twin for Pillow has it too."""


class Info(BaseProcessingInfo):
    """What vLLM asks before it starts."""

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Pictures, any number of them."""
        return {KIND: None}

    def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
        """The most tokens of one picture: vLLM's cache of what it has seen holds so many at least."""
        return {KIND: min(MOST_TOKENS, seq_len)}


class Nothing(BaseDummyInputsBuilder):
    """vLLM's sample of inputs for measuring memory, which is switched off."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """No text."""
        return ""

    def get_dummy_mm_data(self, *args: Any, **more: Any) -> Mapping[str, Any]:
        """No pictures."""
        return {}


class Processor(BaseMultiModalProcessor):
    """Turns PNGs into pixels, by the image processor in the model's folder. Token ids stay as they are."""

    requires_tokenizer = False

    def __init__(self, info: Info, dummy_inputs: Nothing) -> None:
        super().__init__(info, dummy_inputs)
        self._load = cache(load_processor)
        self._pixels = lru_cache(maxsize=KEPT)(self._read)

    def apply(self, inputs: Any, timing_ctx: Any) -> Any:
        """What vLLM is given of a prompt and its pictures, whose names vLLM calls uuids.

        Raises `MachineError` for a picture that cannot be decoded, and `ValueError` where they do not fit the prompt.
        """
        pixels = [self._pixels(bytes(item.original_bytes)) for item in inputs.mm_data_items[KIND].data]
        config = self.info.ctx.model_config.hf_config
        area = config.vision_config.spatial_merge_size**2
        counts = [int(grid.prod()) // area for _, grid in pixels]
        starts = locate(inputs.prompt, config.image_token_id, counts)
        ranges = list(zip(starts, counts, strict=True))
        return prompt(inputs.prompt, inputs.mm_uuid_items[KIND], ranges, pixels)

    def _read(self, png: bytes) -> tuple[Tensor, Tensor]:
        return decode(self._load(self.info.ctx.model_config.model), Image(png))

    def _get_mm_fields_config(self, *args: Any) -> Any:
        raise NotImplementedError("vLLM's own `apply` alone asks for it")

    def _get_prompt_updates(self, *args: Any) -> Any:
        raise NotImplementedError("vLLM's own `apply` alone asks for it")


@cache
def register() -> None:
    """Have vLLM of this process run the models of `support.SIGHTED` with our processor. To be called before it starts.

    vLLM would import them in another process to ask what they are. They are given to it, so it need not.
    """
    with _without_torchvision():
        from vllm.model_executor.models.qwen2_5_vl import Qwen2_5_VLForConditionalGeneration
        from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration
    for model in (Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration):
        del model._processor_factory  # else vLLM warns that it is replaced
        MULTIMODAL_REGISTRY.register_processor(Processor, info=Info, dummy_inputs=Nothing)(model)
        ModelRegistry.register_model(model.__name__, model)


def prompt(
    ids: Sequence[int],
    names: Sequence[str],
    ranges: Sequence[tuple[int, int]],
    pixels: Sequence[tuple[Tensor, Tensor]],
) -> Any:
    """What vLLM is given of a prompt with pictures.

    names: under which it keeps what it has seen. ranges: the first token of each picture, and how many it has. pixels:
    PD and grid of each.
    """
    return mm_input(
        list(ids),
        MultiModalKwargsItems({KIND: [_item(*each) for each in pixels]}),
        {KIND: list(names)},
        {KIND: [PlaceholderRange(offset=start, length=tokens) for start, tokens in ranges]},
    )


def _item(pixels: Tensor, grid: Tensor) -> MultiModalKwargsItem:
    """One picture as the models' forward pass takes it. pixels: PD. grid: 13."""
    rows = MultiModalFlatField(slices=[slice(0, len(pixels))], dim=0)
    return MultiModalKwargsItem(
        {
            "pixel_values": MultiModalFieldElem(pixels, rows),
            "image_grid_thw": MultiModalFieldElem(grid[0], MultiModalBatchedField(keep_on_cpu=True)),
        }
    )


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Where it is not installed, the models can be imported all the same. What they import stays as it was."""
    loud = logging.get_verbosity()
    if find_spec("torchvision") is None:
        from transformers.models.qwen2_vl import image_processing_pil_qwen2_vl as twin

        sys.modules[_NEEDED] = twin
        logging.set_verbosity_error()  # it says which processor it takes in place of one that nothing uses
    try:
        yield
    finally:
        logging.set_verbosity(loud)
        if find_spec("torchvision") is None:
            del sys.modules[_NEEDED]
