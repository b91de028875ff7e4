"""The parser of the command line: what it does not know is answered with the nearest name that it knows."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

_CHOICE = re.compile(
    r"(argument (?P<of>[^:]+): )?invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)", re.DOTALL
)
VALUE = "key=value"
"""In the metavar of an argument: values of the configuration."""
NEEDED = "; required"
"""At the end of an option's help: the usage shows it as required. Its command says what is missing, with the names
that it knows."""
_ALIKE = 0.75
"""How much an unknown option must be like a known one to be no value of the configuration."""
OVERRIDES = "overrides"
"""The argument of a command that takes overrides of the configuration."""
Subparsers = argparse._SubParsersAction  # argparse has no public name for it
"""What commands are added to."""


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` whose errors name the nearest command or option. Its subparsers are of the same class."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: object = None) -> argparse.Namespace:  # type: ignore[override]
        """As `ArgumentParser.parse_args`; an unknown option is compared with those of the chosen command.

        Where a command takes overrides, they may stand before and after its options.
        """
        found, rest = self.parse_known_args(args, argparse.Namespace())
        if hasattr(found, OVERRIDES):
            late = [word for word in rest if is_override(word)]
            setattr(found, OVERRIDES, [*getattr(found, OVERRIDES), *late])
            rest = [word for word in rest if word not in late]
        if rest:
            chosen = self._chosen(args or ())
            own, before = chosen._option_string_actions, self._option_string_actions
            values = any(VALUE in str(action.metavar) for action in chosen._actions)
            hints = (_hint(word, own, before, values) for word in rest)
            chosen.error(
                "; ".join(f"unknown argument {word!r}{hint}" for word, hint in zip(rest, hints, strict=True))
            )
        return found

    def format_usage(self) -> str:
        """As `ArgumentParser.format_usage`, without brackets around options that are `NEEDED`."""
        with self._needed():
            return super().format_usage()

    def format_help(self) -> str:
        """As `ArgumentParser.format_help`, with the usage of `format_usage`."""
        with self._needed():
            return super().format_help()

    @contextmanager
    def _needed(self) -> Iterator[None]:
        needed = [action for action in self._actions if (action.help or "").endswith(NEEDED)]
        for action in needed:
            action.required = True
        try:
            yield
        finally:
            for action in needed:
                action.required = False

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, with the nearest name, and exit with 2."""
        if found := _CHOICE.fullmatch(message):
            known = re.findall(r"[\w.-]+", found["known"])
            of, word = found["of"] or "", found["word"]
            what = f"{of} {word!r}: unknown" if of.startswith("-") else f"unknown command {word!r}"
            message = f"{what}; {_nearest(word, known)}"
        super().error(message)

    def _chosen(self, words: Sequence[str]) -> Parser:
        """The parser of the command that the words choose."""
        parser = self
        for word in words:
            for choices in parser._commands():
                if word in choices:
                    parser = choices[word]
                    break
        return parser

    def _commands(self) -> Iterator[dict[str, Parser]]:
        for action in self._actions:
            if isinstance(action, Subparsers):
                yield action.choices


def is_override(word: str) -> bool:
    """Whether a word changes the configuration: key=value, +key=value, ~key."""
    return not word.startswith("-") and ("=" in word or word.startswith("~"))


def _hint(word: str, own: Iterable[str], before: Collection[str], values: bool) -> str:
    """own: the options of the command. before: those of all commands, which stand before it.

    values: whether the command takes values of the configuration, which other programs take as options.
    """
    name = word.partition("=")[0]
    if not word.startswith("-"):
        return " (all key=value belong together)" if is_override(word) else ""
    if name in before:
        return f": {name} stands before the command"
    known = [option for option in (*own, *before) if option.startswith("--")]
    if values and not difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE):
        return f"; a value of the configuration is written {name.lstrip('-')}=VALUE, e.g. scale=smoke"
    return f"; {_nearest(name, known)}"


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
