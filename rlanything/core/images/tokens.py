"""About how many tokens a picture takes, where no image processor of its model is here to tell."""

from __future__ import annotations

PATCH = 32
"""Pixels of a side that become one token: Qwen3-VL's patches of 16, four of which are merged."""


def estimate(width: int, height: int) -> int:
    """Tokens of a picture of so many pixels, at least 1. Sides are rounded to whole patches, as Qwen's are."""
    return max(1, round(width / PATCH)) * max(1, round(height / PATCH))
