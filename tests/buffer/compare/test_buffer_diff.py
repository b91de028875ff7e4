"""`rlanything buffer diff`: golden answers, what must hold for any two buffers, and what cannot be compared."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from buffer_cases import (
    ACCEPTED,
    command,
    event,
    histories,
    kitchen,
    patched,
    rechained,
    record,
    relaxed,
    task,
    write_house,
    write_rollouts,
    write_story,
)
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import commands, diff, export
from rlanything.buffer.views.compare.two_way import diff_page
from rlanything.buffer.views.find import measurements
from rlanything.buffer.views.find.source import Source
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.types import Task

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    for seed in range(2):
        write_rollouts(tmp_path / "runs" / "full" / f"seed-{seed}")
    write_story(tmp_path / "runs" / "nasty" / "seed-0")
    (tmp_path / "params.yaml").write_text("adaptation: {alpha_low: 0.3, alpha_high: 0.7}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


GOLDEN_COMMANDS = {
    "diff.txt": ["full/seed-0@0", "full/seed-0"],
    "diff_stat.txt": ["full/seed-0", "--stat", "--by", "object"],
    "diff_rejected.txt": ["full/seed-0", "--only", "rejected"],
    "diff_runs.txt": ["full/seed-0", "full/seed-1"],
    "diff.md": ["full/seed-0", "--md"],
    "diff.json": ["full/seed-0", "full/seed-1", "--json"],
    "diff_nasty.txt": ["nasty/seed-0"],
    "diff_nasty.md": ["nasty/seed-0", "--md"],
}


@pytest.mark.parametrize("name", GOLDEN_COMMANDS)
def test_golden(here, capsys, name):
    """After a wanted change: UPDATE_GOLDEN=1 pytest tests/buffer, and read the diff."""
    assert command("diff", *GOLDEN_COMMANDS[name]) == 0
    out, err = capsys.readouterr()
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(out, encoding="utf-8")
    assert (out, err) == (path.read_text(encoding="utf-8"), "")
    assert all(line.isprintable() for line in out.split("\n"))


def source(buffer):
    """A buffer that lies in no file."""
    made = Source("memory", AcceptanceRule())
    made.__dict__["buffer"] = buffer
    return made


@st.composite
def pairs(draw):
    """Two buffers: histories of their own, of the same start or not, slots of each left out."""
    start, events = draw(histories())
    first, second = TaskBuffer.start(start), TaskBuffer.start(start)
    cut = draw(st.integers(0, len(events)))
    a = first.apply(events[:cut])
    b = draw(st.sampled_from([second.apply(events), TaskBuffer.start(draw(histories())[0])]))
    keep = [draw(st.sets(st.sampled_from(x.slots))) for x in (a, b)]
    return tuple(
        TaskBuffer(tuple(lineage for lineage in x.lineages if lineage.slot in kept))
        for x, kept in zip((a, b), keep, strict=True)
    )


@relaxed
@given(pairs())
def test_a_buffer_does_not_differ_from_itself(two):
    for buffer in two:
        page = diff_page(source(buffer), source(buffer))
        assert page["slots"] == []
        assert page["counts"]["unchanged"] == page["counts"]["slots"] == len(buffer)


@relaxed
@given(pairs())
def test_the_difference_applied_to_the_first_gives_the_second(two):
    a, b = two
    page = json.loads(json.dumps(diff_page(source(a), source(b))))
    assert patched(a, page["slots"]).digest == b.digest


@relaxed
@given(pairs())
def test_counts_add_up_and_match_the_slots(two):
    page = diff_page(source(two[0]), source(two[1]))
    counts = page["counts"]
    statuses = ("unchanged", "harder", "easier", "both_ways", "replaced", "added", "removed")
    assert sum(counts[status] for status in statuses) == counts["slots"]
    assert counts["slots"] == len(set(two[0].slots) | set(two[1].slots))
    for status in statuses[1:]:
        assert counts[status] == sum(row["status"].replace(" ", "_") == status for row in page["slots"])
    for side, buffer in (("old", two[0]), ("new", two[1])):
        told = page["difficulty"]
        assert sum(told[side]) + told["unmeasured"][side] == len(buffer)


@relaxed
@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_slots_does_not_matter(two, rng):
    shuffled = [list(buffer.lineages) for buffer in two]
    for lineages in shuffled:
        rng.shuffle(lineages)
    again = [TaskBuffer(tuple(lineages)) for lineages in shuffled]
    assert diff_page(*map(source, again)) == diff_page(*map(source, two))


@relaxed
@given(pairs())
def test_back_is_the_mirror_of_there(two):
    there = diff_page(source(two[0]), source(two[1]))["counts"]
    back = diff_page(source(two[1]), source(two[0]))["counts"]
    mirror = {"harder": "easier", "easier": "harder", "added": "removed", "removed": "added"}
    for key in (
        "unchanged",
        "harder",
        "easier",
        "both_ways",
        "replaced",
        "added",
        "removed",
        "more_than_once",
    ):
        assert there[key] == back[mirror.get(key, key)]


def test_a_difference_fits_one_buffer_only(here):
    page = diff("full/seed-0@0", "full/seed-0")
    other = TaskBuffer.start([kitchen(n, "spoon", "shelf") for n in range(12)])
    after = other.apply([])
    assert patched(after, [row for row in page["slots"] if not row["patch"]["gone"]])
    back = diff("full/seed-0", "full/seed-0@0")
    with pytest.raises(ValueError, match="slot 0: the difference was not made from this buffer"):
        patched(other, back["slots"])


@pytest.mark.parametrize(
    ("names", "pending"),
    [
        (("nasty/seed-0@0", "nasty/seed-0@1"), 2),
        (("nasty/seed-0@1", "nasty/seed-0@2"), 0),
        (("nasty/seed-0@1", "nasty/seed-0@4"), 1),  # decisions on older proposals do not hide it
        (("nasty/seed-0@0", "nasty/seed-0@4"), 1),
    ],
)
def test_pending_are_the_new_proposals_without_a_decision(here, names, pending):
    assert diff(*names)["counts"]["pending"] == pending


def test_to_replace_a_first_task_is_one_step(here):
    start, other = (TaskBuffer.start([task(n)]) for n in (0, 5))
    harder = other.apply([event(other, 0, ACCEPTED, task(6))])
    for old, new, slots in ((start, other, 0), (start, harder, 1), (harder, start, 1)):
        counts = diff_page(source(old), source(new))["counts"]
        assert (counts["replaced"], counts["more_than_once"]) == (1, slots)


def test_a_run_compared_with_its_exported_end_has_no_new_tries(here, capsys):
    """A file has no events, so it cannot be told which of the run's were before it."""
    export("full/seed-0", here / "end.parquet")
    for names in (("end.parquet", "full/seed-0"), ("full/seed-0", "end.parquet")):
        assert command("diff", *names) == 0
        out = capsys.readouterr().out
        assert "\n12 slots: 12 unchanged, 0 harder, 0 easier, 0 added, 0 removed; 0 more than once\n" in out
        assert "refused" not in out
        page = diff(*names)
        assert page["slots"] == []
        assert [page["counts"][kind] for kind in ("tries", "rejected", "invalid", "pending")] == [
            0,
            *[None] * 3,
        ]


