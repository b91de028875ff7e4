"""The operations that problems consist of: sentences, a line of Python, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

VOWELS = "aeiouAEIOU"
MOST = 20
"""Longest list or text that an operation may make, and the largest number that is counted up to."""


class Kind(StrEnum):
    """The kind of value between two operations."""

    NUMBER = "number"
    NUMBERS = "numbers"
    TEXT = "text"


@dataclass(frozen=True)
class Operation:
    """One step. `{k}` in the texts is a constant from `constants` (least, most); None: there is none.

    say: ways to ask for it. code: the line of Python. do: what it computes; raises `ValueError` or `IndexError`
    where it is not defined.
    """

    name: str
    takes: Kind
    gives: Kind
    say: tuple[str, ...]
    code: str
    do: Callable[[Any, int], Any]
    constants: tuple[int, int] | None = None


INTRODUCTIONS = {
    Kind.NUMBER: "Read a number.",
    Kind.NUMBERS: "Read a list of numbers.",
    Kind.TEXT: "Read a line of text.",
}
READ = {
    Kind.NUMBER: "x = int(input())",
    Kind.NUMBERS: "x = [int(v) for v in input().split()]",
    Kind.TEXT: "x = input()",
}
ENDING = "Print the result."
WRITE = {Kind.NUMBER: "print(x)", Kind.NUMBERS: "print(*x)", Kind.TEXT: "print(x)"}
SMALL, SHORT = (2, 9), (2, 4)
_N, _L, _T = Kind.NUMBER, Kind.NUMBERS, Kind.TEXT


def _upto(x: int) -> range:
    if not 1 <= x <= MOST:
        raise ValueError(f"{x} is not from 1 to {MOST}")
    return range(1, x + 1)


def _binary(x: int) -> str:
    if x < 0:
        raise ValueError("below 0")
    return bin(x)[2:]


def _sums(x: list[int], k: int) -> list[int]:
    return [sum(x[: i + 1]) for i in range(len(x))]


_NUMBER = (
    Operation("add", _N, _N, ("Add {k}.", "Make it {k} larger."), "x = x + {k}", lambda x, k: x + k, SMALL),
    Operation("subtract", _N, _N, ("Subtract {k}.", "Make it {k} smaller."), "x = x - {k}", lambda x, k: x - k, SMALL),
    Operation("multiply", _N, _N, ("Multiply by {k}.", "Take it {k} times."), "x = x * {k}", lambda x, k: x * k, SMALL),
    Operation("divide", _N, _N, ("Divide by {k}, rounding down.", "Count how often {k} fits in."), "x = x // {k}",
              lambda x, k: x // k, SMALL),
    Operation("remainder", _N, _N, ("Take the remainder by {k}.", "Keep what division by {k} leaves."), "x = x % {k}",
              lambda x, k: x % k, SMALL),
    Operation("square", _N, _N, ("Square it.", "Multiply it by itself."), "x = x * x", lambda x, k: x * x),
    Operation("negate", _N, _N, ("Negate it.", "Change its sign."), "x = -x", lambda x, k: -x),
    Operation("absolute", _N, _N, ("Take its absolute value.", "Drop its sign."), "x = abs(x)", lambda x, k: abs(x)),
    Operation("at most", _N, _N, ("Limit it to at most {k}.", "If above {k}, make it {k}."), "x = min(x, {k})",
              min, SMALL),
    Operation("at least", _N, _N, ("Raise it to at least {k}.", "If below {k}, make it {k}."), "x = max(x, {k})",
              max, SMALL),
    Operation("digits", _N, _L, ("List its digits.", "Split it into digits."), "x = [int(d) for d in str(abs(x))]",
              lambda x, k: [int(d) for d in str(abs(x))]),
    Operation("count up", _N, _L, ("List the numbers from 1 to it.", "Count up from 1 to it."),
              "x = list(range(1, x + 1))", lambda x, k: list(_upto(x))),
    Operation("divisors", _N, _L, ("List its divisors.", "List the numbers that divide it."),
              "x = [d for d in range(1, x + 1) if x % d == 0]", lambda x, k: [d for d in _upto(x) if x % d == 0]),
    Operation("multiples", _N, _L, ("List its first {k} multiples.", "List it times 1 to {k}."),
              "x = [x * i for i in range(1, {k} + 1)]", lambda x, k: [x * i for i in range(1, k + 1)], SHORT),
    Operation("parity", _N, _T, ("Say even or odd.", "Tell whether it is even or odd."),
              'x = "odd" if x % 2 else "even"', lambda x, k: "odd" if x % 2 else "even"),
    Operation("stars", _N, _T, ("Write that many stars.", "Make a row of as many stars."), 'x = "*" * x',
              lambda x, k: "*" * len(_upto(x))),
    Operation("binary", _N, _T, ("Write it in binary.", "Turn it into binary digits."), "x = bin(x)[2:]",
              lambda x, k: _binary(x)),
)  # fmt: skip

_NUMBERS = (
    Operation("keep even", _L, _L, ("Keep the even ones.", "Drop the odd ones."), "x = [v for v in x if v % 2 == 0]",
              lambda x, k: [v for v in x if v % 2 == 0]),
    Operation("keep odd", _L, _L, ("Keep the odd ones.", "Drop the even ones."), "x = [v for v in x if v % 2 == 1]",
              lambda x, k: [v for v in x if v % 2 == 1]),
    Operation("keep above", _L, _L, ("Keep those above {k}.", "Drop those up to {k}."), "x = [v for v in x if v > {k}]",
              lambda x, k: [v for v in x if v > k], SMALL),
    Operation("keep below", _L, _L, ("Keep those below {k}.", "Drop those from {k} on."),
              "x = [v for v in x if v < {k}]", lambda x, k: [v for v in x if v < k], SMALL),
    Operation("keep multiples", _L, _L, ("Keep the multiples of {k}.", "Keep those that {k} divides."),
              "x = [v for v in x if v % {k} == 0]", lambda x, k: [v for v in x if v % k == 0], SHORT),
    Operation("add to each", _L, _L, ("Add {k} to each.", "Make each {k} larger."), "x = [v + {k} for v in x]",
              lambda x, k: [v + k for v in x], SMALL),
    Operation("multiply each", _L, _L, ("Multiply each by {k}.", "Take each {k} times."), "x = [v * {k} for v in x]",
              lambda x, k: [v * k for v in x], SMALL),
    Operation("square each", _L, _L, ("Square each.", "Multiply each by itself."), "x = [v * v for v in x]",
              lambda x, k: [v * v for v in x]),
    Operation("remainder of each", _L, _L,
              ("Take the remainder of each by {k}.", "Divide each by {k} and keep the rest."),
              "x = [v % {k} for v in x]", lambda x, k: [v % k for v in x], SMALL),
    Operation("sort", _L, _L, ("Sort them.", "Put the smallest first."), "x = sorted(x)", lambda x, k: sorted(x)),
    Operation("sort down", _L, _L, ("Sort them in descending order.", "Put the largest first."),
              "x = sorted(x, reverse=True)", lambda x, k: sorted(x, reverse=True)),
    Operation("reverse", _L, _L, ("Reverse the list.", "Turn the list around."), "x = x[::-1]", lambda x, k: x[::-1]),
    Operation("unique", _L, _L, ("Remove duplicates.", "Keep the first of equal ones."), "x = list(dict.fromkeys(x))",
              lambda x, k: list(dict.fromkeys(x))),
    Operation("first", _L, _L, ("Keep the first {k}.", "Drop all but the first {k}."), "x = x[:{k}]",
              lambda x, k: x[:k], SHORT),
    Operation("last", _L, _L, ("Keep the last {k}.", "Drop all but the last {k}."), "x = x[-{k}:]",
              lambda x, k: x[-k:], SHORT),
    Operation("every second", _L, _L, ("Keep every second one.", "Keep the first, third and so on."), "x = x[::2]",
              lambda x, k: x[::2]),
    Operation("running sums", _L, _L, ("Take the running sums.", "Replace each by the sum so far."),
              "x = [sum(x[:i + 1]) for i in range(len(x))]", _sums),
    Operation("differences", _L, _L, ("Take the differences of neighbours.", "List the steps between neighbours."),
              "x = [b - a for a, b in zip(x, x[1:])]", lambda x, k: [b - a for a, b in pairwise(x)]),
    Operation("sum", _L, _N, ("Add them up.", "Take their sum."), "x = sum(x)", lambda x, k: sum(x)),
    Operation("largest", _L, _N, ("Take the largest.", "Find their maximum."), "x = max(x)", lambda x, k: max(x)),
    Operation("smallest", _L, _N, ("Take the smallest.", "Find their minimum."), "x = min(x)", lambda x, k: min(x)),
    Operation("count", _L, _N, ("Count them.", "Take the length of the list."), "x = len(x)", lambda x, k: len(x)),
    Operation("count above", _L, _N, ("Count those above {k}.", "Tell how many exceed {k}."),
              "x = len([v for v in x if v > {k}])", lambda x, k: len([v for v in x if v > k]), SMALL),
    Operation("range", _L, _N, ("Subtract the smallest from the largest.", "Take the range of the list."),
              "x = max(x) - min(x)", lambda x, k: max(x) - min(x)),
    Operation("front", _L, _N, ("Take the first one.", "Take the number in front."), "x = x[0]", lambda x, k: x[0]),
    Operation("back", _L, _N, ("Take the last one.", "Take the number at the end."), "x = x[-1]", lambda x, k: x[-1]),
    Operation("join", _L, _T, ("Join them with dashes.", "Write them with dashes between."),
              'x = "-".join(map(str, x))', lambda x, k: "-".join(map(str, x))),
)  # fmt: skip

_TEXT = (
    Operation("upper", _T, _T, ("Write it in capitals.", "Make it upper case."), "x = x.upper()",
              lambda x, k: x.upper()),
    Operation("swap case", _T, _T, ("Swap upper and lower case.", "Turn small letters into capitals and back."),
              "x = x.swapcase()", lambda x, k: x.swapcase()),
    Operation("reverse text", _T, _T, ("Reverse the text.", "Write it backwards."), "x = x[::-1]",
              lambda x, k: x[::-1]),
    Operation("double letters", _T, _T, ("Double every character.", "Write every character twice."),
              'x = "".join(c + c for c in x)', lambda x, k: "".join(c + c for c in x)),
    Operation("first letters", _T, _T, ("Keep the first {k} characters.", "Cut it after {k} characters."),
              "x = x[:{k}]", lambda x, k: x[:k], SHORT),
    Operation("last letters", _T, _T, ("Keep the last {k} characters.", "Drop all but the last {k} characters."),
              "x = x[-{k}:]", lambda x, k: x[-k:], SHORT),
    Operation("no vowels", _T, _T, ("Remove the vowels.", "Drop every vowel."),
              'x = "".join(c for c in x if c not in "aeiouAEIOU")',
              lambda x, k: "".join(c for c in x if c not in VOWELS)),
    Operation("vowels", _T, _T, ("Keep the vowels.", "Drop all but the vowels."),
              'x = "".join(c for c in x if c in "aeiouAEIOU")', lambda x, k: "".join(c for c in x if c in VOWELS)),
    Operation("first word", _T, _T, ("Take the first word.", "Drop all but the first word."), "x = x.split()[0]",
              lambda x, k: x.split()[0]),
    Operation("last word", _T, _T, ("Take the last word.", "Drop all but the last word."), "x = x.split()[-1]",
              lambda x, k: x.split()[-1]),
    Operation("length", _T, _N, ("Count the characters.", "Take the length of the text."), "x = len(x)",
              lambda x, k: len(x)),
    Operation("count vowels", _T, _N, ("Count the vowels.", "Tell how many vowels there are."),
              'x = sum(c in "aeiouAEIOU" for c in x)', lambda x, k: sum(c in VOWELS for c in x)),
    Operation("count words", _T, _N, ("Count the words.", "Tell how many words there are."), "x = len(x.split())",
              lambda x, k: len(x.split())),
    Operation("different", _T, _N, ("Count the different characters.", "Tell how many characters differ."),
              "x = len(set(x))", lambda x, k: len(set(x))),
    Operation("word lengths", _T, _L, ("List the lengths of the words.", "Take the length of every word."),
              "x = [len(w) for w in x.split()]", lambda x, k: [len(w) for w in x.split()]),
)  # fmt: skip

OPERATIONS = {operation.name: operation for operation in (*_NUMBER, *_NUMBERS, *_TEXT)}
"""All of them, by name."""
