"""Files of YAML that may be anybody's: one plain mapping, every key once, nothing that grows when it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from rlanything.files.reader import FileError, read_text

MOST_MB = 1
DEEPEST = 32
"""Levels of brackets: the reader of YAML looks at all of them for every word."""

_RAISED = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What PyYAML raises. The errors of Python are for dates and numbers that are none."""
_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """Refuses aliases, a few lines of which stand for any amount of memory, tags, and keys that stand twice.

    A tag such as `!!int` makes a value of any text, for which PyYAML raises whatever comes. A number with colons is
    text, as YAML 1.2 and DVC have it. In YAML 1.1 it is one of base 60, which is read in quadratic time.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        refused = "aliases are not read" if self.check_event(yaml.AliasEvent) else ""
        if tag := getattr(self.peek_event(), "tag", None):
            refused = f"tags are not read ({tag[:40]!r})"
        if self.flow_level > DEEPEST:
            refused = f"nested deeper than {DEEPEST} levels"
        if refused:
            raise yaml.composer.ComposerError(None, None, refused, self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if ":" in node.value and node.tag in _NUMBERS:
            node.tag = _TEXT
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=True)
        if len(found) < len(node.value):
            keys = Counter(self.construct_object(key) for key, _ in node.value)
            twice = next(key for key, times in keys.items() if times > 1)
            raise yaml.constructor.ConstructorError(
                None, None, f"{twice!r} stands there twice", node.start_mark
            )
        return found


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises `FileError` for anything else."""
    return mapping(path, read_text(path, MOST_MB))


def mapping(path: Path, text: str) -> dict[str, Any]:
    """The mapping in `text`, which is the content of `path`. Raises `FileError` for anything else."""
    try:
        data = yaml.load(text, _Loader)
    except _RAISED as error:
        raise FileError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise FileError(f"{path}: expected a mapping of sections, found {type(data).__name__}")
    return data
