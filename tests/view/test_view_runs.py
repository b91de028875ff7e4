"""Two real runs on one page, notes that are built in, and by what notes are kept."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from live_cases import in_training
from view_cases import read

from rlanything.cli import main
from rlanything.rollouts import runs
from rlanything.view.export import export
from rlanything.view.facts import facts

pytestmark = pytest.mark.integration
RUN = "full/seed-0"


@pytest.fixture(scope="module")
def moved(project, tmp_path_factory) -> Path:
    """The project with a second seed, which is the first with another first observation in iteration 0."""
    root = tmp_path_factory.mktemp("moved") / "project"
    shutil.copytree(project, root, symlinks=True)
    shutil.copytree(root / "runs" / RUN, root / "runs/full/seed-1")
    file = root / "runs/full/seed-1/rollouts/iter_0001.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    lines[0]["trajectory"]["first_observation"] = "MOVED"
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return root


@pytest.mark.long
def test_two_runs_are_beside_each_other(moved, tmp_path, capsys):
    words = ["view", "full/seed-1", "--against", RUN, "--no-environment", "--output", str(tmp_path / "two")]
    assert main(["--root", str(moved), *words]) == 0
    said = capsys.readouterr().out
    export(RUN, tmp_path / "one", root=moved, environment=False)
    for file in (tmp_path / "one/data").rglob("*.json.gz"):
        name = file.relative_to(tmp_path / "one/data")
        if name.name != "index.json.gz":
            assert (tmp_path / "two/data/against" / name).read_bytes() == file.read_bytes()
    first = [group["rollouts"][0] for group in read(tmp_path / "two", "iterations/0")]
    assert first[0]["first_observation"] == "MOVED"
    index, other = read(tmp_path / "two", "index"), read(tmp_path / "two", "against/index")
    assert index["runs"] == other["runs"] == ["full/seed-1", RUN]
    assert other["run"] == RUN
    assert index["identity"] != other["identity"]
    assert index["task_ids"] == other["task_ids"]
    rows = len(index["rows"]["rollout"])
    counted = f"{rows} rollouts of 2 iterations"
    assert f"wrote full/seed-1: {counted} against {RUN}: {counted} to" in said
    assert "others:" not in said


def test_the_page_of_an_arm_says_which_seed_it_has_and_names_the_others(moved, tmp_path, capsys):
    words = ["view", "full", "--no-environment", "--output", str(tmp_path / "page")]
    assert main(["--root", str(moved), *words]) == 0
    said = capsys.readouterr().out
    assert f"wrote {RUN}: " in said
    assert (
        "a page has one seed of an arm; others: full/seed-1: name one, or put it beside with --against"
        in said
    )


def test_runs_of_one_name_are_shown_with_their_workspace(moved, tmp_path, capsys):
    for place in ("runs", "provenance"):
        shutil.copytree(moved / place, moved / ".rla/bold" / place)
    (moved / ".rla/bold/params.yaml").write_text("{}")
    words = ["view", RUN, "--against", f"bold:{RUN}", "--no-environment", "--output", str(tmp_path / "two")]
    assert main(["--root", str(moved), *words]) == 0
    assert f" against bold:{RUN}: " in capsys.readouterr().out
    assert read(tmp_path / "two", "index")["runs"] == [f"runs/{RUN}", f"bold:{RUN}"]


def test_a_run_is_not_compared_with_itself_nor_with_one_that_is_not_there(moved, tmp_path, capsys):
    for against, said in ((RUN, "is the run full itself"), ("fulll", "did you mean 'full'?")):
        words = ["view", "full", "--against", against, "--output", str(tmp_path / "page")]
        assert main(["--root", str(moved), *words]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_notes_are_built_in_for_the_run_that_they_are_on(moved, tmp_path, capsys):
    export(RUN, tmp_path / "page", root=moved, environment=False)
    index = read(tmp_path / "page", "index")
    assert index["built_notes"] == []
    place = {"iteration": 0, "slot": index["groups"]["slot"][0], "rewrite": 0, "rollout": 0, "step": None}
    run = {"run": RUN, "identity": index["identity"]}
    file = {"format": "rlanything view notes 1", **run, "notes": [{**place, "text": "here"}]}
    (tmp_path / "notes.json").write_text(json.dumps(file))
    words = ["--no-environment", "--notes", str(tmp_path / "notes.json"), "--output", str(tmp_path / "noted")]
    assert main(["--root", str(moved), "view", RUN, *words]) == 0
    assert read(tmp_path / "noted", "index")["built_notes"] == file["notes"]
    assert main(["--root", str(moved), "view", "full/seed-1", *words]) == 2
    assert "notes on another run ('full/seed-0'), not on full/seed-1" in capsys.readouterr().err


def test_a_run_has_one_identity_in_training_and_afterwards(project, tmp_path):
    in_training(project, tmp_path, published=1)
    live, done = (facts(runs.find("full", root)[0]) for root in (tmp_path, project))
    assert (live["state"], done["state"]) == ("in training", "finished")
    assert live["identity"] == done["identity"]
    assert live["identity"].endswith("/full/seed-0")
