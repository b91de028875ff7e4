"""What is seen of runs in every state: running, waiting, stopped, finished, none, half-written, many at once."""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
import watch_cases as cases

from rlanything.cli import main
from rlanything.files import locks
from rlanything.watch import holders, places, seeds, stages
from rlanything.watch.machine import Use
from rlanything.watch.text import page
from rlanything.watch.view import Watched


def watch(root, capsys, *words: str) -> str:
    assert main(["--root", str(root), "watch", *words]) == 0
    return capsys.readouterr().out


def look(root, capsys, *words: str) -> dict:
    return json.loads(watch(root, capsys, *words, "--json"))


def test_of_no_run_it_says_how_to_start_one(tmp_path, capsys):
    out = watch(tmp_path, capsys)
    assert "nothing runs" in out
    assert "`rlanything train --arm full`" in out
    mine = tmp_path / ".rla" / "mine"
    mine.mkdir(parents=True)
    (mine / "params.yaml").write_text((Path(__file__).parents[2] / "params.yaml").read_text())
    assert main(["--root", str(tmp_path), "--workspace", "mine", "watch", "--once"]) == 0
    assert "`rlanything --workspace mine train --arm full`" in capsys.readouterr().out


def test_a_workspace_is_found_whatever_it_is_called(tmp_path):
    for name in ("data", "models", "runs"):
        (tmp_path / ".rla" / name).mkdir(parents=True)
        (tmp_path / ".rla" / name / "params.yaml").touch()
    (tmp_path / ".rla" / "live" / "0123abcd").mkdir(parents=True)
    assert [name for name, _ in places.roots(tmp_path)] == [".", "data", "models", "runs"]


def test_a_folder_that_cannot_be_looked_into_hides_no_other(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / ".rla" / name).mkdir(parents=True)
        (tmp_path / ".rla" / name / "params.yaml").write_text("")
    stat = os.stat

    def refused(path, *args, **named):
        if Path(path).parent.name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **named)

    monkeypatch.setattr(os, "stat", refused)
    assert [name for name, _ in places.roots(tmp_path)] == [".", "a", "c"]


def test_a_run_is_running_while_its_lock_is_held_and_stopped_when_its_process_is_gone(tmp_path, capsys):
    folder = cases.seed(cases.arm(tmp_path))
    with locks.held(folder / "lock", "busy"):
        (run,) = look(tmp_path, capsys)["places"][0]["runs"]
        assert (run["state"], run["holder"]["pid"], run["now"]["phase"]) == (
            "running",
            os.getpid(),
            "rollout",
        )
        assert run["left"] == pytest.approx(2.0 * (11 - 4) - 2.0, abs=2.0)
        out = watch(tmp_path, capsys)
        assert "rollout, turn 3" in out
        assert "not running" not in out
        assert " 1,600" not in out, "800 tokens in a second of sampling"
        assert "800" in out
    out = watch(tmp_path, capsys)
    assert "not running" in out
    assert "full is not running (4 iterations are kept)" in out
    assert look(tmp_path, capsys)["places"][0]["runs"][0]["state"] == "stopped"


def test_seeds_that_have_not_begun_wait_and_count_in_the_time_left(tmp_path, capsys):
    place = cases.arm(tmp_path, seeds=4)
    running = [cases.seed(place, number) for number in (0, 1)]
    stage = holders.lock_of(tmp_path, "train --arm full")
    stage.parent.mkdir(parents=True)
    with ExitStack() as stack:
        for path in (stage, *(folder / "lock" for folder in running)):
            stack.enter_context(locks.held(path, "busy"))
        runs = look(tmp_path, capsys)["places"][0]["runs"]
        assert [run["state"] for run in runs] == ["running", "running", "waiting", "waiting"]
        assert [run["iterations"] for run in runs] == [4, 4, 0, 0]
    (running[0] / "finished").mkdir()
    assert look(tmp_path, capsys)["places"][0]["runs"][0]["state"] == "done"


