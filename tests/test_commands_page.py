"""docs/commands.md has every command once, with the words of its help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from rlanything.cli import build_parser

PAGE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()


def commands(parser: argparse.ArgumentParser, name: str = "rlanything") -> Iterator[tuple[str, str]]:
    """(name, help) of every command that has no commands of its own."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help for choice in action._choices_actions}
        for word, sub in action.choices.items():
            below = list(commands(sub, f"{name} {word}"))
            yield from below or [(f"{name} {word}", helps[word])]


def test_every_command_is_on_the_page_once_with_its_help():
    rows = re.findall(r"^\| `(rlanything [^`]+)` \| ([^|]+) \|", PAGE, flags=re.MULTILINE)
    assert sorted(rows) == sorted(commands(build_parser()))
