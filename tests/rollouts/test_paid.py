"""`rlanything rollouts paid`: kinds of steps, counted again from the records and the oracle."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import pytest
from live_cases import in_training
from stage_cases import small

from envs.alfworld.family import AlfworldFamily
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.core.types import Status
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.rollouts.paid import Paid, outcomes_of, paid
from rlanything.runs import build

RUN = "full/seed-0"


def test_means_are_of_the_steps_that_have_a_value():
    sums = Paid(steps=4, voted=2, votes=1.0, advantages=-2.0, alike=1, alike_advantages=0.5)
    assert sums.means(8) == {"a_rollout": 0.5, "vote": 0.5, "advantage": -0.5, "alike": 0.5}
    assert Paid().means(8) == {"a_rollout": 0.0, "vote": None, "advantage": None, "alike": None}


@pytest.mark.integration
def test_the_steps_are_those_of_the_records_and_their_kinds_those_of_the_oracle(undisturbed):
    page = paid(RUN, undisturbed.parents[2], environment=True)
    run, family = StoredRun(undisturbed), build.family(small())
    assert page["spans"] == [[run.iterations[0]] * 2, [run.iterations[-1]] * 2]
    for k, iteration in enumerate((run.iterations[0], run.iterations[-1])):
        stored = StoredIteration(run, iteration)
        tried = [r.episode for r in stored.episodes if not r.proposal and r.episode.trajectory.counts]
        steps, alike, votes = defaultdict(list), defaultdict(list), defaultdict(list)
        for one in tried:
            trajectory = one.trajectory
            task, actions = stored.tasks[trajectory.task_id], [s.action for s in trajectory.steps]
            labels, reasons = family.label_steps(task, actions), family.explain(task, actions)
            for i, kind in enumerate(zip(labels, reasons, (a.split()[0] for a in actions), strict=True)):
                advantage = one.advantages[i] if one.advantages else 0.0
                steps[kind].append(advantage)
                said = [v.verdict for v in one.judgements[i].votes if v.verdict is not None]
                votes[kind] += [sum(said) / len(said)] if said else []
                beside = {
                    e.trajectory.outcome
                    for e in tried
                    if (e.trajectory.slot, e.trajectory.task_id) == (trajectory.slot, trajectory.task_id)
                    and len(e.trajectory.steps) > i
                }
                if len(beside) == 1:
                    alike[kind].append(advantage)
        assert page["rollouts"][k] == len(tried)
        rows = {(r["good"], r["reason"], r["word"]): r["spans"][k] for r in page["rows"]}
        assert {kind for kind, row in rows.items() if row["a_rollout"]} == set(steps)
        for kind, found in steps.items():
            assert rows[kind]["a_rollout"] == pytest.approx(len(found) / len(tried))
            assert rows[kind]["advantage"] == pytest.approx(sum(found) / len(found))
            assert rows[kind]["vote"] == pytest.approx(sum(votes[kind]) / len(votes[kind]))
            mean = sum(alike[kind]) / len(alike[kind]) if alike[kind] else None
            assert rows[kind]["alike"] == (mean if mean is None else pytest.approx(mean))
    first = page["rows"][0]
    assert max(s["a_rollout"] for s in first["spans"]) == max(
        s["a_rollout"] for row in page["rows"] for s in row["spans"]
    )


@pytest.mark.integration
def test_the_table_leaves_out_rare_kinds_and_shows_no_control_sign(undisturbed, monkeypatch, capsys):
    root = str(undisturbed.parents[2])
    command = ["--root", root, "rollouts", "paid", RUN, "--environment"]
    assert main([*command, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    explain = AlfworldFamily.explain
    monkeypatch.setattr(
        AlfworldFamily,
        "explain",
        lambda self, task, actions: [f"\x1b[2J{r}" for r in explain(self, task, actions)],
    )
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    head, runs, meaning, names, *rows = out.splitlines()
    assert head == f"what the votes of {RUN} pay for"
    assert runs.startswith(f"{RUN}; iterations 0 to 0 -> ")
    assert names.split() == ["step", "a", "rollout", "->", "vote", "->", "advantage", "->", "alike", "->"]
    totals = [sum(row["spans"][k]["a_rollout"] for row in page["rows"]) for k in (0, 1)]
    common = [r for r in page["rows"] if any(r["spans"][k]["a_rollout"] >= 0.01 * totals[k] for k in (0, 1))]
    assert 0 < len(rows) == len(common)
    assert "where all tries with that step end alike" in meaning


@pytest.mark.integration
def test_a_task_that_the_oracle_does_not_know_is_not_counted(undisturbed, monkeypatch):
    run = StoredRun(undisturbed)
    last = StoredIteration(run, run.iterations[-1])
    counted = [r.episode.trajectory for r in last.episodes if not r.proposal and r.episode.trajectory.counts]
    unknown, validate = counted[0].task_id, AlfworldFamily.validate
    monkeypatch.setattr(
        AlfworldFamily,
        "validate",
        lambda self, task: "not mine" if task.task_id == unknown else validate(self, task),
    )
    page = paid(RUN, undisturbed.parents[2], environment=True)
    assert page["rollouts"][1] == sum(t.task_id != unknown for t in counted)
    monkeypatch.setattr(AlfworldFamily, "validate", lambda self, task: "not mine")
    with pytest.raises(
        ConfigError, match="no rollout of iterations 0 to 0 counts and is known to the oracle"
    ):
        paid(RUN, undisturbed.parents[2], environment=True)


@pytest.mark.integration
def test_a_try_whose_environment_crashed_is_not_counted(undisturbed, monkeypatch):
    """Its steps are not among the kinds, and its outcome makes no other try's steps differ."""
    root, last = undisturbed.parents[2], StoredRun(undisturbed).iterations[-1]
    before, episodes = paid(RUN, root, environment=True), StoredIteration.episodes.func

    def crashed(record):
        trajectory = replace(record.episode.trajectory, status=Status.ENV_ERROR, outcome=1)
        return replace(record, episode=replace(record.episode, trajectory=trajectory))

    def found(stored):
        records = list(episodes(stored))
        at = next(k for k, r in enumerate(records) if not r.proposal and r.episode.trajectory.counts)
        return [crashed(r) if k == at and stored.iteration == last else r for k, r in enumerate(records)]

    lost = next(
        r.episode.trajectory
        for r in StoredIteration(StoredRun(undisturbed), last).episodes
        if not r.proposal and r.episode.trajectory.counts
    )
    monkeypatch.setattr(StoredIteration, "episodes", property(found))
    after = paid(RUN, root, environment=True)
    assert after["rollouts"] == [before["rollouts"][0], before["rollouts"][1] - 1]
    steps = [
        sum(row["spans"][1]["a_rollout"] for row in p["rows"]) * p["rollouts"][1] for p in (before, after)
    ]
    assert steps[0] - steps[1] == pytest.approx(len(lost.steps))


