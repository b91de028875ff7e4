"""What one row of the table says: for each of the paper's settings a value with the place where it stands, or a reason.

"Paper" is arXiv 2602.02488 v1; places are its sections, appendices, equations and lines of algorithms. "Reference code"
is Gen-Verse/Open-AgentRL at commit 1fe5dbd; places are its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rlanything.config import Config
from rlanything.core.types import Json

Setting = Literal["alfworld", "coding", "osworld"]
GUI = "envs.desktop.osworld."
"""Where the class of the paper's GUI setting is."""
SETTINGS: dict[Setting, str] = {"alfworld": "ALFWorld", "coding": "coding", "osworld": "OSWorld"}
"""The paper's three settings and how they are written."""


@dataclass(frozen=True)
class Statement:
    """A value that the paper or the reference code has."""

    value: Json
    where: str
    """Section, table, equation or algorithm line of the paper; file of the reference code."""

    def text(self) -> str:
        """`3 (3.1.1)`."""
        return f"{_yaml(self.value)} ({self.where})"


@dataclass(frozen=True)
class Source:
    """Where one key's value comes from in one setting."""

    paper: Statement | None = None
    code: Statement | None = None
    """What the reference code has; where the paper has a value too, only if the code's is another."""
    why: str = ""
    """Ours: the reason of a value that neither of them has, or of the preset's own value where one of them has."""

    @property
    def is_ours(self) -> bool:
        """Whether neither the paper nor its code has a value."""
        return self.reference is None

    @property
    def reference(self) -> Statement | None:
        """The paper's value, else the reference code's; None: the value is ours."""
        return self.paper or self.code

    def text(self) -> str:
        """`paper: 32 (3.1.1), reference code: 16 (configs/coding_rl.yaml)`; `ours: bounds memory`."""
        said = {"paper": self.paper, "reference code": self.code}
        parts = [f"{name}: {statement.text()}" for name, statement in said.items() if statement]
        return ", ".join([*parts, *([f"ours: {self.why}"] if self.why else [])])


@dataclass(frozen=True)
class Row:
    """One key in every setting."""

    alfworld: Source
    coding: Source
    osworld: Source

    def source(self, setting: Setting) -> Source:
        """The source in one setting."""
        return {"alfworld": self.alfworld, "coding": self.coding, "osworld": self.osworld}[setting]

    def text(self, setting: Setting | None = None) -> str:
        """What a comment says: of one setting, or of all three, starting with ALFWorld's.

        `Paper: 16 (3.1.1); coding: 64 (3.1.1); OSWorld: 12 (3.1.1)`: whose value it is is said again where it changes.
        """
        if setting is not None:
            return _capital(self.source(setting).text())
        return _capital("; ".join([self.alfworld.text(), *self._others()]))

    def is_ours(self, setting: Setting | None = None) -> bool:
        """Whether the value is ours in one setting, or in all three."""
        return all(self.source(name).is_ours for name in ([setting] if setting else SETTINGS))

    def _others(self) -> Iterator[str]:
        said = self.alfworld.text().partition(": ")[0]
        for setting, name in SETTINGS.items():
            if self.source(setting) != self.alfworld:
                yield f"{name}: {self.source(setting).text().removeprefix(f'{said}: ')}"


def paper(value: Json, where: str, code: Statement | None = None, ours: str = "") -> Source:
    """The paper's value; the reference code's where it is another; why `scale=paper` has its own, if it has."""
    return Source(Statement(value, where), code, ours)


def code(value: Json, where: str, ours: str = "") -> Source:
    """A value that only the reference code has."""
    return Source(code=Statement(value, where), why=ours)


def ours(why: str) -> Source:
    """A value that neither of them has."""
    return Source(why=why)


def row(alfworld: Source, coding: Source | None = None, osworld: Source | None = None) -> Row:
    """A row; a setting that is left out is as in ALFWorld."""
    return Row(alfworld, coding or alfworld, osworld or alfworld)


def setting_of(config: Config) -> Setting:
    """The paper's setting that a configuration is compared with."""
    # This room is below rewards/, so `rewards.kind` cannot be asked.
    if config.judge.writes == "tests":
        return "coding"
    return "osworld" if str(config.env.get("_target_", "")).startswith(GUI) else "alfworld"


def same(value: object, reference: Json) -> bool:
    """Whether a value of the configuration is the reference's. Tuples of the configuration are lists in the table."""
    return (list(value) if isinstance(value, tuple) else value) == reference


def _yaml(value: Json) -> str:
    """The value as the configuration's files write it, on one line."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_yaml(of)}' for key, of in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
