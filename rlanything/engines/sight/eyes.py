"""The image processor of a checkpoint: how many tokens a picture takes, and its pixels as the model reads them.

Pillow resizes, so that torchvision is not needed, and the same picture gives the same pixels everywhere.

Shape letters: P patches of all pictures, D numbers of a patch, N pictures, B prompts, T tokens.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pillow
from torch import Tensor
from transformers import AutoImageProcessor, PreTrainedModel

from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.printable import one_line

MOST_TOKENS = 16_384
"""The most tokens of one picture. The processor is a stranger's file and may ask for any number."""
SAME = (
    ("patch_size", "patch_size"),
    ("merge_size", "spatial_merge_size"),
    ("temporal_patch_size", "temporal_patch_size"),
)
"""Keys of a processor and of a model's vision_config that must be equal."""
KEPT = 8
"""Pictures whose pixels are kept: each takes tens of megabytes, and the next turn shows most of them again."""


def _black() -> Image:
    file = io.BytesIO()
    Pillow.new("RGB", (64, 64)).save(file, "PNG")
    return Image(file.getvalue())


BLANK = _black()
"""A black picture. It is in no store; `Eyes` find it by its name all the same."""

Find = Callable[[str], Image]
"""The picture of a name. Raises `FileError` where it cannot be read."""


@dataclass(frozen=True)
class Place:
    """Where a prompt shows a picture. name: of the picture. start: of its first token. tokens: how many it takes.

    find: gives the picture. Many prompts wait at once, so its bytes are read when they are needed.
    """

    name: str
    start: int
    tokens: int
    find: Find = field(repr=False, compare=False)