def test_a_finished_run_has_its_values_and_its_times(tmp_path, capsys):
    cases.finished(tmp_path)
    (run,) = look(tmp_path, capsys, "outcome")["places"][0]["runs"]
    assert (run["state"], run["left"], run["iterations"]) == ("finished", 0.0, 6)
    assert run["seconds_per_iteration"] == 2.0
    assert run["curves"]["panel/in_domain"] == [0.4] * 6
    assert (run["accepted"], run["rejected"]) == (6, 6)
    lap = {**cases.lap(5), "phases": {"rollout/generate": {"seconds": 0.5}}}
    with (tmp_path / ".rla" / "timings" / "outcome" / "seed-0.jsonl").open("a") as file:
        file.write(json.dumps(lap) + "\n")
    out = watch(tmp_path, capsys, "outcome/seed-0")
    assert "1,600" in out, "an arm without votes has times of its rollouts only"
    assert "5/5" in out
    assert "finished" in out


def test_what_is_half_written_or_missing_is_left_out(tmp_path, capsys):
    folder = cases.seed(cases.arm(tmp_path), published=3)
    (folder / "iterations" / ".tmp-0003").mkdir()
    (folder / "iterations" / "0003").mkdir()
    with (folder / "timing.jsonl").open("a") as file:
        file.write('{"iteration": 3, "seco')
    for text in ("", '{"iteration": 3, "pha', "[]", '{"phase": 3}', "\x00"):
        (folder / "now.json").write_text(text)
        (run,) = look(tmp_path, capsys)["places"][0]["runs"]
        assert (run["iterations"], run["now"], run["seconds_per_iteration"]) == (4, None, 2.0)
        assert "0.50" in watch(tmp_path, capsys)
    (folder.parent / "origin.json").unlink()
    (run,) = look(tmp_path, capsys)["places"][0]["runs"]
    assert (run["last_iteration"], run["left"]) == (None, None)
    assert "/?" in watch(tmp_path, capsys)


def test_of_two_trainings_of_an_arm_the_newer_one_is_shown_unless_the_other_runs(tmp_path):
    old = cases.seed(cases.arm(tmp_path, key="f" * 16), published=1)
    new = cases.seed(cases.arm(tmp_path, key="0" * 16), published=2)
    os.utime(old.parent, (1, 1))
    assert [one.folder for one in places.in_training(tmp_path)] == [new]
    with locks.held(old / "lock", "busy"):
        os.utime(old.parent, (1, 1))
        assert [one.folder for one in places.in_training(tmp_path)] == [old]


def test_many_trials_are_a_line_each_and_one_of_them_is_shown_in_detail(tmp_path, capsys):
    trials = tmp_path / ".rla" / "sweeps" / "lambda-1a2b3c4d" / "trials"
    running = []
    for number in range(12):
        root = trials / f"{number:04d}"
        root.mkdir(parents=True)
        (root / "params.yaml").write_text("")
        running.append(cases.seed(cases.arm(root)))
    with ExitStack() as stack:
        for folder in running[:2]:
            stack.enter_context(locks.held(folder / "lock", "busy"))
        busy = look(tmp_path, capsys)["places"]
        assert [place["name"].rpartition("/")[2] for place in busy] == ["0000", "0001"]
        out = watch(tmp_path, capsys, "lambda")
        assert "12 places, something runs in 2" in out
        assert out.count("not running") == 10
        assert "rollout, turn 3" in watch(tmp_path, capsys, "sweeps/lambda-1a2b3c4d/trials/0001")


def test_of_a_trial_no_command_is_named_that_would_train_the_project_s_own_arm(tmp_path, capsys):
    root = tmp_path / ".rla" / "sweeps" / "lambda-1a2b3c4d" / "trials" / "0001"
    root.mkdir(parents=True)
    (root / "params.yaml").write_bytes((Path(__file__).parents[2] / "params.yaml").read_bytes())
    cases.seed(cases.arm(root))
    out = " ".join(watch(tmp_path, capsys, "sweeps/lambda-1a2b3c4d/trials/0001").split())
    assert "the command that trained it goes on from there" in out
    assert "rlanything train" not in out


@pytest.mark.parametrize("name", ["ful", "full/seed-9", "nowhere"])
def test_an_unknown_name_is_refused_with_the_nearest(tmp_path, capsys, name):
    cases.seed(cases.arm(tmp_path))
    assert main(["--root", str(tmp_path), "watch", name]) == 2
    said = capsys.readouterr().err
    assert f"no run, workspace, sweep or check '{name}'" in said
    assert "full" in said


