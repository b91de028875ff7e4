"""`log` and `verify`: what happened, and whether the record of it holds, down to the first broken record."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from buffer_cases import command, kitchen, rechained, record, write_house, write_rollouts

from rlanything.buffer import TaskBuffer, read_events, views
from rlanything.buffer.eventlog import EVENTS
from rlanything.buffer.fields import canonical_line
from rlanything.buffer.views import log, verify
from rlanything.buffer.views.find.runs import open_run
from rlanything.buffer.views.history.log import Filter
from rlanything.core.types import Direction, EventKind

GOLDEN = Path(__file__).parent / "golden"
RUN = Path("runs/full/seed-0")


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    write_rollouts(tmp_path / RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


GOLDEN_COMMANDS = {
    "log.txt": ["log", "full/seed-0"],
    "log_slot.txt": ["log", "full/seed-0", "3"],
    "log.json": ["log", "full/seed-0", "--kind", "rejected", "--json"],
    "verify.txt": ["verify", "full/seed-0"],
    "show_rollouts.txt": ["show", "full/seed-0", "3"],
}


@pytest.mark.parametrize("name", GOLDEN_COMMANDS)
def test_golden(here, capsys, name):
    """After a wanted change: UPDATE_GOLDEN=1 pytest tests/buffer, and read the diff."""
    assert command(*GOLDEN_COMMANDS[name]) == 0
    out, err = capsys.readouterr()
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(out, encoding="utf-8")
    assert (out, err) == ((GOLDEN / name).read_text(encoding="utf-8"), "")


@pytest.mark.parametrize(
    ("wanted", "slots"),
    [
        (Filter(kind=EventKind.ACCEPTED), [0, 3]),
        (Filter(direction=Direction.EASIER), [5]),
        (Filter(first=1), [0, 3, 6, 5]),
        (Filter(last=0), [0, 3, 6]),
        (Filter(words="SPOON"), [5]),
        (Filter(proposer="nobody"), []),
    ],
)
def test_filters(here, wanted, slots):
    assert [row["slot"] for row in log("full/seed-0", wanted=wanted)["rows"]] == slots


def test_a_log_ends_where_its_name_says(here, capsys):
    assert [row["slot"] for row in log("full/seed-0@1")["rows"]] == [0, 3, 6]
    assert log("full/seed-0", kitchen(3, "mug", "shelf", 2).task_id[:10])["slot"] == 3
    for words in (["--iterations", "1"], ["--iterations", "0:1", "--by", "x"], ["--iterations", ":0"]):
        assert command("log", "full/seed-0", *words) == 0
    for given, said in (("soon", "is neither an iteration"), ("3:1", "'3:1' ends before it begins")):
        with pytest.raises(SystemExit):
            command("log", "full/seed-0", "--iterations", given)
        assert said in capsys.readouterr().err


def test_a_run_that_holds(here):
    page = verify("full/seed-0")
    assert page["ok"]
    assert [check["records"] for check in page["checks"]] == [38, 7, 7, 3, 7, 9, 7]


def test_what_a_run_without_rollouts_did_not_keep_is_not_called_checked(here, capsys):
    assert [check["records"] for check in verify("full/seed-1")["checks"]][-2:] == [None, None]
    assert command("verify", "full/seed-1") == 0
    *_, rollouts, accuracies = capsys.readouterr().out.splitlines()
    assert rollouts == "  -       rollouts: of the tasks that the slots had (none here)"
    assert accuracies == "  -       accuracies: events against rollouts (none here)"
    record(here / "start", 0, TaskBuffer.start([kitchen(0, "mug", "shelf")]))
    assert [check["records"] for check in verify("start")["checks"]][-2:] == [0, 0], (
        "there was nothing to keep"
    )


def write_provenance(here, **train):
    (here / "provenance").mkdir(exist_ok=True)
    record = {"arm": "full", "config": {"train": train}, "seeds": {"0": {}, "1": {}}}
    (here / "provenance" / "full.json").write_text(json.dumps(record))


def test_only_a_record_says_that_rollouts_were_not_kept(here, capsys):
    write_provenance(here, iterations=1, save_rollouts=False)
    assert command("verify", "full/seed-1") == 0
    assert capsys.readouterr().out.count("(not kept)") == 2
    write_provenance(here, iterations=1, save_rollouts=True)
    assert command("verify", "full/seed-0") == 0, "they are there"
    assert command("verify", "full/seed-1") == 1
    said = capsys.readouterr().out
    assert "no rollouts of iteration 0, and provenance/full.json says they were saved" in said


def test_a_record_says_nothing_of_a_run_that_lies_beside_its_own(here):
    write_provenance(here, iterations=20, save_rollouts=True)
    (here / "runs/full/seed-1").rename(here / "runs/full/seed-9")
    assert command("verify", "full/seed-9") == 0


def lose_the_last_snapshot(buffer):
    (buffer / "iter_0002.jsonl").unlink()
    *kept, _, _, _, _ = (buffer / "events.jsonl").read_text().splitlines(keepends=True)
    (buffer / "events.jsonl").write_text("".join(kept))


def repeat_the_last_snapshot(buffer):
    (buffer / "iter_0003.jsonl").write_bytes((buffer / "iter_0002.jsonl").read_bytes())


def lose_a_snapshot(buffer):
    (buffer / "iter_0001.jsonl").unlink()


@pytest.mark.parametrize("recorded", ["metrics", "provenance"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose_the_last_snapshot, "so its last snapshot is 2; here it is 1"),
        (repeat_the_last_snapshot, "so its last snapshot is 2; here it is 3"),
        (lose_a_snapshot, "snapshot 1 is missing, and 2 is there"),
    ],
)
def test_a_finished_run_is_as_long_as_it_says(here, capsys, damage, message, recorded):
    if recorded == "metrics":
        (here / RUN / "metrics.jsonl").write_text('{"iteration": 0}\n{"iteration": 1}\n')
    else:
        write_provenance(here, iterations=1, save_rollouts=True)
    assert command("verify", "full/seed-0") == 0
    damage(here / RUN / "buffer")
    capsys.readouterr()
    assert command("verify", "full/seed-0") == 1
    assert message in capsys.readouterr().out


def test_rollouts_lead_to_a_snapshot_that_is_there(here, capsys):
    """As where the last snapshot and its events are gone, of a run that no record tells the length of."""
    lose_the_last_snapshot(here / RUN / "buffer")
    assert command("verify", "full/seed-0") == 1
    assert "iter_0002.jsonl.gz led to a snapshot that is not there" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["full/seed-0@1", "runs/full/seed-0/buffer/iter_0001.jsonl"])
def test_verify_takes_no_iteration(here, capsys, name):
    assert command("verify", name) == 2
    said = capsys.readouterr().err
    assert f"{name} is one iteration, and verify checks the whole run: name " in said
    assert command("verify", said.strip().rpartition(" name ")[2]) == command("verify", "full/seed-0")


def test_another_band_than_the_projects(here, capsys):
    (here / "params.yaml").write_text("adaptation: {alpha_low: 0.3, alpha_high: 0.8}\n")
    assert command("verify", "full/seed-0") == 1
    assert command("verify", "full/seed-0", "--band", "0.2:0.8:inclusive") == 0
    for band in ("0.8:0.2", "wide", "0.2:0.8:kind"):
        with pytest.raises(SystemExit):
            command("verify", "full/seed-0", "--band", band)
    capsys.readouterr()


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def change_snapshot(here):
    change(here / RUN / "buffer/iter_0002.jsonl", '"accuracy":0.5', '"accuracy":0.625')


def change_task(here):
    change(here / RUN / "buffer/iter_0001.jsonl", "put a mug", "put a mop")


def change_event(here):
    change(here / RUN / "buffer/events.jsonl", '"accuracy":0.5', '"accuracy":0.625')


def change_parent(here):
    path = here / RUN / "buffer/events.jsonl"
    change(path, '"parent_id":"' + kitchen(0, "mug", "cabinet").task_id, '"parent_id":"' + "0" * 64)


def change_decision(here):
    (here / "params.yaml").write_text("adaptation: {alpha_low: 0.3, alpha_high: 0.8}\n")


def change_request(here):
    (here / "params.yaml").write_text("adaptation: {alpha_low: 0.2, alpha_high: 0.9}\n")


def cut_event(here):
    path = here / RUN / "buffer/events.jsonl"
    path.write_bytes(path.read_bytes()[:-7])


def drop_event(here):
    path = here / RUN / "buffer/events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(
        "".join(line for line in lines if '"kind":"accepted"' not in line or '"slot":3' not in line)
    )


def move_event(here):
    path = here / RUN / "buffer/events.jsonl"
    header, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *reversed(lines)]))


def edit_rollouts(here, edit):
    path = here / RUN / "rollouts/iter_0002.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    path.write_bytes(gzip.compress("".join(edit(lines)).encode()))


def solve_one_more(here):
    def edit(lines):
        place = next(k for k, line in enumerate(lines) if '"slot": 3' in line and '"outcome": -1' in line)
        lines[place] = lines[place].replace('"outcome": -1', '"outcome": 1')
        return lines

    edit_rollouts(here, edit)


def lose_rollouts(here):
    edit_rollouts(here, lambda lines: [line for line in lines if '"slot": 6' not in line])


def roll_out_another_task(here):
    edit_rollouts(
        here,
        lambda lines: [line.replace(open_run(here / RUN).at(1).head(9).task_id, "f" * 64) for line in lines],
    )


def break_rollouts(here):
    path = here / RUN / "rollouts/iter_0002.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])


def write_no_rollout(here):
    edit_rollouts(here, lambda lines: ['{"proposal": 3}\n', *lines])


def delay_event(here):
    change_line(here, '"kind":"invalid"', '"iteration":1', '"iteration":2')


def change_parents_accuracy(here):
    """Of a rejected rewrite, which leaves nothing in a snapshot."""
    change_line(here, '"kind":"rejected"', '"parent_accuracy":1.0', '"parent_accuracy":0.875')


def forget_accuracy(here):
    """As if every rollout of the rewrite had crashed."""
    change_line(here, '"kind":"rejected"', '"accuracy":0.0', '"accuracy":null')


def roll_out_what_nobody_proposed(here):
    def edit(lines):
        return [
            line.replace('"proposal": false', '"proposal": true') if '"slot": 9' in line else line
            for line in lines
        ]

    edit_rollouts(here, edit)


def lose_a_file_of_rollouts(here):
    (here / RUN / "rollouts/iter_0001.jsonl.gz").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_snapshot, "iter_0002.jsonl: digest mismatch"),
        (change_task, r"iter_0001.jsonl, line 2: task_id \w+ does not match its content"),
        (change_event, "snapshot 2: slot 0 is not what the events make of it"),
        (
            change_parent,
            "slot 0, iteration 0: proposed event has parent 000000000000, but the slot's head is",
        ),
        (
            change_decision,
            r"slot 3, iteration 1, accepted event: harder 0.875 -> 0.250 must be rejected by the strict",
        ),
        (
            change_request,
            r"slot 3, iteration 0, proposed event: a task solved 0.875 is not to be made harder",
        ),
        (cut_event, "events.jsonl ends in"),
        (drop_event, "snapshot 2: slot 3 is not what the events make of it"),
        (move_event, "slot 6, iteration 0: the event comes after iteration 1"),
        (
            solve_one_more,
            r"slot 3, iteration 1, accepted event: 3 of 8 rollouts solved task \w{12}, the event says 0.25",
        ),
        (lose_rollouts, "slot 6, iteration 1, rejected event: no rollouts of task"),
        (roll_out_another_task, "slot 9: rollouts of task ffffffffffff, but the slot had"),
        (delay_event, "slot 5, iteration 2, invalid event: there is no snapshot after iteration 2"),
        (
            change_parents_accuracy,
            r"slot 6, iteration 1, rejected event: acc\(q\) = 0.875 of its parent was measured in no iteration",
        ),
        (
            forget_accuracy,
            r"slot 6, iteration 1, rejected event: 0 of 8 rollouts solved task \w{12}, the event says None",
        ),
        (
            roll_out_what_nobody_proposed,
            r"slot 9: rollouts of the rewrite \w{12}, and no event decides on it",
        ),
        (
            lose_a_file_of_rollouts,
            "rollouts: no rollouts of iteration 0, and those of others are there",
        ),
        (break_rollouts, "iter_0002.jsonl.gz: cannot be read"),
        (write_no_rollout, "iter_0002.jsonl.gz, line 1: not the record of a rollout"),
    ],
)
def test_the_first_broken_record_is_named(here, capsys, damage, message):
    damage(here)
    if damage is not cut_event:
        rechained(here / RUN / "buffer")
    assert command("verify", "full/seed-0") == 1
    assert re.search(message, capsys.readouterr().out)


def flip_rejected(here):
    change_line(here, '"kind":"rejected"', '"direction":"harder"', '"direction":"easier"')


def forge_critic(here):
    change_line(here, '"kind":"accepted"', '"critic":"', '"critic":"Made up. ')


def forge_seed(here):
    change_line(here, '"kind":"proposed"', '"seed":', '"seed":1')


def change_line(here, kind, old, new):
    path = here / RUN / "buffer/events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    place = next(k for k, line in enumerate(lines) if kind in line)
    assert old in lines[place]
    lines[place] = lines[place].replace(old, new, 1)
    path.write_text("".join(lines))


def remove_event(here, place=3):
    path = here / RUN / "buffer/events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    del lines[place]
    path.write_text("".join(lines))


def repeat_event(here):
    path = here / RUN / "buffer/events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:3], lines[2], *lines[3:]]))


FOLLOWS = r"events\.jsonl, line \d+: the event does not follow the line before it"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *((act, FOLLOWS) for act in (flip_rejected, forge_critic, forge_seed, remove_event, repeat_event)),
        (
            lambda here: remove_event(here, -1),
            "snapshot 2: it was written after other events than the 6 before it",
        ),
        (
            lambda here: change(here / RUN / "buffer/events.jsonl", '"start":"', '"start":"0'),
            FOLLOWS,
        ),
    ],
)
def test_the_chain_finds_what_no_other_check_can(here, capsys, damage, message):
    """Nothing else in the record depends on a rejected proposal, a critic's words or a seed."""
    damage(here)
    assert command("verify", "full/seed-0") == 1
    assert re.search(message, capsys.readouterr().out)


