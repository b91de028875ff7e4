"""Export and import: the way there and back is the identity, for every format but games."""

import os
import re
import shlex
import shutil

import polars as pl
import pytest
from buffer_cases import command, histories, kitchen, relaxed, task, write_house, write_rollouts, write_story
from hypothesis import given, settings

from rlanything.buffer import Lineage, TaskBuffer, TaskBufferError, Version, write_snapshot
from rlanything.buffer.views import diff, export, import_
from rlanything.buffer.views.columns.parquet import read_parquet, read_table, write_parquet
from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.find.runs import open_run
from rlanything.buffer.views.find.source import read_buffer
from rlanything.buffer.views.transfer import import_buffer
from rlanything.core.types import Task
from rlanything.files import reader
from rlanything.planning.compose import text


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    write_rollouts(tmp_path / "runs/full/seed-0")
    write_story(tmp_path / "runs/nasty/seed-0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["out.jsonl", "deep/er/out.parquet"])
@pytest.mark.parametrize("run", ["full/seed-0", "nasty/seed-0@3"])
def test_there_and_back_is_the_identity(here, capsys, name, run):
    assert command("export", run, name) == 0
    assert command("import", name, "runs/new/seed-0") == 0
    wanted = find(run).buffer
    assert open_run(here / "runs/new/seed-0").latest == wanted
    assert f"digest {wanted.digest[:12]}" in capsys.readouterr().out
    assert diff(name, run)["counts"]["unchanged"] == len(wanted)
    assert command("verify", "new/seed-0") == 0


@pytest.mark.long
@settings(relaxed, max_examples=8)  # a reader is a process of its own
@given(histories())
def test_parquet_keeps_every_history(tmp_path_factory, history):
    start, events = history
    buffer = TaskBuffer.start(start).apply(events)
    path = tmp_path_factory.mktemp("p") / "b.parquet"
    write_parquet(buffer, path)
    again = read_parquet(path)
    assert (again, again.digest) == (buffer, buffer.digest)


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.parquet"])
def test_an_export_replaces_an_exported_buffer_and_nothing_else(here, capsys, name):
    for suffix in ("jsonl", "parquet"):
        assert command("export", "full/seed-0", f"out.{suffix}") == 0
        assert command("export", "full/seed-0@0", f"out.{suffix}") == 0
        assert read_buffer(here / f"out.{suffix}") == find("full/seed-0@0").buffer
    place = here / name
    if not place.exists():
        place.write_text("mine")
    before = place.read_bytes()
    assert command("export", "nasty/seed-0", name) == 2
    assert f"export {name}: exists and is no exported buffer" in capsys.readouterr().err
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("runs/full/seed-0/buffer/iter_0000.jsonl", "is named like a snapshot of a run"),
        ("runs/full/seed-0/buffer/iter_0030.jsonl", "is named like a snapshot of a run"),
        ("iter_0030.jsonl", "is named like a snapshot of a run"),
        ("runs/full/seed-0/buffer/events.jsonl", "lies in the run"),
        ("runs/full/seed-0/buffer/new.jsonl", "lies in the run"),
        ("runs/full/seed-0/buffer/new/er.parquet", "lies in the run"),
        ("runs/full/seed-0/new.parquet", "lies in the run"),
        (".rla/live/key/full/seed-0/new.jsonl", "lies in the run"),
        (".rla/live/key/full/seed-0/iterations/0007/buffer.jsonl", "lies in the run"),
        ("alone/new.jsonl", "lies in the run"),
        ("link/new.jsonl", "lies in the run"),
    ],
)
def test_an_export_puts_nothing_into_a_run(here, capsys, name, message):
    live = here / ".rla/live/key/full/seed-0"
    (live / "iterations").mkdir(parents=True)
    (here / "alone").mkdir()
    for folder in (live, here / "alone"):
        shutil.copy(here / "runs/full/seed-0/buffer/iter_0000.jsonl", folder)
    (here / "link").symlink_to(here / "runs/full/seed-0/buffer")
    before = {path: path.is_file() and path.read_bytes() for path in here.rglob("*")}
    assert command("export", "nasty/seed-0", name) == 2
    assert f"export {name}: {message}" in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in here.rglob("*")} == before


def test_where_it_was_written_is_said_also_from_another_folder(here, capsys, monkeypatch):
    (here / "docs").mkdir()
    monkeypatch.chdir(here / "docs")
    assert command("export", "full/seed-0", "my tasks.jsonl", root="..") == 0
    assert command("import", "my tasks.jsonl", "my start", root="..") == 0
    said = capsys.readouterr().out
    assert "slots to ../my tasks.jsonl\n" in said
    assert "../my start starts with" in said
    assert "'tasks.start=my start/buffer/iter_0000.jsonl'" in said
    assert (here / "my tasks.jsonl").is_file()


