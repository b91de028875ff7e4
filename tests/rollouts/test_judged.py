"""`rlanything rollouts votes`: stored votes against the oracle, and runs of which nothing can be said."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from live_cases import in_training
from stage_cases import small

from envs.alfworld.family import AlfworldFamily
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.core.types import Judgement, Vote
from rlanything.planning import compose
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.rollouts.judged import Tally, judged, rates
from rlanything.runs import build

ARM, SEED = "full", "seed-0"


def said(*verdicts: int | None) -> Judgement:
    return Judgement((), tuple(Vote(verdict, "", (), ()) for verdict in verdicts))


def test_good_and_bad_steps_count_the_same():
    good, bad = Tally(), Tally()
    for verdicts in ((1, 1, 1), (1, 1, -1), (1, -1, None), (None, None, None)):
        good.add(True, said(*verdicts))
    for verdicts in ((1, 1, 1), (1, 1, None)):
        bad.add(False, said(*verdicts))
    bad.add(False, Judgement((), ()))  # nobody was asked
    assert rates(good, bad) == pytest.approx(
        {
            "good": 4 / 6,
            "votes": (6 / 8 + 0) / 2,
            "majority": (2 / 4 + 0) / 2,
            "unanimous": 2 / 6,
            "all_wrong": (0 + 1 / 2) / 2,
        }
    )


def test_a_judge_that_always_says_the_same_is_right_half_the_time():
    good, bad = Tally(), Tally()
    for _ in range(9):
        good.add(True, said(1, 1, 1))
    bad.add(False, said(1, 1, 1))
    found = rates(good, bad)
    assert (found["votes"], found["majority"], found["unanimous"]) == (0.5, 0.5, 1.0)


def test_nothing_is_said_where_one_label_is_missing():
    good = Tally()
    good.add(True, said(1))
    assert set(rates(good, Tally()).values()) == {None}


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    """A project with the finished run, and without its configuration."""
    project = tmp_path / "project"
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, project / name)
    return project


def votes_of(run: Path, iteration: int) -> dict[bool, list[list[int | None]]]:
    """The verdicts on each step, by the oracle's label."""
    stored, family = StoredIteration(StoredRun(run), iteration), build.family(small())
    found: dict[bool, list[list[int | None]]] = {True: [], False: []}
    for record in stored.episodes:
        trajectory = record.episode.trajectory
        labels = family.label_steps(stored.tasks[trajectory.task_id], [s.action for s in trajectory.steps])
        for good, judgement in zip(labels, record.episode.judgements, strict=False):
            found[good].append([vote.verdict for vote in judgement.votes])
    return found


@pytest.mark.integration
def test_a_run_has_what_its_records_and_the_oracle_say(undisturbed):
    page = judged(f"{ARM}/{SEED}", undisturbed.parents[2], environment=True)
    run = StoredRun(undisturbed)
    assert [row["iteration"] for row in page["rows"]] == list(run.iterations)
    for row in page["rows"]:
        steps = votes_of(undisturbed, row["iteration"])
        every = [(1 if good else -1, said) for good, each in steps.items() for said in each]
        assert row["good"] == pytest.approx(len(steps[True]) / len(every))
        assert row["unanimous"] == run.metrics[row["iteration"]]["unanimous"]
        assert row["unanimous"] == pytest.approx(
            sum(set(said) in ({1}, {-1}) for _, said in every) / len(every)
        )
        for name, count in (
            ("majority", lambda label, said: label * sum(v or 0 for v in said) > 0),
            ("all_wrong", lambda label, said: set(said) == {-label}),
        ):
            shares = [[count(label, said) for label, said in every if label == wanted] for wanted in (1, -1)]
            assert row[name] == pytest.approx(sum(sum(s) / len(s) for s in shares) / 2)
        tried = [
            record.episode.trajectory.outcome == 1
            for record in StoredIteration(run, row["iteration"]).episodes
            if record.episode.trajectory.counts and not record.proposal
        ]
        assert row["success"] == pytest.approx(sum(tried) / len(tried))


