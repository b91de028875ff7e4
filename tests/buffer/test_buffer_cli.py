"""What `rlanything buffer ls` and `show` print: golden texts, JSON, and one clear line for everything that is wrong."""

import json
import os
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from buffer_cases import NASTY, command, record, relaxed, story, task, write_story
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer, TaskBufferError, append_events
from rlanything.buffer.views import commands
from rlanything.buffer.views.cli.output import json_text
from rlanything.buffer.views.history.slots_text import ls_text, slot_text
from rlanything.buffer.views.terminal import Screen
from rlanything.cli import main
from rlanything.core.printable import safe

GOLDEN = Path(__file__).parent / "golden"
RUN = "runs/full/seed-0"


PLAIN = Screen()


def ls(where, *, as_json=False, screen=PLAIN, **options):
    page = commands.ls(where, **options)
    return json_text(page) if as_json else ls_text(page, screen)


def show(where, target, *, as_json=False, screen=PLAIN, **options):
    page = commands.show(where, target, **options)
    return json_text(page) if as_json else slot_text(page, screen)


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_story(tmp_path / RUN)
    record(tmp_path / "runs" / "static" / "seed-0" / "buffer", 0, story()[0][2])
    monkeypatch.chdir(tmp_path)
    return tmp_path


GOLDEN_COMMANDS = {
    "ls_runs": ["ls"],
    "ls_runs_at_0": ["ls", "runs", "--iteration", "0"],
    "ls_run": ["ls", RUN],
    "ls_run_changed": ["ls", "full/seed-0", "--changed"],
    "ls_run_at_1_changed": ["ls", RUN, "--changed", "--iteration", "1"],
    "ls_run_json": ["ls", RUN, "--json", "--changed"],
    "show_changed": ["show", RUN, "1"],
    "show_rejected": ["show", RUN, "2"],
    "show_nasty": ["show", RUN, "4"],
    "show_untouched_at_2": ["show", "full/seed-0", "0", "--iteration", "2"],
    "show_old_version": ["show", RUN, task(1).task_id[:8]],
    "show_json": ["show", RUN, "4", "--json"],
}


@pytest.mark.parametrize("name", GOLDEN_COMMANDS)
def test_golden(here, capsys, name):
    """After a wanted change: UPDATE_GOLDEN=1 pytest tests/buffer, and read the diff."""
    assert command(*GOLDEN_COMMANDS[name]) == 0
    out, err = capsys.readouterr()
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(out, encoding="utf-8")
    assert (out, err) == (path.read_text(encoding="utf-8"), "")


@pytest.mark.parametrize("name", [name for name in GOLDEN_COMMANDS if "json" not in name])
def test_plain_text_has_no_control_characters(name):
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert all(line.isprintable() for line in text.split("\n"))


def test_another_project_is_read_through_its_root(here, capsys, monkeypatch):
    texts = [ls("runs"), ls(RUN), show("full/seed-0", "1")]
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    for words in (["ls"], ["ls", RUN], ["show", "full/seed-0", "1"]):
        assert command(*words, root="..") == 0
    assert capsys.readouterr().out == "".join(texts)
    assert command("ls", "runs/full/sed-0", root="..") == 2
    assert "nearest: full/seed-0" in capsys.readouterr().err
    assert command("ls", str(here / RUN), root="..") == 0


def test_json_is_complete_and_ascii(here):
    page = json.loads(show(RUN, "4", as_json=True))
    assert page["task"]["instruction"] == NASTY
    assert page["versions"][1]["accuracy"] == 0.75
    assert json.loads(ls("runs", as_json=True))[0]["run"] == "full/seed-0"
    assert show(RUN, "4", as_json=True).isascii()
    assert "\x1b" not in show(RUN, "4", as_json=True)


def test_ls_shows_the_iteration_that_a_name_has(here):
    for name in (f"{RUN}@1", "full/seed-0@1", f"{RUN}/buffer/iter_0001.jsonl"):
        page = commands.ls(name)
        assert page["iteration"] == 1
        assert page["rows"] == commands.ls(RUN, iteration=1)["rows"] != commands.ls(RUN)["rows"]
        assert page["run"].removesuffix("/buffer") in (RUN, "full/seed-0")


@pytest.mark.parametrize("name", [f"{RUN}@1", "full/seed-0@1", f"{RUN}/buffer/iter_0001.jsonl"])
@pytest.mark.parametrize("words", [["ls"], ["show"]])
def test_a_name_and_the_option_may_not_ask_for_two_iterations(here, capsys, name, words):
    words = [*words, name, *(["1"] if words == ["show"] else []), "--iteration"]
    assert command(*words, "1") == 0
    capsys.readouterr()
    assert command(*words, "2") == 2
    assert f"{name} is iteration 1, and --iteration says 2; leave one out" in capsys.readouterr().err


def test_what_is_listed_and_shown_says_which_run_it_is(here, capsys):
    for name, run in (("runs/full", RUN), ("full/seed-0@1", "full/seed-0")):
        assert command("show", name, "1") == 0
        assert capsys.readouterr().out.startswith(f"{run}  slot 1, ")
        assert command("show", name, "1", "--json") == 0
        assert json.loads(capsys.readouterr().out)["run"] == run
    assert command("ls", "full/seed-0@1") == 0
    assert capsys.readouterr().out.startswith("full/seed-0  iteration 1: ")


