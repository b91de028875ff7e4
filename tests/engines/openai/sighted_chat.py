"""vLLM's own server of conversations for a tiny Qwen2.5-VL: `python sighted_chat.py OPTIONS`.

vLLM's own processor of pictures needs torchvision, which is not installed for the tests. This one takes its place. It
repeats the one token of a picture in a chat template as often as the picture needs, as vLLM's own does.
"""

from __future__ import annotations

import hashlib
import runpy
from typing import Any

if __name__ in ("__main__", "__mp_main__"):
    from rlanything.engines.vllm import sighted

    def apply(self: Any, inputs: Any, timing_ctx: Any) -> Any:
        """What vLLM is given of a conversation's ids and its pictures."""
        pngs = [bytes(item.original_bytes) for item in inputs.mm_data_items[sighted.KIND].data]
        pixels = [self._pixels(png) for png in pngs]
        config = self.info.ctx.model_config.hf_config
        area = config.vision_config.spatial_merge_size**2
        counts = [int(grid.prod()) // area for _, grid in pixels]
        ids: list[int] = []
        ranges, following = [], iter(counts)
        for token in inputs.prompt:
            count = next(following) if token == config.image_token_id else 1
            if token == config.image_token_id:
                ranges.append((len(ids), count))
            ids += [token] * count
        names = [hashlib.sha256(png).hexdigest() for png in pngs]
        return sighted.prompt(ids, names, ranges, pixels)

    sighted.Processor.apply = apply
    sighted.register()
if __name__ == "__main__":
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
