"""Records are written whole, and a damaged file is named with its line and the command that makes it again."""

from __future__ import annotations

import gzip

import pytest

from rlanything.core.errors import ConfigError
from rlanything.files.reader import FileError
from rlanything.files.records import (
    metric_of,
    read_iteration,
    read_lines,
    read_metrics,
    whole_metric,
    write_json,
    write_lines,
)

RECORDS = [{"a": 1, "text": "Zürich → 東京"}, {"b": [1, 2.5, None]}]


@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    write_lines(tmp_path / "new" / name, RECORDS)
    assert list(read_lines(tmp_path / "new" / name, "make it")) == RECORDS


def test_the_same_records_give_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    write_lines(tmp_path / "one.jsonl.gz", RECORDS)
    monkeypatch.setattr("time.time", lambda: 0.0)
    write_lines(tmp_path / "two.jsonl.gz", RECORDS)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_a_failed_record_leaves_the_old_lines(tmp_path):
    path = tmp_path / "records.jsonl"
    write_lines(path, RECORDS)
    with pytest.raises(ValueError, match="JSON"):
        write_lines(path, [{"a": 1}, {"a": float("nan")}])
    assert list(read_lines(path, "make it")) == RECORDS


def test_json_is_sorted_and_ends_with_a_newline(tmp_path):
    write_json(tmp_path / "x.json", {"b": "ü", "a": 1})
    assert (tmp_path / "x.json").read_text() == '{\n  "a": 1,\n  "b": "ü"\n}\n'


def test_a_missing_file_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.jsonl: no such file; make it with `rlanything tasks`"):
        list(read_lines(tmp_path / "gone.jsonl", "rlanything tasks"))


def test_a_truncated_last_line_is_named_with_file_and_line(tmp_path):
    path = tmp_path / "records.jsonl"
    write_lines(path, RECORDS)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ConfigError, match=r"records\.jsonl:2: not JSON .*; make it again with `make it`"):
        list(read_lines(path, "make it"))


def test_a_corrupt_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    with pytest.raises(ConfigError, match=r"records\.jsonl:2: not JSON"):
        list(read_lines(path, "make it"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-10],
        lambda raw: b"plain text",
        lambda raw: raw[:-5] + bytes([raw[-5] ^ 255]) + raw[-4:],
        lambda raw: raw[:12] + b"\xff\xff" + raw[14:],
    ],
    ids=["truncated", "no gzip", "wrong checksum", "broken inside"],
)
def test_a_damaged_archive_is_named(tmp_path, damage):
    path = tmp_path / "records.jsonl.gz"
    write_lines(path, RECORDS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ConfigError, match=r"records\.jsonl\.gz: cannot be read"):
        list(read_lines(path, "make it"))


def test_text_that_is_no_utf8_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(ConfigError, match=r"records\.jsonl:1: not JSON \(byte 7 is not UTF-8\)"):
        list(read_lines(path, "make it"))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_unicode_line_separators_in_a_text_do_not_end_a_record(tmp_path, separator):
    write_lines(tmp_path / "x.jsonl", [{"text": f"one{separator}two"}])
    assert list(read_lines(tmp_path / "x.jsonl", "make it")) == [{"text": f"one{separator}two"}]


def test_an_archive_needs_no_other_program(tmp_path):
    write_lines(tmp_path / "x.jsonl.gz", RECORDS)
    assert gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()).count(b"\n") == 2


def test_what_was_not_measured_is_none():
    row = {"iteration": 2, "mu": float("nan"), "accuracy": None, "accepted": 3}
    assert [metric_of(row, key, "x") for key in ("mu", "accuracy", "gone", "accepted")] == [
        None,
        None,
        None,
        3.0,
    ]
    assert whole_metric(row, "accepted", "x") == 3


ABSURD = ["Infinity", "-Infinity", "1e16", "1" + "0" * 400, "true", '"many"', "[3]"]


@pytest.mark.parametrize("said", ABSURD)
@pytest.mark.parametrize("live", [False, True])
def test_what_is_no_number_of_a_run_is_named_with_file_iteration_and_key(tmp_path, said, live):
    path = tmp_path / ("metrics.json" if live else "metrics.jsonl")
    row = f'{{"iteration": 7, "accepted": {said}}}\n'
    path.write_text(row if live else '{"iteration": 6, "accepted": 1}\n' + row)
    with pytest.raises(FileError) as caught:
        (read_iteration if live else read_metrics)(path)
    where = path if live else f"{path}:2"
    shown = "1e+16" if said == "1e16" else said[:40]
    limits = "it must be a number from -1e+15 to 1e+15, or null"
    assert str(caught.value) == f"{where}: iteration 7: 'accepted' is {shown}; {limits}"


@pytest.mark.parametrize("value", [None, float("nan"), -1, 2.5, float("inf"), True, "3", 11])
def test_what_counts_nothing_is_named(value):
    with pytest.raises(FileError, match=r"^x:1: iteration 4: 'accepted' is .*; it must be a"):
        whole_metric({"iteration": 4, "accepted": value}, "accepted", "x:1", most=10)
