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


class _Loader(yaml.SafeLoader):
    """Refuses aliases, a few lines of which stand for any amount of memory, and keys that stand twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        refused = "aliases are not read" if self.check_event(yaml.AliasEvent) else ""
        if self.flow_level > DEEPEST:
            refused = f"nested deeper than {DEEPEST} levels"
        if refused:
            raise yaml.composer.ComposerError(None, None, refused, self.peek_event().start_mark)
        return super().compose_node(parent, index)

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
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
    ) as error:  # ValueError: a date or a number that is none
        raise FileError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise FileError(f"{path}: expected a mapping of sections, found {type(data).__name__}")
    return data