PROPOSED_ID, VERSION_ID = task(14).task_id, task(13).task_id


def test_a_task_is_found_by_the_beginning_of_its_id(here):
    assert "slot 0, proposed, never a version" in show(RUN, PROPOSED_ID[:10])
    assert "slot 1, v2 (head)" in show(RUN, VERSION_ID.upper())
    assert "slot 1, v0, at iteration 4" in show(RUN, task(1).task_id)
    with pytest.raises(TaskBufferError, match="no slot and no task id that begins with"):
        show(RUN, VERSION_ID, iteration=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ls", "runs/full/sed-0"], "no run 'runs/full/sed-0'; nearest: full/seed-0"),
        (["show", "static/seed-1", "0"], "no run 'static/seed-1'; nearest: static/seed-0"),
        (["ls", "zzz"], "no run 'zzz'; known: full/seed-0, static/seed-0"),
        (["ls", "empty"], "empty: no buffer there"),
        (["ls", "file"], "file is a file, but no buffer: those end in .jsonl or .parquet"),
        (["ls", "hollow"], "hollow: the buffer is empty, it has no slots"),
        (["show", "hollow", "0"], "hollow: the buffer is empty, it has no slots"),
        (["ls", "damaged"], "digest mismatch"),
        (["ls", RUN, "--iteration", "9"], "no snapshot of iteration 9 (there are 0 to 4)"),
        (["ls", "runs", "--changed"], "runs holds 2 runs; --changed needs one of them"),
        (["show", "runs", "0"], "runs is no run, it holds 2; take runs/full/seed-0 or runs/static/seed-0"),
        (["show", RUN, "7"], "no slot 7 (slots are 0 to 4); a task id needs at least 4 of its characters"),
        (["show", RUN, "9" * 5000], "no slot and no task id that begins with 999"),
        (["show", RUN, "beef\x1b[2J"], r"no slot and no task id that begins with beef\x1b[2J"),
        (["show", RUN, task(12, NASTY).task_id[:9]], "is in 2 slots (2, 4): give the slot"),
        (["show", "many", "PREFIX"], "task ids ("),
    ],
)
def test_one_clear_line_and_exit_code_2(here, capsys, words, message):
    (here / "empty").mkdir()
    (here / "file").touch()
    record(here / "hollow", 0, TaskBuffer.start([]))
    record(here / "damaged", 0, story()[0][2])
    damaged = here / "damaged" / "iter_0000.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"level":1', b'"level":9'))
    words = [twin_prefix(here) if word == "PREFIX" else word for word in words]
    assert command(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rlanything: ")
    assert err.count("\n") == 1
    assert message in err


def test_an_error_is_shown_with_where_it_comes_from_when_that_is_asked_for(here):
    with pytest.raises(TaskBufferError, match="no run 'nope'"):
        main(["--traceback", "--root", str(here), "buffer", "ls", "nope"])


def twin_prefix(here):
    """A four-digit prefix that two tasks of the run `many` share (among 2000 of 65536 there are some)."""
    tasks = [task(n) for n in range(2000)]
    record(here / "many", 0, TaskBuffer.start(tasks))
    seen = set()
    for prefix in (t.task_id[:4] for t in tasks):
        if prefix in seen and not prefix.isdecimal():
            return prefix
        seen.add(prefix)
    raise AssertionError


def test_one_damaged_run_does_not_hide_the_others(here):
    (here / "runs/static/seed-0/buffer/iter_0000.jsonl").write_text("hello")
    text = ls("runs")
    assert "full/seed-0" in text
    assert "static/seed-0" in text
    assert "not an rlanything task buffer file" in text


def test_a_torn_events_file_is_reported(here):
    path = here / RUN / "buffer" / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert "events.jsonl ends in" in ls(RUN)
    assert json.loads(ls(RUN, as_json=True))["torn_bytes"] > 0
    assert "v1 (head)" in show(RUN, "4")
    append_events(path, [])
    assert "events.jsonl ends in" not in ls(RUN)


def test_a_terminal_gets_styles_and_its_own_width(here):
    text = ls(RUN, screen=Screen(60, terminal=True))
    assert "\x1b[1m" in text
    assert max(map(len, text.splitlines()[3:])) <= 60
    assert show(RUN, "4", screen=Screen(60, terminal=True)).count("\x1b[2J") == 0


def test_output_that_the_terminal_cannot_encode_is_escaped(here):
    buffer = TaskBuffer.start([task(0, "größer 😀")])
    record(here / "wide" / "buffer", 0, buffer)
    code = "import sys, test_buffer_cli as t; sys.exit(t.command('ls', 'wide'))"
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": paths},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"gr\\xf6\\xdfer \\U0001f600" in done.stdout


def test_a_reader_that_had_enough_gets_no_message_and_the_code_of_a_closed_pipe(here):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "rlanything", "buffer", "log", RUN, "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_naming_a_command_loads_nothing_heavy():
    heavy = {"torch", "lightning", "transformers", "polars", "dvc", "yaml"}
    code = f"import sys, rlanything.buffer.views.cli.commands; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "set()\n"


@relaxed
@given(st.text(st.characters(), max_size=40))
def test_safe_leaves_only_what_is_visible(text):
    assert not {unicodedata.category(c) for c in safe(text)} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    visible = "grün 漢字 [red] é"
    assert safe(visible) == visible