@pytest.mark.integration
def test_an_arm_is_the_mean_over_its_runs(root, capsys):
    other = root / "runs" / ARM / "seed-1"
    shutil.copytree(root / "runs" / ARM / SEED, other)
    for path in (other / "rollouts").iterdir():  # a reward model that is always sure of a good step
        text = gzip.decompress(path.read_bytes()).decode()
        path.write_bytes(gzip.compress(re.sub(r'"verdict":(-?1|null)', '"verdict":1', text).encode()))
    assert main(["--root", str(root), "rollouts", "votes", ARM, "--environment", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert list(page["runs"]) == ["full/seed-0", "full/seed-1"]
    for row, one, two in zip(page["rows"], *page["runs"].values(), strict=True):
        assert (two["majority"], two["votes"], two["unanimous"]) == (0.5, 0.5, 1.0)
        for name in ("votes", "majority", "unanimous", "all_wrong", "success"):
            assert row[name] == pytest.approx((one[name] + two[name]) / 2)
    assert main(["--root", str(root), "rollouts", "votes", ARM, "--environment", "--every", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "votes of full against the environment's oracle, percent"
    assert [line.split()[0] for line in lines[2:]] == ["iteration", "0", str(page["rows"][-1]["iteration"])]


@pytest.mark.integration
def test_a_run_in_training_has_the_iterations_that_are_published(undisturbed, tmp_path):
    live = in_training(undisturbed.parents[2], tmp_path, published=1)
    page = judged(ARM, tmp_path, environment=True)
    assert [row["iteration"] for row in page["rows"]] == [0]
    assert page["rows"][0] == judged(ARM, undisturbed.parents[2], environment=True)["rows"][0]
    older = live.parents[2] / "older"
    shutil.copytree(live.parents[1], older)
    shutil.rmtree(older / ARM / SEED / "iterations" / "0000")
    os.utime(older, (1, 1))
    assert judged(ARM, tmp_path, environment=True) == page, "what an older training has left is not read"


@pytest.mark.integration
def test_a_strangers_environment_is_not_made(root, tmp_path):
    """Its own configuration agrees with the run, and says nothing."""
    mine = tmp_path / "mine"
    mine.mkdir()
    config = small().model_dump(mode="json", by_alias=True)
    other = {**config, "env": {**config["env"], "edit": "tokens"}}
    for project, content in ((root, config), (mine, other)):
        (project / "params.yaml").write_text(compose.text(content))
    run = str(root / "runs" / ARM / SEED)
    assert judged(run, root)["rows"]
    with pytest.raises(
        ConfigError, match="the environment is not asked: the run's section env is not that of"
    ):
        judged(run, mine)


@pytest.mark.integration
def test_an_oracle_that_fails_is_said_so(root, monkeypatch):
    def fail(self, task, actions):
        raise ZeroDivisionError("no label")

    monkeypatch.setattr(AlfworldFamily, "label_steps", fail)
    with pytest.raises(
        ConfigError, match=r"full/seed-0, iteration 0: the environment was asked .* failed: .*: no label"
    ):
        judged(ARM, root, environment=True)


@pytest.mark.integration
def test_what_cannot_be_compared_is_refused(root, coding_project):
    for words, said_of_it in (
        ({"every": 0, "environment": True}, "--every 0: must be at least 1"),
        ({"environment": False}, r"the environment is not asked \(--no-environment\)"),
        ({}, r"the environment is not asked: .*params\.yaml"),
    ):
        with pytest.raises(ConfigError, match=said_of_it):
            judged(ARM, root, **words)
    with pytest.raises(ConfigError, match="its reward model writes tests"):
        judged(ARM, coding_project, environment=True)
    with pytest.raises(ConfigError, match=r"no run 'ful'.*did you mean 'full'"):
        judged("ful", root)


@pytest.mark.integration
def test_runs_of_several_arms_have_no_mean(undisturbed, tmp_path):
    project = undisturbed.parents[2]
    shutil.copytree(undisturbed, tmp_path / "runs" / "full" / "seed-0")
    shutil.copytree(undisturbed, tmp_path / "runs" / "outcome" / "seed-0")
    record = (project / "provenance" / "full.json").read_text()
    for arm in ("full", "outcome"):
        (tmp_path / "provenance").mkdir(exist_ok=True)
        (tmp_path / "provenance" / f"{arm}.json").write_text(
            record.replace('"arm": "full"', f'"arm": "{arm}"')
        )
    with pytest.raises(ConfigError, match=r"runs: holds runs of several arms \(full, outcome\)"):
        judged("runs", tmp_path, environment=True)
