"""Which kinds are easier and harder forms of each other: the templates that an adapter may switch between."""

from __future__ import annotations

from collections.abc import Collection

from rlanything.core.types import Direction

LADDERS = (
    ("click-test", "click-test-2", "click-button", "click-button-sequence"),
    ("click-dialog", "click-dialog-2"),
    ("click-tab", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2", "click-tab-2-hard"),
    ("click-collapsible", "click-collapsible-2"),
    ("click-collapsible-nodelay", "click-collapsible-2-nodelay"),
    ("click-option", "click-checkboxes", "click-checkboxes-large", "click-checkboxes-soft"),
    ("choose-list", "form-sequence-3", "click-scroll-list"),
    ("focus-text", "focus-text-2", "form-sequence-2"),
    ("enter-text", "enter-password", "login-user"),
    ("enter-text-dynamic", "enter-text-2"),
    ("read-table", "read-table-2"),
    ("multi-orderings", "multi-layouts"),
    ("click-pie-nodelay", "click-pie"),
    ("click-menu-2", "click-menu"),
    ("email-inbox-delete", "email-inbox-noscroll", "email-inbox"),
    ("email-inbox-important", "email-inbox-star-reply", "email-inbox-reply", "email-inbox-forward"),
    ("social-media-some", "social-media-all", "social-media"),
)
"""Each from its easiest form to its hardest. A kind that is in none can only get a hint, or lose it."""


def templates(kind: str, without: Collection[str]) -> tuple[str, ...]:
    """The forms of a kind, the easiest first, among them the kind itself. without: kinds that training must not see."""
    ladder = next((ladder for ladder in LADDERS if kind in ladder), (kind,))
    return tuple(name for name in ladder if name == kind or name not in without)


def further(kind: str, direction: Direction, without: Collection[str]) -> tuple[str, ...]:
    """The harder or easier forms of a kind, the nearest first."""
    known = templates(kind, without)
    place = known.index(kind)
    return known[place + 1 :] if direction is Direction.HARDER else known[:place][::-1]