@pytest.mark.integration
def test_tries_are_compared_within_their_slot(undisturbed):
    records = StoredIteration(StoredRun(undisturbed), 0).episodes
    tries = [r.episode.trajectory for r in records]
    elsewhere = [
        replace(r, episode=replace(r.episode, trajectory=replace(t, slot=t.slot + 100, outcome=-t.outcome)))
        for r, t in zip(records, tries, strict=True)
    ]
    alone, beside = outcomes_of(records), outcomes_of([*records, *elsewhere])
    assert len(beside) == 2 * len(alone)
    assert {key: beside[key] for key in alone} == alone


@pytest.mark.integration
def test_a_run_with_one_iteration_has_nothing_to_compare(undisturbed, tmp_path):
    in_training(undisturbed.parents[2], tmp_path, published=1)
    with pytest.raises(ConfigError, match="has rollouts of one iteration"):
        paid("full", tmp_path, environment=True)


@pytest.mark.integration
def test_what_nobody_can_say_is_refused(undisturbed, coding_project, monkeypatch):
    root = undisturbed.parents[2]
    with pytest.raises(ConfigError, match=r"the environment is not asked \(--no-environment\)"):
        paid(RUN, root, environment=False)
    with pytest.raises(ConfigError, match="its reward model writes tests"):
        paid("full", coding_project, environment=True)

    def fail(self, task, actions):
        raise ZeroDivisionError("no reason")

    monkeypatch.setattr(AlfworldFamily, "explain", fail)
    with pytest.raises(ConfigError, match=r"full/seed-0, iteration 0: .* failed: .*: no reason"):
        paid(RUN, root, environment=True)
