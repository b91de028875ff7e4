"""The pictures of a micro-batch, as a model gets them besides token ids.

Rows name pictures. Their pixels are read again for every forward pass, because those of an iteration would not fit into
memory together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.engines.sight.positions import positions_3bt
from rlanything.learn.packing import NO_BRANCH, Row

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


@dataclass(frozen=True)
class Seen:
    """The pictures of the rows of a batch. token: the id of a picture's tokens.

    pixels_pd: patches of all pictures; None: the rows show none. grids: time, height and width of each row's pictures.
    """

    token: int
    pixels_pd: Tensor | None
    grids: tuple[Tensor, ...]

    def inputs(self, model: PreTrainedModel, ids_bt: Tensor, plain_bt: Tensor) -> dict[str, Tensor]:
        """What a forward pass gets besides ids. plain_bt: how many tokens each token follows."""
        if self.pixels_pd is None:
            return {"position_ids": plain_bt.expand(3, *plain_bt.shape)}
        return {
            "position_ids": positions_3bt(model, self.token, ids_bt, plain_bt, self.grids),
            "pixel_values": self.pixels_pd,
            "image_grid_thw": torch.cat(self.grids),
        }

    def without_pictures(self, logits_nv: Tensor) -> Tensor:
        """The logits as they were sampled from: a model never writes the token of a picture."""
        never_v = torch.arange(logits_nv.shape[1], device=logits_nv.device) == self.token
        return logits_nv.masked_fill(never_v, float("-inf"))


def blank_row(eyes: Eyes) -> Row:
    """A row without targets that shows a blank picture. With it a micro-batch passes through what reads pictures."""
    name, ids = eyes.blank()
    row = Row(images=[name])
    row.read(ids, 0, None, NO_BRANCH, NO_BRANCH)
    return row


def seen(images: Sequence[Sequence[str]], eyes: Eyes | None, device: torch.device | str) -> Seen | None:
    """The pictures of rows, by the names of each; None where the model has no eyes. Raises `ValueError`."""
    if eyes is None:
        if any(images):
            raise ValueError("a row shows pictures, and its model reads text alone")
        return None
    read = [eyes.pixels(names) if names else None for names in images]
    pixels = [found[0] for found in read if found]
    grids = [found[1] if found else torch.zeros(0, 3, dtype=torch.long) for found in read]
    return Seen(
        eyes.token,
        torch.cat(pixels).to(device) if pixels else None,
        tuple(grid.to(device) for grid in grids),
    )
