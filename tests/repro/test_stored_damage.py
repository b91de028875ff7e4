"""A stored run that came from elsewhere: every damaged file is named, with its line where it has one."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from rlanything.core.errors import ConfigError
from rlanything.repro.stored import StoredIteration, StoredRun

LINE = b'{"trajectory": {"slot": 0}}\n'


@pytest.fixture
def rollouts(tmp_path) -> Path:
    (tmp_path / "rollouts").mkdir()
    return tmp_path / "rollouts" / "iter_0001.jsonl.gz"


def problem(rollouts: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        _ = StoredIteration(StoredRun(rollouts.parents[1]), 0).episodes
    return str(raised.value)


def test_a_flipped_byte_names_the_file_wherever_it_is(rollouts):
    whole = gzip.compress(LINE * 20, mtime=0)
    for place in range(len(whole)):
        rollouts.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert str(rollouts) in problem(rollouts)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[" * 100_000 + b"\n", ":2: not JSON that can be read (nested too deeply)"),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}\n", ":2: nested deeper than 200 levels"),
        (b"[1]\n", ":2: expected a JSON object, found list"),
        (b"\xff\n", ":2: not JSON (byte 0 is not UTF-8)"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(rollouts, line, words):
    rollouts.write_bytes(gzip.compress(LINE + line))
    assert problem(rollouts).startswith(f"{rollouts}{words}")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"{}", "proposal: Field required (and 4 more)"),
        (b'{"proposal": false}', "trains: Field required (and 3 more)"),
        (b'{"trajectory": 3}', "proposal: Field required (and 4 more)"),
    ],
)
def test_a_record_of_another_shape_is_named_by_its_line(rollouts, record, words):
    rollouts.write_bytes(gzip.compress(record + b"\n"))
    assert problem(rollouts) == f"{rollouts}:1: {words}"


def test_a_pipe_in_place_of_the_rollouts(rollouts):
    os.mkfifo(rollouts)
    assert problem(rollouts) == f"{rollouts}: no regular file, but a pipe, a socket or a device"


def test_metrics_are_named_by_line(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"iteration": 0}\n{"iter')
    with pytest.raises(ConfigError, match=r"metrics\.jsonl:2: not JSON"):
        _ = StoredRun(tmp_path).metrics