def test_the_line_that_trains_on_them_keeps_what_else_is_set(here, capsys):
    """The header's overrides of the same keys would otherwise stand beside the new ones."""
    set_before = ["scale=smoke", "+note=two words", "tasks.train=40", "++tasks.start=old.jsonl"]
    (here / "params.yaml").write_text(text({"seed": 0}, set_before))
    assert command("export", "full/seed-0", "out.jsonl") == 0
    assert command("import", "out.jsonl", "start") == 0
    line = re.search("`(.*)`", capsys.readouterr().out)[1]
    buffer = find("full/seed-0").buffer
    assert shlex.split(line) == [
        "rlanything", "config", "write", "scale=smoke", "+note=two words", f"tasks.train={len(buffer)}",
        "tasks.start=start/buffer/iter_0000.jsonl", f"tasks.start_digest={buffer.digest}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lineage", "message"),
    [
        (Lineage(1 << 63, (Version(0, task(1)),)), "slot 9223372036854775808: at most"),
        (Lineage(1, (Version(0, task(1), iteration=1 << 63),)), "iteration 9223372036854775808: at most"),
        (
            Lineage(1, (Version(0, task(1)),), frozenset({"zz\ud800"})),
            "'zz\\ud800': a task id is 64 hex digits",
        ),
    ],
)
def test_what_columns_cannot_hold_is_one_clear_line(here, capsys, lineage, message):
    write_snapshot(TaskBuffer((Lineage(0, (Version(0, task(0)),)), lineage)), here / "odd.jsonl")
    for words in (["diff", "odd.jsonl", "full/seed-0"], ["export", "odd.jsonl", "odd.parquet"]):
        assert command(*words) == 2
        assert message in capsys.readouterr().err
    assert not (here / "odd.parquet").exists()


def test_lone_surrogates_of_a_reply_are_compared_and_only_an_instruction_with_one_is_no_parquet(here, capsys):
    tasks = [Task("toy", f"put {n}", {"k\ud800": "ab"[n % 2] + "\udfff"}, {}) for n in range(4)]
    write_snapshot(TaskBuffer.start(tasks), here / "a.jsonl")
    write_snapshot(TaskBuffer.start([*tasks[:3], Task("toy", "find \ud800", {}, {})]), here / "b.jsonl")
    for way in ("--stat", "--md", "--html=page.html", "--json"):
        assert command("diff", "a.jsonl", "b.jsonl", way) == 0
    assert command("export", "a.jsonl", "a.parquet") == 0
    assert read_parquet(here / "a.parquet") == read_buffer(here / "a.jsonl")
    assert diff("a.parquet", "b.jsonl")["counts"] == diff("a.jsonl", "b.jsonl")["counts"]
    capsys.readouterr()
    assert command("export", "b.jsonl", "b.parquet") == 2
    assert "slot 3: the instruction of v0 has a lone surrogate" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["payload", "instruction", "tried"])
def test_a_parquet_file_that_unpacks_to_more_than_the_limit_is_refused(here, column, monkeypatch):
    """Two megabytes of one letter, in a file of some kilobytes."""
    export("full/seed-0", here / "small.parquet")
    frame = pl.read_parquet(here / "small.parquet")
    long = pl.lit("x" * 2_000_000 if column != "tried" else ["x" * 2_000_000])
    frame.with_columns(long.alias(column)).write_parquet(
        here / "bomb.parquet", metadata=pl.read_parquet_metadata(here / "small.parquet")
    )
    assert (here / "bomb.parquet").stat().st_size < 100_000
    monkeypatch.setattr(reader.require_fits, "__defaults__", (1,))  # megabytes
    read_parquet(here / "small.parquet")
    with pytest.raises(TaskBufferError, match=r"bomb\.parquet: .*RLANYTHING_MOST_MB"):
        read_parquet(here / "bomb.parquet")


def test_a_restart_leaves_the_history_out(here):
    buffer = import_("runs/full/seed-0/buffer/iter_0002.jsonl", "runs/new", restart=True)
    assert buffer.accepted == 0
    assert buffer.head(0) == find("full/seed-0").buffer.head(0)
    with pytest.raises(TaskBufferError, match="exists already: a buffer is never written over"):
        import_("runs/full/seed-0/buffer/iter_0002.jsonl", "runs/new")


def test_columns_from_a_file_are_those_from_the_run(here):
    for run in ("full/seed-0", "full/seed-0@1", "nasty/seed-0"):
        export(run, here / "out.parquet")
        made, read = find(run).table, find("out.parquet").table
        for name in ("slots", "start", "key", "way"):
            assert (getattr(made, name) == getattr(read, name)).all(), name
        assert made.kinds.equals(read.kinds)
        assert made.accuracy.tolist() == pytest.approx(read.accuracy.tolist(), nan_ok=True)
        tries = [sorted(zip(t.tried_slot.tolist(), t.tried_key.tolist(), strict=True)) for t in (made, read)]
        assert tries[0] == tries[1]