def test_a_workspace_is_found_by_its_name_and_says_how_to_go_on_there(tmp_path, capsys):
    root = tmp_path / ".rla" / "bold"
    root.mkdir(parents=True)
    (root / "params.yaml").write_text("nonsense: [")
    cases.seed(cases.arm(root))
    out = watch(tmp_path, capsys, "bold")
    assert "params.yaml cannot be read" in out
    assert "full is not running" in out
    assert main(["--root", str(tmp_path), "--workspace", "bold", "watch"]) == 0
    assert "full is not running" in capsys.readouterr().out


def test_where_nothing_runs_a_training_that_did_not_end_in_a_workspace_is_seen(tmp_path, capsys):
    root = tmp_path / ".rla" / "zeta"
    cases.seed(cases.arm(root))
    out = watch(tmp_path, capsys)
    assert "zeta: nothing runs" in out
    assert "full is not running (4 iterations are kept)" in out
    assert "nothing has run here yet" not in out


def test_the_stages_are_seen_by_locks_and_outputs_and_timed_by_their_last_run(tmp_path, capsys):
    from rlanything.planning import compose

    (tmp_path / "experiments").symlink_to(places.__file__.partition("/rlanything/watch")[0] + "/experiments")
    compose.write(tmp_path / "params.yaml", ["scale=smoke"], tmp_path)
    (tmp_path / "dvc.yaml").write_text("")
    (tmp_path / "data" / "tasks").mkdir(parents=True)
    for words, seconds in (("bootstrap", 100.0), ("train --arm outcome", 50.0), ("evaluate --arm base", 7.0)):
        stages.keep_time(tmp_path, words, seconds)
    with (tmp_path / stages.TIMES).open("a") as file:
        file.write('{"command": "tas')
    lock = holders.lock_of(tmp_path, "bootstrap")
    lock.parent.mkdir(parents=True)
    with locks.held(lock, "busy"):
        place = Watched(tmp_path, tmp_path).look()
        (found,) = place.places
        states = {one.words: one for one in found.stages}
        assert states["tasks"].state == stages.THERE
        assert states["bootstrap"].state == stages.RUNNING
        assert 90 < (states["bootstrap"].left or 0) <= 100
        assert states["train --arm full"].left == 50.0, "as long as another arm took"
        assert states["report"].left is None
        assert place.whole[0].unknown == ("report",)
        out = watch(tmp_path, capsys)
        assert re.match(r"bootstrap; 0:\d\d so far, 1:[34]\d left; in all about ", out)
        assert "and 1 command that was not timed yet" in out
    (tmp_path / "models").mkdir()
    lock = holders.lock_of(tmp_path, "tasks")
    with locks.held(lock, "busy"):
        found = places.read(".", tmp_path)
        assert {one.words: one.state for one in found.stages}["bootstrap"] == stages.TO_DO, (
            "its input changes"
        )


def test_between_two_stages_dvc_works(tmp_path, capsys):
    cases.finished(tmp_path)
    (tmp_path / places.DVC_LOCK).parent.mkdir(parents=True)
    with locks.held(tmp_path / places.DVC_LOCK, "busy"):
        assert watch(tmp_path, capsys).startswith("between stages")
    assert watch(tmp_path, capsys).startswith("nothing runs")


def test_watching_changes_nothing_and_stands_in_nobody_s_way(tmp_path):
    folder = cases.seed(cases.arm(tmp_path))
    before = {
        path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in tmp_path.rglob("*")
    }
    watched = Watched(tmp_path, tmp_path)
    for _ in range(3):
        watched.look()
        with locks.held(folder / "lock", "busy", patience=0.0):
            assert watched.look().places[0].seeds[0].state == seeds.RUNNING
    after = {path: path.is_dir() or path.read_bytes() for path in tmp_path.rglob("*")}
    assert after == {path: content for path, (_, content) in before.items()}


@pytest.mark.parametrize(("processes", "said"), [(1, "1 process, "), (2, "2 processes, ")])
def test_one_process_is_no_processes(processes, said):
    assert said in page._use(Use(processes, 0.0, 1, 1, 1, 1)).plain
