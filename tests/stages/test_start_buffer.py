"""`tasks.start`: a run begins with the tasks of a buffer, through the real stage; what cannot be begun with is told."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from stage_cases import small

from envs.splits import SPLITS
from rlanything.buffer import Event, TaskBuffer, read_snapshot, write_snapshot
from rlanything.buffer.views import export, import_
from rlanything.buffer.views.find.runs import open_run
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.core.types import Direction, EventKind, Task
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import tasks

SLOTS = 5


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A project with the tasks of another seed, and a run from which slot 1 came out with another task."""
    root = tmp_path_factory.mktemp("made")
    tasks.make_tasks(small("seed=7", f"tasks.train={SLOTS + 1}"), root)
    *start, other = read_tasks(Layout(root).tasks("train"))
    buffer = TaskBuffer.start(start)
    parent = buffer.head(1).task_id
    accepted = Event(EventKind.ACCEPTED, 1, 0, Direction.HARDER, parent, 1.0, other, 0.5)
    write_snapshot(buffer.apply([accepted]), root / "tasks.jsonl")
    return root


@pytest.fixture
def root(made, tmp_path) -> Path:
    shutil.copyfile(made / "tasks.jsonl", tmp_path / "tasks.jsonl")
    return tmp_path


def config(root: Path, file: str = "tasks.jsonl", **other: object):
    buffer = read_snapshot(root / file)
    keys = {"train": len(buffer), "start": file, "start_digest": buffer.digest, **other}
    return small(*(f"tasks.{key}={value}" for key, value in keys.items()))


def test_the_buffer_trains_and_the_panels_stay_as_they_are(root):
    tasks.make_tasks(small(), root / "fresh")
    tasks.make_tasks(config(root), root)
    buffer = read_snapshot(root / "tasks.jsonl")
    trained = read_tasks(Layout(root).tasks("train"))
    assert trained == [buffer.head(slot) for slot in buffer.slots]
    assert trained[1] != buffer.versions(1)[0].task
    fresh, manifest = (json.loads(Layout(r).manifest.read_text()) for r in (root / "fresh", root))
    assert manifest["train"] == {"tasks": SLOTS, "hash": tasks.panel_hash(trained)}
    for split in SPLITS:
        same = Layout(root).tasks(split).read_bytes() == Layout(root / "fresh").tasks(split).read_bytes()
        assert same is (split != "train")
        assert (manifest[split] == fresh[split]) is (split != "train")


@pytest.mark.long
def test_every_format_of_an_export_leads_there(root, monkeypatch, capsys):
    """Export, import, and the line that import prints: the stage then writes the same training tasks."""
    monkeypatch.chdir(root)
    shutil.copytree(Path(__file__).parents[2] / "experiments", root / "experiments")
    tasks.make_tasks(config(root), root)
    wanted = Layout(root).tasks("train").read_bytes()
    Path("params.yaml").write_text("env: {_target_: envs.alfworld.family.AlfworldFamily}\n")
    (root / "once" / "buffer").mkdir(parents=True)
    shutil.copyfile("tasks.jsonl", "once/buffer/iter_0000.jsonl")
    for target, games in (("a.jsonl", False), ("b.parquet", False), ("games", True)):
        export("once", Path(target), games=games)
        place = f"start-{target}"
        assert main(["buffer", "import", target, place, *(["--games"] if games else [])]) == 0
        printed = re.search(r"`rlanything config write (.*)`", capsys.readouterr().out)
        assert main(["config", "write", "scale=smoke", *printed[1].split()]) == 0
        Layout(root).tasks("train").unlink()
        assert main(["tasks"]) == 0
        assert Layout(root).tasks("train").read_bytes() == wanted


def refused(root: Path, config) -> str:
    with pytest.raises(ConfigError) as error:
        tasks.make_tasks(config, root)
    assert not Layout(root).manifest.exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_another_digest_is_refused_and_the_right_one_is_said(root):
    told = refused(root, config(root, start_digest="0" * 64))
    assert f"set tasks.start_digest={read_snapshot(root / 'tasks.jsonl').digest}" in told
    with pytest.raises(ConfigError, match="start_digest = None belong together"):
        small("tasks.start=tasks.jsonl")


def test_another_number_of_tasks_is_refused(root):
    told = refused(root, config(root, train=SLOTS + 2))
    assert told == "tasks.train = 7: the buffer in tasks.jsonl has 5 slots; set tasks.train=5"


def test_a_file_that_is_no_buffer_is_refused(root):
    digest = "tasks.start_digest=" + "0" * 64
    (root / "text.jsonl").write_text("hello\n")
    for file, told in (
        ("missing.jsonl", "tasks.start = 'missing.jsonl': .*No such file"),
        ("text.jsonl", "not an rlanything task buffer file"),
        ("tasks.parquet", "it must be a buffer in a .jsonl file"),
    ):
        assert re.search(told, refused(root, small(f"tasks.start={file}", digest)))


def changed(root: Path, slot: int, task: Task) -> Path:
    """The buffer with another task in one slot."""
    buffer = read_snapshot(root / "tasks.jsonl")
    write_snapshot(
        TaskBuffer.start(task if n == slot else buffer.head(n) for n in buffer.slots), root / "tasks.jsonl"
    )
    return root


def test_tasks_of_another_family_are_refused(root):
    changed(root, 2, Task("chess", "mate in two", {}))
    told = refused(root, config(root))
    assert told.startswith(
        "tasks.start = 'tasks.jsonl': slot 2 holds a task of 'chess', but env makes and runs"
    )


def test_a_task_that_must_not_run_is_refused(root):
    task = read_snapshot(root / "tasks.jsonl").head(0)
    changed(root, 0, replace(task, payload={}))
    assert "must not run" in refused(root, config(root))


def test_a_task_of_a_panel_is_refused(root):
    tasks.make_tasks(small(), root / "fresh")
    panel = read_tasks(Layout(root / "fresh").tasks("in_domain"))
    changed(root, 3, panel[1])
    assert f"task {panel[1].task_id[:12]}" in refused(root, config(root))


def test_an_imported_run_is_a_start_too(root):
    import_(root / "tasks.jsonl", root / "begin", restart=True)
    assert open_run(root / "begin").latest.accepted == 0
    tasks.make_tasks(config(root, "begin/buffer/iter_0000.jsonl"), root)
    assert len(read_tasks(Layout(root).tasks("train"))) == SLOTS