def test_a_comparison_of_files_is_that_of_the_runs(here):
    export("full/seed-0@1", here / "a.parquet")
    export("full/seed-0", here / "b.parquet")
    files, runs = diff("a.parquet", "b.parquet"), diff("full/seed-0@1", "full/seed-0")
    assert files["concentration"] == runs["concentration"]
    assert {k: v for k, v in files["counts"].items() if k not in ("rejected", "invalid", "pending")} == {
        k: v for k, v in runs["counts"].items() if k not in ("rejected", "invalid", "pending")
    }
    assert files["difficulty"]["new"] == runs["difficulty"]["new"]


@pytest.mark.long
def test_one_and_none(here):
    for tasks in ([], [task(0)]):
        write_parquet(TaskBuffer.start(tasks), here / "few.parquet")
        assert len(read_parquet(here / "few.parquet")) == len(tasks)
        assert diff("few.parquet", "few.parquet")["counts"]["unchanged"] == len(tasks)


def damaged(path, **columns):
    frame = pl.read_parquet(path).with_columns(**columns)
    frame.write_parquet(path, metadata=pl.read_parquet_metadata(path))


def test_what_cannot_be_read_is_said(here, capsys):
    export("full/seed-0", here / "out.parquet")
    damaged(here / "out.parquet", instruction=pl.lit("put a mop in the sink"))
    (here / "text.parquet").write_text("hello")
    pl.DataFrame({"slot": [1]}).write_parquet(here / "other.parquet")
    pl.DataFrame({"slot": [1]}).write_parquet(
        here / "old.parquet", metadata={"format": "rlanything task buffer", "schema": "7"}
    )
    for words, message in (
        (["import", "out.parquet", "runs/x"], "does not match its content"),
        (["import", "text.parquet", "runs/x"], "text.parquet: a damaged Parquet file"),
        (["diff", "other.parquet", "other.parquet"], "a Parquet file, but not an rlanything task buffer"),
        (["diff", "old.parquet", "full/seed-0"], "schema 7 is not supported, only 1 is"),
        (["import", "missing.parquet", "runs/x"], "missing.parquet: No such file"),
        (["export", "full/seed-0", "out.csv"], "end its name in .jsonl or .parquet, or ask for --games"),
        (["export", "full/seed-0", "games", "--games"], "it names no task family in env._target_"),
    ):
        assert command(*words) == 2
        assert message in capsys.readouterr().err


def test_changed_versions_are_found_by_the_digest(here, capsys):
    export("full/seed-0", here / "out.parquet")
    damaged(here / "out.parquet", accuracy=pl.col("accuracy") / 2)
    assert command("import", "out.parquet", "runs/x") == 2
    assert "digest mismatch" in capsys.readouterr().err


def test_a_broken_reply_in_the_metadata_is_kept(here):
    buffer = TaskBuffer.start([task(0, reply="broken \ud800 reply")])
    write_parquet(buffer, here / "b.parquet")
    assert read_parquet(here / "b.parquet") == buffer


@pytest.mark.long
def test_a_damaged_parquet_file_is_an_error_wherever_it_is_damaged(here):
    export("full/seed-0", here / "out.parquet")
    whole = (here / "out.parquet").read_bytes()
    readers = (read_parquet, read_table)
    # A reader is a process of its own. So both read a damaged head and foot, and one of them what lies between.
    between = range(len(whole) // 21, len(whole), len(whole) // 21)
    tried = [(place, read) for place in (0, len(whole) - 6, len(whole) - 1) for read in readers]
    tried += [(place, readers[number % 2]) for number, place in enumerate(between)]
    for place, read in tried:
        (here / "out.parquet").write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            read(here / "out.parquet")
        except TaskBufferError as error:
            said = str(error)
        else:
            said = "out.parquet"
        assert "out.parquet" in said


def test_a_pipe_is_no_parquet_file(here):
    os.mkfifo(here / "pipe.parquet")
    with pytest.raises(TaskBufferError, match=r"pipe\.parquet: no regular file"):
        read_parquet(here / "pipe.parquet")


def test_the_kitchen_is_told_apart_by_its_fields(here):
    assert "goal.object" in find("full/seed-0").table.kinds.columns
    assert kitchen(0, "mug", "shelf").payload["goal"]["object"] == "mug"


@pytest.mark.long
def test_a_small_parquet_file_that_stands_for_gigabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "bomb.parquet"
    pl.DataFrame({"payload": ["x" * 1_000_000] * 1000, "slot": list(range(1000))}).write_parquet(path)
    assert path.stat().st_size < 100_000
    with pytest.raises(TaskBufferError, match=r"bomb\.parquet: .*RLANYTHING_MOST_MB"):
        read_parquet(path)


def test_an_import_that_was_killed_can_be_made_again(here):
    """It leaves an empty folder, or a file with another name in it."""
    target = here / "runs" / "imported"
    (target / "buffer").mkdir(parents=True)
    (target / "buffer" / ".iter_0000.jsonl.77.tmp").write_text("half")
    source = here / "out.jsonl"
    export("full/seed-0", source)
    assert import_buffer(source, target) == read_buffer(source)
    with pytest.raises(TaskBufferError, match="exists already"):
        import_buffer(source, target)
