"""The image processor of a checkpoint: how many tokens a picture takes, and its pixels as the model reads them.

Pillow resizes, so that torchvision is not needed, and the same picture gives the same pixels everywhere.

Shape letters: P patches of all pictures, D numbers of a patch, N pictures.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pillow
from torch import Tensor
from transformers import AutoImageProcessor, PreTrainedModel

from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image

MOST_TOKENS = 16_384
"""The most tokens of one picture. The processor is a stranger's file and may ask for any number."""
KEPT = 8
"""Pictures whose pixels are kept: each takes tens of megabytes, and the next turn shows most of them again."""


def _black(side: int) -> Image:
    file = io.BytesIO()
    Pillow.new("RGB", (side, side)).save(file, "PNG")
    return Image(file.getvalue())


BLANK = _black(64)
"""A black picture. It is in no store, and every model's eyes find it by its name."""

Find = Callable[[str], Image]
"""The picture of a name. Raises `FileError` where it cannot be read."""


class Eyes:
    """Reads pictures for one model.

    processor: its image processor, with Pillow behind it. model: a model with `get_rope_index`, whose configuration
    names the token of a picture. find: gives the pictures. Raises `ConfigError` where these do not fit together.
    """

    def __init__(self, processor: Any, model: PreTrainedModel, find: Find) -> None:
        self.token: int = require_sight(model).image_token_id
        seen = model.config.vision_config
        for ours, theirs in (("patch_size", "patch_size"), ("merge_size", "spatial_merge_size")):
            if getattr(processor, ours, None) != getattr(seen, theirs, None):
                raise ConfigError(
                    f"{type(model).__name__}: preprocessor_config.json has {ours} = {getattr(processor, ours, None)}, "
                    f"and the model {theirs} = {getattr(seen, theirs, None)}; use the files of one checkpoint"
                )
        self._processor, self._find = processor, find
        self._pixels = lru_cache(maxsize=KEPT)(self._read)

    def tokens(self, width: int, height: int) -> int:
        """How many tokens a picture of this size takes. Raises `ConfigError` for one that no prompt should show."""
        try:
            patches = self._processor.get_number_of_image_patches(height, width)
        except ValueError as error:
            raise ConfigError(f"a picture of {width} x {height} pixels cannot be shown: {error}") from None
        count = patches // self._processor.merge_size**2
        if not 0 < count <= MOST_TOKENS:
            raise ConfigError(
                f"a picture of {width} x {height} pixels takes {count:,} tokens; from 1 to {MOST_TOKENS:,} are "
                "allowed. `size` in the checkpoint's preprocessor_config.json decides"
            )
        return int(count)

    def blank(self) -> tuple[str, list[int]]:
        """The name of `BLANK`, and the ids that stand for it."""
        return BLANK.sha256, [self.token] * self.tokens(BLANK.width, BLANK.height)

    def pixels(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """`pixel_values` PD and `image_grid_thw` N3 of these pictures (at least one), in order."""
        read = [self._pixels(name) for name in names]
        return torch.cat([pixels for pixels, _ in read]), torch.cat([grid for _, grid in read])

    def require(self, ids: Sequence[int], names: Sequence[str]) -> None:
        """Raise `ValueError` unless the ids have as many tokens of pictures as these pictures take."""
        wanted = sum(self.tokens(image.width, image.height) for image in map(self._find, names))
        if ids.count(self.token) != wanted:
            raise ValueError(
                f"a prompt has {ids.count(self.token)} tokens of pictures; its {len(names)} pictures take {wanted}"
            )

    def save(self, folder: Path) -> None:
        """Write preprocessor_config.json beside the model."""
        self._processor.save_pretrained(str(folder))

    def _read(self, name: str) -> tuple[Tensor, Tensor]:
        image = BLANK if name == BLANK.sha256 else self._find(name)
        self.tokens(image.width, image.height)
        try:
            with Pillow.open(io.BytesIO(image.png), formats=["PNG"]) as opened:
                found = self._processor.preprocess([opened.convert("RGB")], return_tensors="pt")
        except (
            OSError,
            SyntaxError,
            ValueError,
        ) as error:  # whole chunks, and pixels that cannot be unpacked
            raise MachineError(f"picture {name}: it cannot be decoded ({error})") from None
        return found["pixel_values"], found["image_grid_thw"]


def load(source: str, revision: str | None, model: PreTrainedModel, find: Find) -> Eyes:
    """The eyes of a checkpoint's model. Raises `ConfigError` for one without, and for files that cannot be read."""
    require_sight(model)
    try:
        processor = AutoImageProcessor.from_pretrained(
            source, revision=revision, backend="pil", trust_remote_code=False
        )
    except Exception as error:  # libraries that read a damaged file may raise anything
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise ConfigError(f"{source}: its image processor cannot be loaded: {said}") from None
    return Eyes(processor, model, find)


def require_sight(model: PreTrainedModel) -> Any:
    """The model's configuration. Raises `ConfigError` for a model that reads text alone."""
    positions = getattr(model.base_model, "get_rope_index", None)
    if positions is None or not isinstance(getattr(model.config, "image_token_id", None), int):
        raise ConfigError(
            f"{type(model).__name__} reads text alone, and is to be shown pictures: use a checkpoint of Qwen2.5-VL or "
            "Qwen3-VL, or show it none"
        )
    return model.config