def test_what_the_critic_said_after_a_file_is_told(here):
    export("full/seed-0@1", here / "before.parquet")
    rows = diff("before.parquet", "full/seed-0")["slots"]
    assert "; the critic said: opened the fridge" in next(row["reason"] for row in rows if row["slot"] == 0)


def test_only_and_exit_code(here, capsys):
    for only, slots in (
        *(("harder", [0, 3]), ("easier", []), ("changed", [0, 3])),
        *(("rejected", [6]), ("invalid", [5])),
    ):
        assert [row["slot"] for row in diff("full/seed-0", only=only)["slots"]] == slots
    assert command("diff", "full/seed-0", "--exit-code") == 1
    assert command("diff", "full/seed-0", "--exit-code", "--stat") == 1
    assert command("diff", "full/seed-0", "--exit-code", "--only", "easier") == 0
    assert command("diff", "full/seed-0@1", "full/seed-0@1", "--exit-code") == 0
    assert command("diff", "full/seed-0", "--only", "more-than-once") == 0
    for words in (["nasty/seed-0@2", "nasty/seed-0@3"], ["nasty/seed-0@1", "nasty/seed-0@0"]):
        assert command("diff", *words, "--exit-code") == command("diff", *words, "--exit-code", "--stat")
    assert command("diff", "nasty/seed-0@1", "nasty/seed-0@0", "--exit-code", "--stat") == 1  # other tries
    capsys.readouterr()