def test_deep_asks_for_a_replay_of_the_run_on_disk(here, capsys):
    assert command("verify", "full/seed-0", "--deep") == 1
    said = capsys.readouterr().out
    assert "BROKEN  replay: signals, decisions and metrics again" in said
    assert "replayed seed-0" in said


def test_a_chain_of_another_start_is_refused(here, capsys):
    path = here / RUN / "buffer/events.jsonl"
    change(path, '"start":"', '"start":"0')
    rechained(here / RUN / "buffer")
    assert command("verify", "full/seed-0") == 1
    assert "its chain does not begin with snapshot 0" in capsys.readouterr().out


def test_a_run_without_a_chain_is_still_checked(here, capsys):
    """As before there were chains."""
    path = here / RUN / "buffer/events.jsonl"
    events = read_events(path).events
    lines = [canonical_line({"format": EVENTS, "schema": 1}), *(canonical_line(e.to_json()) for e in events)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    for snapshot in path.parent.glob("iter_*.jsonl"):
        header, *content = snapshot.read_bytes().splitlines(keepends=True)
        known = {key: value for key, value in json.loads(header).items() if key != "events"}
        snapshot.write_bytes(b"".join([canonical_line(known) + b"\n", *content]))
    assert command("verify", "full/seed-0") == 0
    change(path, '"accuracy":0.5', '"accuracy":0.625')
    assert command("verify", "full/seed-0") == 1
    assert "snapshot 2: slot 0 is not what the events make of it" in capsys.readouterr().out
    assert command("verify", "full/seed-0", "--json") == 1
    assert not json.loads(capsys.readouterr().out)["ok"]


def test_what_is_no_run_is_said_so(here, capsys):
    (here / "alone.jsonl").write_bytes((here / RUN / "buffer/iter_0000.jsonl").read_bytes())
    for words in (["verify", "alone.jsonl"], ["log", "alone.jsonl"]):
        assert command(*words) == 2
        assert "alone.jsonl is a file" in capsys.readouterr().err


def test_the_functions_stay_functions(here):
    """A module of the same name would take a function's place in the package once it is loaded."""
    for function in (views.diff, views.drift, views.log, views.verify):
        function("full/seed-0")
    assert all(map(callable, (views.diff, views.diff3, views.drift, views.log, views.verify, views.export)))
