"""All kinds of tasks by their names."""

from __future__ import annotations

from envs.web.kinds import buttons, choices, hidden, mail, texts
from envs.web.kinds.kind import Kind
from rlanything.core.errors import unknown

KINDS: dict[str, Kind] = {
    kind.name: kind for table in (buttons, choices, hidden, texts, mail) for kind in table.KINDS
}
"""The kinds that have a description, and with it an expert and labels of steps."""


def known(name: str) -> Kind:
    """The kind of this name. Raises `ValueError` for an unknown one, with the nearest."""
    if name not in KINDS:
        raise ValueError(f"kind {name!r}: {unknown(name, KINDS)}")
    return KINDS[name]
