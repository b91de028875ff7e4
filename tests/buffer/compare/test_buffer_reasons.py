"""Why a task is in one run's buffer and not in another's: both runs' own events, and the causes of rejections."""

import json

import pytest
from buffer_cases import (
    ACCEPTED,
    EASIER,
    HARDER,
    INVALID,
    PROPOSED,
    REJECTED,
    command,
    event,
    kitchen,
    record,
    rollout_lines,
)

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff, diff3, log
from rlanything.buffer.views.causes import Cause, cause, why_refused
from rlanything.buffer.views.history.log import Filter
from rlanything.core.adaptation import AcceptanceRule, outside_band

A, B, START = "one:full/seed-0", "two:full/seed-0", "one:full/seed-0@0"
CRITIC = "wrong place x3; no progress x2"


def rewrite(slot):
    return kitchen(slot, "mug", "shelf", 2)


def rejected(buffer, slot, before, after, way=EASIER, iteration=1):
    reason = outside_band(before, after)
    return event(
        buffer,
        slot,
        REJECTED,
        rewrite(slot),
        iteration=iteration,
        way=way,
        before=before,
        after=after,
        reason=reason,
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two projects whose runs begin alike. A makes slots 0 to 3 and 6 easier; B does not, each for its own reason."""
    start = TaskBuffer.start(kitchen(n, "apple", "fridge") for n in range(8))
    made = {slot: event(start, slot, ACCEPTED, rewrite(slot), way=EASIER, before=0.0, after=0.25, critic=CRITIC)
            for slot in (0, 1, 2, 3, 6)}  # fmt: skip
    own = event(start, 6, ACCEPTED, kitchen(6, "knife", "shelf"), way=EASIER, before=0.125, after=0.5)
    invalid = event(start, 1, INVALID, way=EASIER, before=0.0, reason="there is no spoon in the room")
    pending = event(start, 2, PROPOSED, rewrite(2), way=EASIER, before=0.125)
    runs = {
        "one": (
            "0.2",
            "0.8",
            [*made.values(), rejected(start, 5, 0.0, 0.875), rejected(start, 7, 1.0, 1.0, HARDER)],
        ),
        "two": (
            "0.3",
            "0.7",
            [rejected(start, 0, 0.0, 1.0), invalid, pending, rejected(start, 4, 0.25, 0.0), own],
        ),
    }
    for name, (low, high, events) in runs.items():
        folder = tmp_path / name / "runs/full/seed-0"
        record(folder / "buffer", 0, start)
        record(folder / "buffer", 1, start)
        record(folder / "buffer", 2, start.apply(events), events)
        (tmp_path / name / "params.yaml").write_text(
            f"adaptation: {{alpha_low: {low}, alpha_high: {high}}}\n"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reasons(only=""):
    return {row["slot"]: row["reason"] for row in diff(A, B, only=only)["slots"]}


MADE = (
    "A: The policy solved 0%, so it was made easier in iteration 1 and solves 25% of it; "
    "the critic said: wrong place x3; no progress x2."
)


@pytest.mark.parametrize(
    ("slot", "instead"),
    [
        (0, "A try to make it easier was rejected in iteration 1: 0.000 -> 1.000, past 0.70."),
        (1, "A try to make it easier was invalid in iteration 1: there is no spoon in the room."),
        (2, "A try to make it easier, proposed in iteration 1, is pending."),
        (3, "It has v0; no try is recorded."),
        (6, "The policy solved 12%, so it was made easier in iteration 1 and solves 50% of it."),
    ],
)
def test_of_a_version_of_a_alone_both_sides_are_told(here, capsys, slot, instead):
    said = f"{MADE} B: {instead}"
    assert reasons()[slot] == said
    assert command("diff", A, B) == 0
    assert f"    {said}\n" in capsys.readouterr().out
    assert command("diff", A, B, "--html", "page.html") == 0
    assert json.dumps(said)[1:-1].replace(">", "\\u003e") in (here / "page.html").read_text()


def test_the_reverse_tells_the_same(here):
    (row,) = (row for row in diff(B, A)["slots"] if row["slot"] == 0)
    assert row["reason"] == (
        "A: A try to make it easier was rejected in iteration 1: 0.000 -> 1.000, past 0.70. "
        + MADE.replace("A:", "B:")
    )


@pytest.mark.parametrize(
    ("solved", "said"),
    [
        (4, "It has v0, which was never outside its band [0.30, 0.70]."),
        (2, "It has v0, which was outside its band [0.30, 0.70]; no try is recorded."),
        (None, "It has v0, which was never rolled out."),
    ],
)
def test_what_the_rollouts_say_of_a_slot_that_b_never_tried(here, solved, said):
    import gzip

    run = here / "two/runs/full/seed-0"
    start = TaskBuffer.start(kitchen(n, "apple", "fridge") for n in range(8))
    slot, count = (3, solved) if solved is not None else (4, 2)
    lines = rollout_lines(slot, start.head(slot).task_id, False, count)
    (run / "rollouts").mkdir()
    (run / "rollouts/iter_0002.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
    assert reasons()[3] == f"{MADE} B: {said}"


def test_tries_are_those_of_their_side(here, capsys):
    assert command("diff", A, B, "--stat") == 0
    out = capsys.readouterr().out
    assert "; tries: A 2 rejected, 0 invalid, 0 pending; B 2 rejected, 1 invalid, 1 pending\n" in out
    assert "\nrejected: A 1 not harder than before, 1 past 0.80; B 1 unsolved, 1 past 0.70\n" in out
    assert command("diff", START, A, "--stat") == 0, "one run: only one side can have tried"
    out = capsys.readouterr().out
    assert (
        "; tries: 2 rejected, 0 invalid, 0 pending\nrejected: 1 not harder than before, 1 past 0.80\n" in out
    )


def test_only_rejected_lists_the_tries_of_both_sides(here):
    found = reasons("rejected")
    assert sorted(found) == [0, 4, 5, 7]
    assert found[5] == "A: A try to make it easier was rejected in iteration 1: 0.000 -> 0.875, past 0.80."
    assert found[4].startswith("B: ")
    sides = {row["slot"]: [refused["side"] for refused in row["refused"]] for row in diff(A, B)["slots"]}
    assert {slot: of for slot, of in sides.items() if of} == {
        0: ["b"],
        1: ["b"],
        4: ["b"],
        5: ["a"],
        7: ["a"],
    }


def test_three_ways_say_why(here, capsys):
    row = next(row for row in diff3(START, A, B)["slots"] if row["slot"] == 0)
    assert f"A: {row['a']['reason']}" == MADE
    assert row["b"]["reason"].endswith("0.000 -> 1.000, past 0.70.")
    for how in ([], ["--md"], ["--html", "page.html"]):
        assert command("diff", START, A, B, *how) == 0
    out = capsys.readouterr().out
    assert f"\n      {MADE}\n      B: {row['b']['reason']}\n" in out
    assert f"easier: put two mug in the shelf<br>{MADE.removeprefix('A: ')}" in out
    assert "past 0.70" in (here / "page.html").read_text()


RULE = AcceptanceRule(0.2, 0.8)


@pytest.mark.parametrize(
    ("way", "before", "after", "found", "said"),
    [
        (EASIER, 0.0, 0.0, Cause.UNSOLVED, "unsolved"),
        (EASIER, 0.125, 0.125, Cause.NOT_EASIER, "not easier than before"),
        (EASIER, 0.0, 1.0, Cause.PAST_HIGH, "past 0.80"),
        (EASIER, 0.0, 0.8, Cause.PAST_HIGH, "past 0.80"),
        (HARDER, 1.0, 0.0, Cause.UNSOLVED, "unsolved"),
        (HARDER, 0.875, 1.0, Cause.NOT_HARDER, "not harder than before"),
        (HARDER, 0.875, 0.125, Cause.PAST_LOW, "past 0.20"),
        (HARDER, 0.875, 0.5, None, "the record says why"),
    ],
)
def test_the_cause_of_a_rejection(way, before, after, found, said):
    start = TaskBuffer.start([kitchen(0, "mug", "shelf")])
    made = event(
        start, 0, REJECTED, rewrite(0), way=way, before=before, after=after, reason="the record says why"
    )
    assert cause(made, RULE) is found
    assert why_refused(made, RULE) == said


def test_an_inclusive_rule_has_no_cause_where_the_bound_is_met():
    start = TaskBuffer.start([kitchen(0, "mug", "shelf")])
    met = event(start, 0, REJECTED, rewrite(0), way=EASIER, before=0.0, after=0.8)
    assert cause(met, RULE) is Cause.PAST_HIGH
    assert cause(met, AcceptanceRule(0.2, 0.8, "inclusive")) is None


def test_the_log_shows_the_cause_and_finds_it(here, capsys):
    assert [row["slot"] for row in log(A, wanted=Filter(cause=Cause.PAST_HIGH))["rows"]] == [5]
    assert command("log", A, "--cause", "not harder") == 0
    (line,) = capsys.readouterr().out.splitlines()[2:]
    assert line.split()[:3] == ["1", "7", "rejected"]
    assert line.endswith("not harder than before")
    assert command("log", B, "0") == 0
    assert "    cause: past 0.70\n    instruction:" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command("log", A, "--cause", "nobody")
    assert "past alpha_high" in capsys.readouterr().err
