"""What is published is read again only as it was written: a damaged file is found, and nothing goes on from it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import small_run
from stage_cases import ROOT, buffer, contents, write_iteration

from rlanything.buffer import Event, append_events, snapshot_path, write_snapshot
from rlanything.config import parse
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.types import Direction, EventKind
from rlanything.files.manifest import NAME
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import IterationResult
from rlanything.planning import compose
from rlanything.runs import provenance
from rlanything.runs.folder import STATE, RunFolder, place, write_iteration_files
from rlanything.runs.parts import RunId
from rlanything.runs.seedrun import SeedRun

FILES = ["metrics.json", "events.jsonl", "buffer.jsonl", "rollouts.jsonl.gz", NAME]


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def added(path: Path) -> None:
    path.with_name("tests.jsonl.gz").write_bytes(b"")


DAMAGES: list[Callable[[Path], None]] = [flipped, truncated, Path.unlink, added]


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """Four published iterations."""
    made = RunFolder(tmp_path / "run")
    made.recover(pytest.fail)
    for k in range(4):
        made.publish(k, partial(write_iteration, iteration=k))
    return made


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*FILES, STATE])
def test_a_damaged_last_iteration_is_made_again_from_the_one_before(folder, name, damage):
    before, said = contents(folder.iterations), []
    damage(folder.iterations / "0003" / name)
    assert folder.recover(said.append) == 3
    assert len(said) == 1
    assert said[0].startswith(f"{folder.iterations / '0003'}/")
    assert said[0].endswith("0003 is computed again from the iteration before it")
    assert folder.state_file(2).read_bytes() == b"state 2"
    folder.publish(3, partial(write_iteration, iteration=3))
    assert contents(folder.iterations) == before


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_an_older_iteration_that_was_damaged_is_refused_and_nothing_is_touched(folder, name, damage):
    damage(folder.iterations / "0001" / name)
    before = contents(folder.path)
    with pytest.raises(
        MachineError, match=rf"0001/.*Restore what was changed, or remove {folder.path} to train"
    ):
        folder.recover(pytest.fail)
    assert contents(folder.path) == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_text("[" * 200_000), "not JSON that can be read"),
        (os.mkfifo, "no regular file"),
        (lambda path: path.mkdir(), "a directory"),
        (lambda path: path.write_text("[]"), "expected a JSON object"),
        (lambda path: path.write_text('{"before": null, "files": [["a", "b"]]}'), "it names no files"),
    ],
    ids=["deep", "pipe", "folder", "list", "files"],
)
def test_a_manifest_that_may_be_anybodys_is_damage_and_names_the_file(folder, make, words):
    place = folder.iterations / "0003" / NAME
    place.unlink()
    make(place)
    told: list[str] = []
    assert folder.usable(told.append) == folder.published()[:-1]
    assert str(place) in told[0]
    assert words in told[0]


@pytest.mark.parametrize("content", [b"other", b"\xff"])
def test_the_hash_of_a_finished_run_may_be_anybodys(folder, content):
    folder.export(buffer(), lambda path: None)
    seal = folder.path / "finished.sha256"
    folder.check_finished()
    seal.write_bytes(content)
    with pytest.raises(MachineError, match="its content has changed"):
        folder.check_finished()


def test_an_iteration_that_is_gone_is_missed(folder):
    shutil.rmtree(folder.iterations / "0001")
    with pytest.raises(MachineError, match="0001: the iteration is gone, but 0002 is there"):
        folder.recover(pytest.fail)


def test_an_iteration_of_another_run_is_found_by_the_chain(folder, tmp_path):
    """Its own manifest is right; it does not follow the one before, nor does the next follow it."""
    other = RunFolder(tmp_path / "other")
    other.publish(0, partial(write_iteration, iteration=7))
    shutil.rmtree(folder.iterations / "0000")
    shutil.copytree(other.iterations / "0000", folder.iterations / "0000")
    with pytest.raises(MachineError, match=r"0001/manifest.json: it does not follow .*0000"):
        folder.recover(pytest.fail)


def test_two_damaged_states_are_refused_and_no_iteration_is_given_up(folder):
    for k in (2, 3):
        flipped(folder.state_file(k))
    for _ in range(2):
        with pytest.raises(MachineError, match=r"0003/state.ckpt: its content is not what was written"):
            folder.recover(pytest.fail)
    assert len(folder.published()) == 4


def test_a_damaged_state_that_is_not_needed_is_not_looked_at(folder):
    flipped(folder.state_file(2))
    assert folder.recover(pytest.fail) == 4


def test_a_first_iteration_that_is_damaged_begins_the_run_again(tmp_path):
    folder, said = RunFolder(tmp_path), []
    folder.publish(0, partial(write_iteration, iteration=0))
    flipped(folder.state_file(0))
    assert folder.recover(said.append) == 0
    assert said


@pytest.mark.parametrize("name", FILES)
def test_damage_is_found_before_the_run_is_exported(folder, name):
    flipped(folder.iterations / "0001" / name)
    with pytest.raises(MachineError, match="0001/"):
        folder.export(buffer(), lambda path: pytest.fail("it was exported"))
    assert not folder.finished.exists()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*FILES, STATE])
def test_a_run_whose_last_iteration_is_damaged_ends_with_the_same_bytes(tmp_path, monkeypatch, name, damage):
    small_run.prepare(tmp_path)
    monkeypatch.setattr(RunFolder, "export", lambda *args: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        small_run.run(tmp_path)
    monkeypatch.undo()
    damage(small_run.live(tmp_path).published()[-1] / name)
    small_run.run(tmp_path)
    small_run.finished(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_finished_seed_that_is_damaged_while_it_waits_is_not_placed_and_is_made_again(tmp_path, damage):
    folder = RunFolder(tmp_path / "seed-0")
    folder.publish(0, partial(write_iteration, iteration=0))
    folder.export(buffer(), lambda path: None)
    before = contents(folder.finished)
    damage(folder.finished / "rollouts" / "iter_0001.jsonl.gz")
    with pytest.raises(MachineError, match=r"finished: its content has changed. Remove it, and the same"):
        place([folder], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    shutil.rmtree(folder.finished)
    folder.export(buffer(), lambda path: None)
    place([folder], tmp_path / "runs")
    assert contents(tmp_path / "runs" / "seed-0") == before


def test_notes_of_earlier_starts_that_are_damaged_are_named_with_what_to_do(tmp_path):
    (tmp_path / "starts.json").write_text('[{"at": "2026')
    with pytest.raises(ConfigError, match=r"starts.json: not JSON .*; remove it: it only notes"):
        provenance.record_start(tmp_path, tmp_path, {})


def test_metrics_that_are_damaged_while_the_run_is_on_its_way_are_named(folder):
    truncated(folder.iterations / "0001" / "metrics.json")
    with pytest.raises(ConfigError, match=r"0001/metrics.json: not JSON .*; start the training again"):
        folder.metrics()


def test_a_checkpoint_belongs_to_its_buffer_and_to_its_events_also_where_they_change_no_slot(tmp_path):
    start, run = buffer(), object.__new__(SeedRun)
    run.folder, run.start, run.run_id = (
        RunFolder(tmp_path / "run"),
        start,
        RunId(tmp_path, "full", 0, tmp_path),
    )
    run.config = parse(compose.compose([], ROOT))
    write_snapshot(start, snapshot_path(run.folder.path, 0))
    proposal = Event(EventKind.INVALID, 0, 0, Direction.HARDER, start.head(0).task_id, 1.0)
    made = IterationResult((), (), (), (proposal,), LoopState(1, start))

    def write(folder: Path) -> None:
        run.head = write_iteration_files(folder, made, {}, start, run.folder.head(start, 0), {})

    run.folder.publish(0, write)
    run.state = made.state
    saved = run._save_state()
    run.head = ""
    run._restore_state(saved)
    assert run.head == saved["events"] != start.digest
    with pytest.raises(ConfigError, match="the buffer does not belong to its checkpoint"):
        run._restore_state({**saved, "buffer": buffer(2).digest})
    with pytest.raises(ConfigError, match="the events do not belong to its checkpoint"):
        run._restore_state({k: v for k, v in saved.items() if k != "events"})
    events = run.folder.iterations / "0000" / "events.jsonl"
    events.unlink()
    append_events(events, [], start.digest)
    assert run.folder.buffer(0).digest == saved["buffer"]
    with pytest.raises(ConfigError, match="the events do not belong to its checkpoint"):
        run._restore_state(saved)
