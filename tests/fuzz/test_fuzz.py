"""What may come from strangers is read or refused with a clear error: inputs that failed once, and a short search.

A long search: `make fuzz MINUTES=10`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fuzz_search import kind_of, search
from fuzz_target import CORPUS, Target, file_of
from fuzz_targets import TARGETS

from rlanything.core.errors import UserError

KEPT = sorted(path for path in CORPUS.glob("*/*"))


@pytest.mark.parametrize("name", TARGETS)
def test_valid_inputs_are_read(name):
    assert [TARGETS[name].attempt(data) for data in TARGETS[name].valid] == [""] * len(TARGETS[name].valid)


@pytest.mark.parametrize("path", [pytest.param(p, id=f"{p.parent.name}-{p.name}") for p in KEPT])
def test_an_input_that_was_badly_treated_once_is_not_any_more(path):
    TARGETS[path.parent.name].attempt(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_are_read_or_refused(name, monkeypatch):
    monkeypatch.setattr("fuzz_search.LONGEST_S", 120.0)  # whoever shares the machine must not fail it
    target = TARGETS[name]
    found = search(target, lambda found: found.tried >= target.examples, batch=target.examples)
    assert {kind: data[:500] for kind, data in found.failures.items()} == {}
    assert found.tried >= target.examples


def _target(read, file="x.json"):
    return Target(
        "toy", file_of("x.json", read), lambda: [b'{"a": [1, 2, 3], "b": "text"}'], "json", file=file
    )


def _found(target: Target) -> dict[str, bytes]:
    return search(target, lambda found: found.tried >= 200 or bool(found.failures), batch=100).failures


def test_a_reader_that_lets_an_exception_through_is_found_and_the_input_made_small():
    def read(path: Path) -> None:
        data = path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise UserError(f"{path}: no text") from None
        if re.search(r"\[\s*\[", text):
            raise KeyError("a list in a list")

    found = _found(_target(read))
    assert list(found) == ["KeyError in test_fuzz.py:read"]
    assert len(next(iter(found.values()))) < 400  # the longest single change


def test_a_message_without_the_file_is_a_failure():
    def read(path: Path) -> None:
        if len(path.read_bytes()) % 2:
            raise UserError("it is odd")

    assert list(_found(_target(read))) == ["BadError in fuzz_target.py:attempt"]
    assert _found(_target(read, file="")) == {}


def test_an_endless_reader_is_stopped(monkeypatch):
    monkeypatch.setattr("fuzz_search.LONGEST_S", 0.3)

    def read(path: Path) -> None:
        while b"null" in path.read_bytes():
            pass

    assert {kind.partition(" ")[0] for kind in _found(_target(read))} == {"Hang"}


def test_failures_are_told_apart_by_where_they_are():
    def one() -> None:
        raise KeyError

    with pytest.raises(KeyError) as raised:
        one()
    assert kind_of(raised.value) == "KeyError in test_fuzz.py:one"
