"""Tokens as text: what is shown where a tokenizer cannot be read, or makes too much of them."""

from __future__ import annotations

import errno
import os
from multiprocessing.context import ForkProcess

import pytest

from rlanything.cli import main
from rlanything.rollouts import decoding

pytestmark = pytest.mark.integration
ARM, SEED = "full", "seed-0"


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000, None])
def test_without_a_tokenizer_that_can_be_read_the_rest_is_shown(root, capsys, content):
    for role in ("policy", "reward"):
        file = root / "runs" / ARM / SEED / "checkpoints" / role / "tokenizer.json"
        file.unlink() if content is None else file.write_text(content)
    assert main(["--root", str(root), "rollouts", "show", ARM]) == 0
    out = capsys.readouterr().out
    assert "note: " in out
    assert "not decoded" in out
    assert "\n  action  " in out
    assert "\n  vote    " in out


def test_texts_without_end_are_not_printed(root, capsys, monkeypatch):
    """A vocabulary can hold tokens of any length."""
    monkeypatch.setattr(decoding, "LONGEST", 10)
    assert main(["--root", str(root), "rollouts", "show", ARM]) == 0
    out = capsys.readouterr().out
    assert "tokens are not decoded: their texts have more than 10 characters" in out
    assert "\n  action  " in out


def test_a_machine_without_another_process_shows_the_rest(root, capsys, monkeypatch):
    def refuse(self: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(ForkProcess, "start", refuse)
    assert main(["--root", str(root), "rollouts", "show", ARM]) == 0
    out = capsys.readouterr().out
    assert f"no process can be started to read the tokenizer ({os.strerror(errno.EAGAIN)})" in out
    assert "\n  action  " in out