class Eyes:
    """Reads pictures for one model.

    processor: its image processor, with Pillow behind it. model: a model with `get_rope_index`, whose configuration
    names the token of a picture. find: gives the pictures. Raises `ConfigError` where these do not fit together.
    """

    def __init__(self, processor: Any, model: PreTrainedModel, find: Find) -> None:
        self.token: int = require_sight(model).image_token_id
        seen = model.config.vision_config
        for ours, theirs in SAME:
            if getattr(processor, ours, None) != getattr(seen, theirs, None):
                raise ConfigError(
                    f"{type(model).__name__}: preprocessor_config.json has {ours} = {getattr(processor, ours, None)}, "
                    f"and the model {theirs} = {getattr(seen, theirs, None)}; use the files of one checkpoint"
                )
        self._processor, self._model, self._find = processor, model, find
        self._pixels = lru_cache(maxsize=KEPT)(self._read)

    def tokens(self, width: int, height: int) -> int:
        """How many tokens a picture of this size takes. Raises `ConfigError` for one that no prompt should show."""
        try:
            patches = self._processor.get_number_of_image_patches(height, width)
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError(f"a picture of {width} x {height} pixels cannot be shown: {error}") from None
        count = patches // self._processor.merge_size**2
        if not 0 < count <= MOST_TOKENS:
            raise ConfigError(
                f"a picture of {width} x {height} pixels takes {count:,} tokens; from 1 to {MOST_TOKENS:,} are "
                "allowed. `size` in the checkpoint's preprocessor_config.json decides"
            )
        return int(count)

    def check(self) -> None:
        """Read `BLANK` once. Raises `ConfigError` for a processor that cannot, or whose pixels are no numbers."""
        count = self.tokens(BLANK.width, BLANK.height)
        try:
            pixels, grid = decode(self._processor, BLANK)
        except Exception as error:  # its settings are a stranger's, and it may raise anything
            raise ConfigError(f"its image processor reads no picture: {one_line(str(error))[:300]}") from None
        if not pixels.isfinite().all() or int(grid.prod()) // self._processor.merge_size**2 != count:
            raise ConfigError(
                f"its image processor makes pixels that no model can read ({len(pixels)} patches for {count} tokens); "
                "`image_std`, `size` and the other keys of the checkpoint's preprocessor_config.json decide"
            )

    def blank(self) -> tuple[str, list[int]]:
        """The name of `BLANK`, and the ids that stand for it."""
        return BLANK.sha256, [self.token] * self.tokens(BLANK.width, BLANK.height)

    def pixels(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """`pixel_values` PD and `image_grid_thw` N3 of these pictures (at least one), in order.

        Raises `FileError` for a picture that is not there, `MachineError` for one that cannot be decoded, and as
        `tokens`.
        """
        read = [self._pixels(name) for name in names]
        return torch.cat([pixels for pixels, _ in read]), torch.cat([grid for _, grid in read])

    def inputs(self, ids_bt: Tensor, names: Sequence[str]) -> dict[str, Any]:
        """What the model's forward pass gets besides the ids of prompts that show these pictures; {} where it is none.

        `pixel_values` PD, `image_grid_thw` N3 and `mm_token_type_ids` BT, on the device of the ids. Raises as `pixels`.
        """
        if not names:
            return {}
        pixels, grid = self.pixels(names)
        return {
            "pixel_values": pixels.to(ids_bt.device),
            "image_grid_thw": grid.to(ids_bt.device),
            # Which tokens are pictures. Transformers takes nothing else from it.
            "mm_token_type_ids": (ids_bt == self.token).int(),
        }

    def places(self, ids: Sequence[int], names: Sequence[str]) -> tuple[Place, ...]:
        """Where a prompt shows its pictures, which are given in order.

        Raises `ValueError` unless its tokens of pictures are as many as these pictures take, and those of each picture
        follow one another; `FileError` for a picture that is not there; and as `tokens`.
        """
        counts = [self.tokens(image.width, image.height) for image in map(self._image, names)]
        starts = locate(ids, self.token, counts)
        shown = zip(names, starts, counts, strict=True)
        return tuple(Place(name, start, count, self._image) for name, start, count in shown)

    def knowing(self, image: Image) -> Eyes:
        """The same eyes, which find one more picture."""
        return Eyes(
            self._processor, self._model, lambda name: image if name == image.sha256 else self._find(name)
        )

    def save(self, folder: Path) -> None:
        """Write preprocessor_config.json beside the model."""
        self._processor.save_pretrained(str(folder))

    def _image(self, name: str) -> Image:
        return BLANK if name == BLANK.sha256 else self._find(name)

    def _read(self, name: str) -> tuple[Tensor, Tensor]:
        image = self._image(name)
        self.tokens(image.width, image.height)
        return decode(self._processor, image)


def load(source: str, revision: str | None, model: PreTrainedModel, find: Find) -> Eyes:
    """The eyes of a checkpoint's model. Raises `ConfigError` for one without, and for files that cannot be used."""
    require_sight(model)
    found = Eyes(load_processor(source, revision), model, find)
    try:
        found.check()
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return found


def locate(ids: Sequence[int], token: int, counts: Sequence[int]) -> list[int]:
    """Where in a prompt each picture begins. token: the id of pictures' tokens. counts: how many each picture takes.

    Raises `ValueError` for more or fewer tokens, and for a picture whose tokens do not follow one another.
    """
    at = [place for place, found in enumerate(ids) if found == token]
    if len(at) != sum(counts):
        raise ValueError(
            f"a prompt has {len(at)} tokens of pictures; its {len(counts)} pictures take {sum(counts)}"
        )
    starts, done = [], 0
    for number, count in enumerate(counts, 1):
        own = at[done : done + count]
        if any(after != before + 1 for before, after in pairwise(own)):
            raise ValueError(f"the tokens of a prompt's picture {number} do not follow one another")
        starts.append(own[0])
        done += count
    return starts


def load_processor(source: str, revision: str | None = None) -> Any:
    """The image processor of a checkpoint, with Pillow behind it. Raises `ConfigError` where it cannot be read."""
    try:
        return AutoImageProcessor.from_pretrained(
            source, revision=revision, backend="pil", trust_remote_code=False
        )
    except Exception as error:  # libraries that read a damaged file may raise anything
        said = one_line(str(error))[:300] or type(error).__name__
        raise ConfigError(f"{source}: its image processor cannot be loaded: {said}") from None


def decode(processor: Any, image: Image) -> tuple[Tensor, Tensor]:
    """`pixel_values` PD and `image_grid_thw` N3 of one picture. Raises `MachineError` where it cannot be decoded."""
    try:
        with Pillow.open(io.BytesIO(image.png), formats=["PNG"]) as opened:
            found = processor.preprocess([opened.convert("RGB")], return_tensors="pt")
    except (IndexError, OSError, SyntaxError, ValueError) as error:  # whole chunks that cannot be unpacked
        raise MachineError(f"picture {image.sha256}: it cannot be decoded ({error})") from None
    return found["pixel_values"], found["image_grid_thw"]


def require_sight(model: PreTrainedModel) -> Any:
    """The model's configuration. Raises `ConfigError` for a model that reads text alone."""
    positions = getattr(model.base_model, "get_rope_index", None)
    if positions is None or not isinstance(getattr(model.config, "image_token_id", None), int):
        raise ConfigError(
            f"{type(model).__name__} reads text alone, and is to be shown pictures: use a checkpoint of Qwen2.5-VL or "
            "Qwen3-VL, or show it none"
        )
    return model.config
