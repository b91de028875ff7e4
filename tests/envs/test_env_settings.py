"""Arguments of families: whatever a file or a command gives, the message names the key and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from envs import settings
from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from envs.desktop.osworld.family import OSWorldFamily
from envs.desktop.small.family import DesktopFamily
from envs.web.family import WebFamily

HUGE = 10**400
"""Beyond all floats."""
NAMES = ("easy", "hard")


@pytest.mark.parametrize(
    ("check", "value", "says"),
    [
        (settings.seconds, HUGE, "a number of 1329 bits is not a number of seconds above 0 and at most 86400"),
        (settings.seconds, 1e300, "1e+300 is not a number of seconds above 0 and at most 86400"),
        (settings.seconds, [[1]], "[[1]] is not a number of seconds"),
        (partial(settings.whole, low=1, high=9), HUGE, "a number of 1329 bits is not a whole number from 1 to 9"),
        (partial(settings.whole, low=1, high=9), [[1]], "[[1]] is not a whole number"),
        (partial(settings.int_range, low=1, high=9), [1, HUGE], "[1, a number of 1329 bits] is not [least, most]"),
        (partial(settings.one_of, allowed=NAMES), [["easy"]], "[['easy']] is not one of easy, hard"),
        (partial(settings.some, allowed=NAMES), [["easy"]], "['easy'] is not one of easy, hard"),
        (partial(settings.shares, allowed=NAMES), [["easy"]], "['easy'] is not one of easy, hard"),
        (partial(settings.shares, allowed=NAMES), {"easy": HUGE}, "easy must be a number >= 0, not a number of"),
        (partial(settings.shares, allowed=NAMES), {"easy": 1e308, "hard": 1e308}, "the sum of the shares is too"),
        (partial(settings.chances, allowed=NAMES), {"easy": HUGE}, "bits is not a probability from 0 to 1"),
        (settings.text, "", "'' is not a text"),
        (settings.names, [["easy"]], "[['easy']] is not a list of texts"),
    ],
    ids=range(14),
)  # fmt: skip
def test_a_value_that_is_not_allowed_is_told_by_its_key(
    check: Callable[[str, Any], object], value: object, says: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        check("key", value)
    assert str(caught.value).startswith("key")
    assert says in str(caught.value)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        settings.one_of("key", "x" * 100_000, NAMES)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "value", [HUGE, -HUGE, [["x"]], [[]], [{}], {"x": [1]}, [1, [2]], True, "x" * 10], ids=range(9)
)
@pytest.mark.parametrize(
    ("family", "key"),
    [
        (AlfworldFamily, "timeout"),
        (AlfworldFamily, "task_types"),
        (CodingFamily, "kinds"),
        (CodingFamily, "tests"),
        (DesktopFamily, "ood_apps"),
        (DesktopFamily, "start"),
        (partial(OSWorldFamily, "data", ["command"]), "worlds"),
        (partial(OSWorldFamily, "data", ["command"]), "screen"),
        (partial(WebFamily, ood_kinds=["click-link"]), "kinds"),
        (partial(WebFamily, ["click-button"], ["click-link"]), "timeout"),
    ],
)
def test_families_refuse_odd_values_by_their_key(family: Any, key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key}"):
        family(**{key: value})


def test_the_digest_of_evaluators_is_a_text() -> None:
    with pytest.raises(ValueError, match=r"^evaluators: 5 is not a text"):
        OSWorldFamily("data", ["command"], evaluators=5)  # type: ignore[arg-type]