def test_refused_rewrites_of_one_run_are_no_difference_of_equal_buffers(here, monkeypatch):
    """A reply that is no rewrite leaves no trace in the buffer, and an event in the run."""
    page = diff("full/seed-0", only="rejected")
    row = {
        **page["slots"][0],
        "patch": {"kept": 1, "gone": [], "versions": [], "tried_gone": [], "tried_new": []},
    }
    monkeypatch.setattr(commands, "diff", lambda *names, **options: {**page, "only": None, "slots": [row]})
    assert command("diff", "full/seed-0@0", "full/seed-0@0", "--exit-code") == 0
    row["patch"]["tried_new"] = ["aa"]
    assert command("diff", "full/seed-0@0", "full/seed-0@0", "--exit-code") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["full/sed-0"], "no run 'full/sed-0'; nearest: full/seed-0"),
        (["full/seed-0@9"], "full/seed-0: no snapshot of iteration 9 (there are 0 to 2)"),
        (["full"], "full is no run, it holds 2; take runs/full/seed-0 or runs/full/seed-1"),
        (["params.yaml"], "params.yaml is a file, but no buffer: those end in .jsonl or .parquet"),
        (["alone.jsonl"], "alone.jsonl is a file: name a second buffer to compare it with"),
        (["alone.jsonl@1"], "alone.jsonl is a file: it has no iterations to choose from"),
        (["old.jsonl", "alone.jsonl"], "old.jsonl: schema 7 is not supported, only 2 is"),
        (["full/seed-0", "--only", "nicer"], "--only 'nicer': unknown; "),
        (
            ["full/seed-0", "--only", "hardr"],
            "--only 'hardr': unknown; did you mean 'harder'? known: added, ",
        ),
        (["full/seed-0", "--by", "sceen"], "into kinds: unknown; did you mean 'scene'? known: goal"),
        (
            ["full/seed-0", "--by", "colour"],
            "no field 'colour' that sorts these tasks into kinds: unknown; known: goal",
        ),
    ],
)
def test_one_clear_line_and_exit_code_2(here, capsys, words, message):
    record(here / "one", 0, TaskBuffer.start([task(0)]))
    (here / "one" / "iter_0000.jsonl").rename(here / "alone.jsonl")
    text = (here / "alone.jsonl").read_text()
    (here / "old.jsonl").write_text(text.replace('"schema":2', '"schema":7'))
    assert command("diff", *words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_by_takes_the_fields_that_are_compared(here, capsys):
    def made(*fields):
        tasks = [
            Task("toy", f"put {n}", {f: (n + k) % 2 for k, f in enumerate(fields)}, {}) for n in range(6)
        ]
        return TaskBuffer.start(tasks)

    for name, fields in (("a", "xy"), ("b", "yz"), ("none", "")):
        record(here / name, 0, made(*fields))
    assert command("diff", "a", "b", "--by", "x") == 2
    assert "no field 'x' that sorts these tasks into kinds: unknown; known: y" in capsys.readouterr().err
    assert [diff(*names, by="y")["by"] for names in (("a", "b"), ("none", "a"), ("a", "none"))] == ["y"] * 3


def test_an_empty_buffer_and_a_buffer_of_one(here, capsys):
    for name, buffer in (("none", TaskBuffer.start([])), ("one", TaskBuffer.start([task(0)]))):
        record(here / name, 0, buffer)
    assert command("diff", "none", "none") == 0
    assert "0 slots: 0 unchanged" in capsys.readouterr().out
    assert command("diff", "none", "one") == 0
    assert "1 slot: 0 unchanged, 0 harder, 0 easier, 1 added" in capsys.readouterr().out
    assert command("diff", "one", "none", "--md") == 0
    assert "1 removed" in capsys.readouterr().out


def test_rollouts_of_the_same_run_may_be_listed_in_any_order(here):
    first = diff("full/seed-0")
    path = here / "runs/full/seed-0/buffer/events.jsonl"
    header, *lines = path.read_text().splitlines()
    random.Random(1).shuffle(lines)
    lines.sort(key=lambda line: json.loads(line)["iteration"])
    path.write_text("\n".join([header, *lines, ""]))
    rechained(path.parent)
    assert diff("full/seed-0") == first


def test_the_same_task_by_another_way_is_unchanged():
    start = TaskBuffer.start([task(0)])
    a, b = (replace(start.lineage(0).versions[0], accuracy=value) for value in (None, 0.5))
    left, right = (TaskBuffer((replace(start.lineage(0), versions=(v,)),)) for v in (a, b))
    page = diff_page(source(left), source(right))
    assert page["counts"]["unchanged"] == 1
    assert patched(left, page["slots"]) == right


def test_a_run_compared_with_its_own_start_reads_each_file_of_rollouts_once(tmp_path, monkeypatch):
    write_house(tmp_path)
    write_rollouts(tmp_path / "runs/full/seed-0")
    read, real = [], measurements.read_measurements
    monkeypatch.setattr(
        measurements, "read_measurements", lambda *call: read.append(call[2].name) or real(*call)
    )
    diff("full/seed-0", details=False, root=tmp_path)
    assert sorted(read) == ["iter_0001.jsonl.gz", "iter_0002.jsonl.gz"]
