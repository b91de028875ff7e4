"""`diff BASE A B` and `drift`: golden answers, and that three ways agree with two two-way comparisons."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from buffer_cases import ACCEPTED, command, event, histories, kitchen, record, relaxed, write_house
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff3, drift
from rlanything.buffer.views.compare.three_way import Verdict, agreement, three_page
from rlanything.buffer.views.compare.two_way import diff_page
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.history.drift import field_shifts
from rlanything.core.adaptation import AcceptanceRule

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


GOLDEN_COMMANDS = {
    "diff3.txt": ["diff", "full/seed-0@0", "full/seed-0", "full/seed-1"],
    "diff3.json": ["diff", "full/seed-0@0", "full/seed-0", "full/seed-1", "--json"],
    "diff3.md": ["diff", "full/seed-0@0", "full/seed-0", "full/seed-1", "--md"],
    "drift.txt": ["drift", "full/seed-0"],
    "drift.json": ["drift", "full/seed-1", "--json"],
}


@pytest.mark.parametrize("name", GOLDEN_COMMANDS)
def test_golden(here, capsys, name):
    """After a wanted change: UPDATE_GOLDEN=1 pytest tests/buffer, and read the diff."""
    assert command(*GOLDEN_COMMANDS[name]) == 0
    out, err = capsys.readouterr()
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(out, encoding="utf-8")
    assert (out, err) == ((GOLDEN / name).read_text(encoding="utf-8"), "")


def source(buffer):
    made = Source("memory", AcceptanceRule())
    made.__dict__["buffer"] = buffer
    return made


@st.composite
def triples(draw):
    """A base and two histories from it; slots of each left out."""
    start, events = draw(histories())
    base = TaskBuffer.start(start)
    cut = draw(st.integers(0, len(events)))
    ends = [base, base.apply(events), base.apply(events[:cut])]
    keep = [draw(st.sets(st.sampled_from(base.slots), min_size=1)) for _ in ends]
    return [
        TaskBuffer(tuple(lineage for lineage in end.lineages if lineage.slot in kept))
        for end, kept in zip(ends, keep, strict=True)
    ]


@relaxed
@given(triples())
def test_three_ways_agree_with_two_two_ways(three):
    base, a, b = map(source, three)
    page = three_page(base, a, b)
    for side, other in (("a", a), ("b", b)):
        two = {
            row["slot"]: row["status"]
            for row in diff_page(base, other)["slots"]
            if row["status"] != "unchanged"
        }
        assert two == {
            row["slot"]: row[side]["status"] for row in page["slots"] if row[side]["status"] != "unchanged"
        }
    same = {r["slot"] for r in diff_page(a, b)["slots"] if r["status"] != "unchanged"}
    for row in page["slots"]:
        if row["verdict"] == Verdict.ALIKE and row["a"]["status"] != "removed":
            assert row["slot"] not in same
    assert sum(page["counts"][verdict.value] for verdict in Verdict) == page["counts"]["slots"]


@relaxed
@given(triples())
def test_three_ways_mirror(three):
    base, a, b = map(source, three)
    there, back = three_page(base, a, b)["counts"], three_page(base, b, a)["counts"]
    assert there[Verdict.ONLY_A] == back[Verdict.ONLY_B]
    assert {k: v for k, v in there.items() if "only" not in k} == {
        k: v for k, v in back.items() if "only" not in k
    }


def test_kappa_is_zero_at_chance_and_one_at_full_agreement():
    assert agreement([("x", "x"), ("y", "y")])["kappa"] == 1
    even = agreement([(a, b) for a in "xy" for b in "xy"])
    assert (even["observed"], even["chance"], even["kappa"]) == (0.5, 0.5, 0.0)
    assert agreement([("x", "x")])["kappa"] is None
    assert agreement([])["observed"] is None


def test_three_way_options_and_exit_code(here, capsys):
    names = ["full/seed-0@0", "full/seed-0", "full/seed-1"]
    assert command("diff", *names, "--exit-code") == 1
    assert command("diff", names[0], names[0], names[0], "--exit-code") == 0
    assert command("diff", *names, "--stat") == 2
    assert command("diff", *names, *names) == 2
    assert "6 buffers were named; diff compares two, or two with their base" in capsys.readouterr().err
    verdicts = Counter(row["verdict"] for row in diff3(*names)["slots"])
    assert verdicts == {"changed alike": 1, "other way": 1, "only in B": 1}


def test_drift_warns_when_tasks_collapse(here):
    start = TaskBuffer.start(kitchen(n, f"thing{n}", "cabinet") for n in range(12))
    same = kitchen(1, "mug", "shelf")
    events = [event(start, n, ACCEPTED, same, iteration=0) for n in range(8)]
    record(here / "runs/flat/seed-0/buffer", 0, start)
    record(here / "runs/flat/seed-0/buffer", 1, start.apply(events), events)
    page = drift("flat/seed-0")
    assert page["warnings"][0] == "collapse: 5 distinct tasks are left of 12"
    assert page["duplicates"][0]["kind"] == "same task"
    assert page["duplicates"][0]["slots"] == list(range(8))
    assert page["iterations"][0]["lexical_distance"] == 0
    assert page["iterations"][1]["moved"] == 8
    assert json.dumps(page) == json.dumps(drift("flat/seed-0")), "the resampling has a seed"


def test_only_a_shift_with_a_direction_is_one():
    things = ["mug", "apple"]
    old = [kitchen(n, things[n % 2], "shelf") for n in range(40)]
    mixed = [kitchen(n, things[(n + 1) % 2], "shelf") for n in range(40)]
    moved = [kitchen(n, "mug", "shelf") for n in range(40)]
    assert {row["field"]: row["p"] for row in field_shifts(old, mixed, 0)}["goal.object"] == 1
    assert {row["field"]: row["p"] for row in field_shifts(old, moved, 0)}["goal.object"] < 0.01


def test_drift_of_nothing(here, capsys):
    record(here / "none", 0, TaskBuffer.start([]))
    assert command("drift", "none") == 2
    assert "the buffer is empty, it has no slots" in capsys.readouterr().err
    record(here / "one", 0, TaskBuffer.start([kitchen(0, "mug", "shelf")]))
    assert command("drift", "one") == 0
