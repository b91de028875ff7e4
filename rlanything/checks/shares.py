"""Counts in the files of checks: how many of how many."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _part(share: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= share[0] <= share[1]:
        raise ValueError(f"{share[0]} of {share[1]}")
    return share


Share = Annotated[tuple[int, int], AfterValidator(_part)]
"""[those that count, all]."""
