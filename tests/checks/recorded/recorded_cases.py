"""Sentences of pages with numbers left open, for tests of what pages say of recorded results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[3]
CHECKS = ROOT / "checks"
SUCCESS = ("in_domain", "out_of_domain", "held_out")


@cache
def said(*pages: str) -> str:
    """The words of some pages with single spaces."""
    return " ".join(" ".join((ROOT / page).read_text() for page in pages).split())


class Numbers(Formatter):
    """Fills `{arm.metric:.1f}`, and `{arm.metric - arm.metric:.1f}` with a difference."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        first, minus, second = field_name.partition(" - ")
        value, used = super().get_field(first, args, kwargs)
        return (value - super().get_field(second, args, kwargs)[0] if minus else value), used


def percent(metrics: Mapping[str, Mapping[str, float]]) -> SimpleNamespace:
    return SimpleNamespace(
        **{
            name.replace("/", "_"): value["mean"] * (1 if name.startswith("accepted") else 100)
            for name, value in metrics.items()
        }
    )


def pool_rows() -> list[dict[str, Any]]:
    return json.loads((CHECKS / "pool" / "pool.json").read_text())["comparisons"]


def written(difference: Mapping[str, float]) -> str:
    mean, low, high = (100 * difference[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
