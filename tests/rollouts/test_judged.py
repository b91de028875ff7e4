"""`rlanything rollouts votes`: stored votes against the oracle, and runs of which nothing can be said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from stage_cases import small

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.core.types import Judgement, Vote
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.rewards.step_votes.labels import majority
from rlanything.rollouts.judged import Tally, judged, rates
from rlanything.runs import build

ARM, SEED = "full", "seed-0"


def said(*verdicts: int | None) -> Judgement:
    return Judgement((), tuple(Vote(verdict, "", (), ()) for verdict in verdicts))


def test_good_and_bad_steps_count_the_same():
    good, bad = Tally(), Tally()
    for verdicts in ((1, 1, 1), (1, 1, -1), (1, -1, None)):
        good.add(True, said(*verdicts))
    bad.add(False, said(1, 1, 1))
    bad.add(False, said(None, None, None))
    assert rates(good, bad) == pytest.approx(
        {
            "good": 3 / 4,
            "votes": (6 / 8 + 0) / 2,
            "majority": (2 / 3 + 0) / 2,
            "unanimous": 2 / 4,
            "all_wrong": (0 + 1) / 2,
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


@pytest.mark.integration
def test_a_run_has_what_its_records_and_the_oracle_say(undisturbed):
    page = judged(f"{ARM}/{SEED}", undisturbed.parents[2], environment=True)
    run, family = StoredRun(undisturbed), build.family(small())
    assert [row["iteration"] for row in page["rows"]] == list(run.iterations)
    assert page["runs"] == {
        f"{ARM}/{SEED}": [{k: v for k, v in r.items() if k != "iteration"} for r in page["rows"]]
    }
    for row in page["rows"]:
        stored = StoredIteration(run, row["iteration"])
        hits = {True: [], False: []}
        for record in stored.episodes:
            trajectory = record.episode.trajectory
            labels = family.label_steps(
                stored.tasks[trajectory.task_id], [s.action for s in trajectory.steps]
            )
            for good, judgement in zip(labels, record.episode.judgements, strict=False):
                if any(vote.verdict for vote in judgement.votes):
                    hits[good].append(majority(judgement) == (1 if good else -1))
        assert row["majority"] == pytest.approx(sum(sum(h) / len(h) for h in hits.values()) / 2)
        assert row["good"] == pytest.approx(len(hits[True]) / sum(map(len, hits.values())))


@pytest.mark.integration
def test_an_arm_is_the_mean_over_its_runs(undisturbed, tmp_path, capsys):
    root = undisturbed.parents[2]
    for name in ("runs", "provenance"):
        shutil.copytree(root / name, tmp_path / name)
    shutil.copytree(tmp_path / "runs" / ARM / SEED, tmp_path / "runs" / ARM / "seed-1")
    assert main(["--root", str(tmp_path), "rollouts", "votes", ARM, "--environment", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert list(page["runs"]) == ["full/seed-0", "full/seed-1"]
    assert page["runs"]["full/seed-0"] == page["runs"]["full/seed-1"]
    for row, one in zip(page["rows"], page["runs"]["full/seed-0"], strict=True):
        assert {k: v for k, v in row.items() if k != "iteration"} == pytest.approx(one)
    assert main(["--root", str(tmp_path), "rollouts", "votes", ARM, "--environment", "--every", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "votes of full against the environment's oracle, percent"
    assert [line.split()[0] for line in lines[3:]] == ["0", str(page["rows"][-1]["iteration"])]


@pytest.mark.integration
def test_what_cannot_be_compared_is_refused(undisturbed, coding_project, tmp_path):
    root = undisturbed.parents[2]
    for words, said_of_it in (
        ({"every": 0, "environment": True}, "--every 0: must be at least 1"),
        ({"environment": False}, r"the environment is not asked \(--no-environment\)"),
    ):
        with pytest.raises(ConfigError, match=said_of_it):
            judged(ARM, root, **words)
    for name in ("runs", "provenance"):
        shutil.copytree(root / name, tmp_path / name)
    with pytest.raises(ConfigError, match=r"the environment is not asked: .*params\.yaml"):
        judged(ARM, tmp_path)
    with pytest.raises(ConfigError, match="its reward model writes tests"):
        judged(ARM, coding_project, environment=True)
    with pytest.raises(ConfigError, match=r"no run 'ful'.*did you mean 'full'"):
        judged("ful", Path(root))
