"""Positions of tokens where prompts show pictures: a picture has rows and columns, and text goes on after the longer.

The model's own function computes them (`get_rope_index` of transformers), so that they are those of sampling.

Shape letters: B rows, T tokens, N pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel


def positions_3bt(
    model: PreTrainedModel, token: int, ids_bt: Tensor, plain_bt: Tensor, grids: Sequence[Tensor]
) -> Tensor:
    """Positions in time, height and width, 3BT, of rows whose pictures all come before their first branch.

    token: the id of a picture's tokens. plain_bt: how many tokens each token follows. grids: `image_grid_thw` N3 of
    each row's pictures. Raises `ValueError` for a row with a picture in a branch.
    """
    rope: Any = model.base_model
    found = plain_bt.expand(3, *plain_bt.shape).clone()
    for row, grid in enumerate(grids):
        if not len(grid):
            continue
        end = int((ids_bt[row] == token).nonzero().max()) + 1
        if not torch.equal(plain_bt[row, :end], torch.arange(end, device=plain_bt.device)):
            raise ValueError("a picture lies in a branch of a row; its questions need rows of their own")
        before = ids_bt[row : row + 1, :end]
        shown, delta = rope.get_rope_index(
            before, mm_token_type_ids=(before == token).int(), image_grid_thw=grid.to(ids_bt.device)
        )
        found[:, row, :end] = shown[:, 0]
        found[:, row, end:] += int(delta)
    return found
