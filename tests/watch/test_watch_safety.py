"""Folders of strangers: no character reaches the terminal as a control, and nothing in them ends the view."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import watch_cases as cases
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.cli import main
from rlanything.watch import tolerant
from rlanything.watch.text import words


def shown(root, capsys, *names: str) -> str:
    for more in ([], ["--json"]):
        assert main(["--root", str(root), "watch", *names, *more]) == 0
    out = capsys.readouterr().out
    json.loads(out[out.index("{\n") :], parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)
    return out


def test_names_and_phases_of_a_stranger_are_escaped(tmp_path, capsys):
    evil = cases.EVIL.replace("/", "")
    place = cases.arm(tmp_path / "theirs", name=evil)
    folder = cases.seed(place, **{f"panel/{cases.EVIL}": 0.5})
    now = {"iteration": 1, "phase": cases.EVIL, "calls": 1, "since": 0, "at": 0}
    (folder / "now.json").write_text(json.dumps(now))
    lap = {**cases.lap(4), "phases": {cases.EVIL: {"seconds": 3.0}}}
    (folder / "timing.jsonl").write_text(json.dumps(lap) + "\n")
    out = shown(tmp_path, capsys, "theirs")
    assert "owned" in out
    assert "[bold]x" in out, "square brackets are no markup"


@pytest.mark.parametrize(
    "value",
    [10**400, -1, 0, 1.5, "many", None, [], {}, True, float("inf"), 1e308],
)
def test_numbers_of_a_stranger_end_nothing(tmp_path, capsys, value):
    place = cases.arm(tmp_path)
    config = {"train": {"iterations": value, "seeds": value}, "evaluate": {"curve_tasks": value}}
    (place / "origin.json").write_text(json.dumps({"config": config}))
    folder = cases.seed(place, **dict.fromkeys(cases.row(0), value))
    lap = {"iteration": value, "seconds": value, "phases": {"rollout/generate": {"seconds": value}}}
    (folder / "timing.jsonl").write_text(json.dumps(lap) + "\n" + json.dumps({"phases": value}) + "\n")
    now = {"iteration": value, "phase": "learn", "calls": value, "since": value, "at": value}
    (folder / "now.json").write_text(json.dumps(now))
    shown(tmp_path, capsys)


def test_any_number_of_seeds_and_workers_is_planned_in_an_instant(tmp_path, capsys):
    params = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text())
    params["train"] |= {"seeds": 500_000_000, "workers": 200_000_000}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    cases.seed(cases.arm(tmp_path))
    begun = time.monotonic()
    shown(tmp_path, capsys)
    assert time.monotonic() - begun < 20


def test_numbers_that_overflow_together_end_nothing(tmp_path, capsys):
    folder = cases.seed(cases.arm(tmp_path), published=3)
    for k, values in enumerate(
        ({"accuracy": 1e308}, {"accuracy": -1e308}, {"accepted": 1e300, "accept_rate": 1e-300})
    ):
        (folder / "iterations" / f"{k:04d}" / "metrics.json").write_text(json.dumps(cases.row(k, **values)))
    shown(tmp_path, capsys)


def test_names_of_a_stranger_are_escaped_in_errors(tmp_path, capsys):
    cases.finished(tmp_path, "outc\x1b[2Jome")
    assert main(["--root", str(tmp_path), "watch", "outcome"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_files_that_are_none_are_not_opened(tmp_path, capsys):
    folder = cases.seed(cases.arm(tmp_path), published=2)
    for name in ("now.json", "timing.jsonl", "lock", "iterations/0001/metrics.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    (folder.parent / "origin.json").write_text("[" * 100_000)
    shown(tmp_path, capsys)


def test_a_link_inside_the_project_s_folder_is_not_followed(tmp_path, capsys):
    (tmp_path / ".rla").mkdir()
    (tmp_path / ".rla" / "round").symlink_to(tmp_path / ".rla")
    shown(tmp_path, capsys)


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_bytes_are_rows_or_nothing(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "metrics.jsonl"
    path.write_bytes(data)
    for found in tolerant.lines(path):
        assert all(value is None or isinstance(value, float) for value in tolerant.numbers(found).values())
    assert isinstance(tolerant.mapping(path), dict)


@given(st.lists(st.none() | st.floats(-tolerant.LARGEST, tolerant.LARGEST)), st.integers(0, 30))
def test_a_curve_fits_and_keeps_its_order(values, width):
    found = words.spark(values, width)
    measured = [value for value in values if value is not None]
    assert len(found) == min(len(measured), width)
    if 0 < len(measured) <= width:
        drawn = sorted((value, words.BLOCKS.index(mark)) for value, mark in zip(measured, found, strict=True))
        assert [level for _, level in drawn] == sorted(level for _, level in drawn)
