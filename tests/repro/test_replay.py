"""Replay: a run's numbers follow from its rollouts, whatever was tampered with is named, and what-ifs are counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from buffer_cases import rechained
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import RUN, copied, edit, problem

from rlanything.buffer import TaskBuffer, read_snapshot, snapshot_path, write_snapshot
from rlanything.buffer.fields import canonical_line
from rlanything.buffer.views import commands
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.repro import replay_report
from rlanything.repro.origin import names
from rlanything.repro.replay_report import ReplayReport
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.repro.whatif import Pairs
from rlanything.runs.folder import RunFolder

pytestmark = pytest.mark.integration


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    return copied(undisturbed, tmp_path)


def test_a_run_comes_out_as_it_is_stored(root, capsys):
    assert main(["--root", str(root), "replay", "full"]) == 0
    assert "the same  every advantage, decision, buffer and metric" in capsys.readouterr().out


def forged(root: Path, key: str, value: str) -> None:
    """An event is changed, and every link and head of the chain is made to fit."""
    path = root / RUN / "buffer" / "events.jsonl"
    header, line, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, json.dumps({**json.loads(line), key: value}) + "\n", *rest]))
    rechained(path.parent)


@pytest.mark.parametrize(("key", "value"), [("seed", 7), ("critic", "made up"), ("direction", "harder")])
def test_a_deep_verification_finds_what_a_careful_forger_did(root, capsys, key, value):
    verify = ["--root", str(root), "buffer", "verify", "full/seed-0", "--band", "0.2:0.8", "--deep"]
    assert main(verify) == 0
    forged(root, key, value)
    assert main(verify) == 1
    capsys.readouterr()


def rewrite_events(root: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Other events, with every link and head of the chain made to fit."""
    path = root / RUN / "buffer" / "events.jsonl"
    header, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *change(lines)]))
    rechained(path.parent)


def test_an_event_more_than_an_iteration_made_is_named(root):
    """A rewrite that is refused twice changes no snapshot and no other number."""
    rewrite_events(root, lambda lines: [*lines, lines[-1]])
    made = sum(event.iteration == 1 for event in StoredRun(root / RUN).buffers.events) - 1
    assert problem(root) == f"iteration 1: {made + 1} events are stored, {made} replayed"


def test_a_request_that_the_run_does_not_have_is_named(root):
    def without_one(lines: list[str]) -> list[str]:
        place = next(k for k, line in enumerate(lines) if json.loads(line)["kind"] in ("proposed", "invalid"))
        return [*lines[:place], *lines[place + 1 :]]

    rewrite_events(root, without_one)
    assert problem(root).startswith("iteration 0, slot ")
    assert problem(root).endswith("; the run did not ask for it")


@pytest.mark.parametrize("key", ["trains", "proposal"])
def test_an_episode_that_trains_or_is_of_a_rewrite_as_it_was_not_is_named(root, key):
    """The last one: all of them are compared."""
    last = StoredIteration(StoredRun(root / RUN), 0).episodes[-1].episode.trajectory

    def change(record: dict[str, Any]) -> bool:
        found = record["trajectory"]["slot"], record["trajectory"]["rollout"]
        record[key] ^= found == (last.slot, last.rollout)
        return found == (last.slot, last.rollout)

    edit(root, 0, change)
    assert f"slot {last.slot}, rollout {last.rollout}: {key} is " in problem(root)


def test_a_snapshot_that_does_not_follow_from_its_events_is_named(root):
    folder = root / RUN / "buffer"
    start, after = (read_snapshot(snapshot_path(folder, number)) for number in (0, 1))
    first, *others = after.lineages
    other = TaskBuffer((replace(first, tried=first.tried | {"0" * 64}), *others))
    write_snapshot(other, snapshot_path(folder, 1), start, events="0" * 64)
    rechained(folder)
    assert problem(root) == f"iteration 0: the buffer is {other.digest[:12]}, replayed {after.digest[:12]}"


def test_a_changed_advantage_is_named_down_to_the_step(root):
    def change(record):
        lesson = record["lesson"]["policy"]
        if lesson:
            lesson[-1] += 1e-12
            return True
        return None

    edit(root, 0, change)
    assert "iteration 0, slot" in problem(root)
    assert "rollout" in problem(root)
    assert "of the policy model's lesson" in problem(root)


def test_a_turned_vote_is_named(root):
    def change(record):
        for judgement in record["judgements"]:
            for vote in judgement["votes"]:
                if vote["verdict"] is not None:
                    vote["verdict"] = -vote["verdict"]
                    return True
        return None

    edit(root, 1, change)
    assert problem(root).startswith("iteration 1")


def test_a_turned_outcome_is_named(root):
    def change(record):
        record["trajectory"]["outcome"] *= -1
        return True

    edit(root, 1, change)
    assert problem(root).startswith("iteration 1")


def test_a_changed_metric_is_named_with_both_values(root, capsys):
    path = root / RUN / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["mean_vote"] = 7.0
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert problem(root).startswith("iteration 0, metrics: mean_vote is 7.0, replayed ")
    assert main(["--root", str(root), "replay", "full"]) == 1
    assert "DIFFERS  iteration 0, metrics: mean_vote" in capsys.readouterr().out


def test_a_run_of_a_version_without_some_metric_can_be_replayed(root):
    path = root / RUN / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row.pop("task_force_ratio", None)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert problem(root) == ""


def without_end(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows[:-1]


def elsewhere(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "iteration": 7} for row in rows]


def spent_more(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows[:-1], {**rows[-1], "tokens_before": rows[-1]["tokens_before"] + 1}]


def accepted_more(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows[:-1], {**rows[-1], "accepted_total": 99}]


def unsaid(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows[:-1], {k: v for k, v in rows[-1].items() if k != "accepted_total"}]


def untrained(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rows[0], {k: v for k, v in rows[1].items() if k != "policy/loss"}, *rows[2:]]


def not_a_number(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**rows[0], "policy_tokens": float("nan")}, *rows[1:]]


def unmeasured(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rows[0], {k: v for k, v in rows[1].items() if k != "accuracy"}, *rows[2:]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_end, "metrics.jsonl has 2 rows, and a run of 2 iterations 3"),
        (elsewhere, "row 0 of metrics.jsonl: iteration is 7, and not 0"),
        (spent_more, "row 2 of metrics.jsonl: tokens_before is "),
        (accepted_more, "the last row of metrics.jsonl: accepted_total is 99, and not "),
        (unsaid, "the last row of metrics.jsonl: accepted_total is None, and not "),
        (untrained, "row 1 of metrics.jsonl: policy/loss is missing, and policy_trajectories is "),
        (not_a_number, "row 0 of metrics.jsonl: policy_tokens is nan, and no number"),
        (unmeasured, "iteration 1, metrics: accuracy is not stored, replayed "),
    ],
)
def test_rows_that_are_missing_or_do_not_follow_are_named(root, change, says):
    path = root / RUN / "metrics.jsonl"
    rows = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert problem(root).startswith(says)


def test_a_log_whose_chain_was_taken_away_is_named(root):
    """Without it nothing would bind the events' texts, such as a reply, to anything."""
    path = root / RUN / "buffer" / "events.jsonl"
    header, *events = (json.loads(line) for line in path.read_text().splitlines())
    lines = [
        {"format": header["format"], "schema": 1},
        *({key: value for key, value in event.items() if key != "previous"} for event in events),
    ]
    path.write_bytes(b"".join(canonical_line(line) + b"\n" for line in lines))
    found = commands.verify("full/seed-0", root=root)
    assert not found["ok"]
    assert any("it has no chain" in (check["problem"] or "") for check in found["checks"])


def test_rollouts_that_are_missing_or_torn_are_named(root):
    path = root / RUN / "rollouts" / "iter_0001.jsonl.gz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ConfigError, match=r"iter_0001.jsonl.gz: cannot be read"):
        replay_report.replay_run(root / RUN, ())
    path.unlink()
    with pytest.raises(ConfigError, match=r"train.save_rollouts"):
        replay_report.replay_run(root / RUN, ())


def test_a_what_if_that_changes_nothing_changes_nothing(root):
    found = replay_report.replay_run(root / RUN, ["signals.lambda=1"]).to_json()["what_if"]
    assert found["changes"] == []
    assert found["asked"]["own"] == found["asked"]["other"]
    assert found["trains"]["own"] == found["trains"]["other"]
    assert found["asked_only_now"] == found["steps"]["sign_changed"] == 0
    assert found["steps"]["correlation"] == pytest.approx(1.0)
    assert found["flips"] == []


def test_another_lambda_moves_advantages_and_no_decision(root):
    page = replay_report.replay_run(root / RUN, ["signals.lambda=2"])
    assert not page.problem
    found = page.to_json()["what_if"]
    assert found["changes"] == ["signals.lambda 1.0 -> 2.0"]
    assert found["steps"]["correlation"] < 0.9999
    assert found["asked"]["own"] == found["asked"]["other"]


def test_another_lambda_of_the_reward_model_moves_its_advantages_and_not_the_policys(root):
    found = replay_report.replay_run(root / RUN, ["signals.reward_lambda=4"]).to_json()["what_if"]
    assert found["changes"] == ["signals.reward_lambda None -> 4.0"]
    assert found["steps"]["correlation"] == pytest.approx(1.0)
    assert found["votes"]["sign_changed"] > 0
    again = replay_report.replay_run(root / RUN, ["signals.reward_lambda=4", "signals.reward_lambda=null"])
    assert again.to_json()["what_if"]["changes"] == []


def test_a_record_without_the_reward_models_lambda_is_read_as_one_whose_lambdas_are_the_same(root):
    path = root / "provenance" / "full.json"
    record = json.loads(path.read_text())
    assert record["config"]["signals"].pop("reward_lambda") is None
    path.write_text(json.dumps(record))
    assert problem(root) == ""


def test_a_higher_threshold_asks_for_more_that_was_never_made(root):
    found = replay_report.replay_run(root / RUN, ["adaptation.alpha_low=0.7"]).to_json()["what_if"]
    assert sum(found["asked"]["other"].values()) > sum(found["asked"]["own"].values())
    assert found["asked_only_now"] > 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rollout.temperature=1", "rollout.temperature: cannot be changed after the rollouts were made"),
        ("signals.lamda=1", "did you mean 'signals.lambda'"),
        ("signals.lambda=-1", "signals.lambda"),
        ("adaptation.alpha_low=0.9", "alpha_low"),
        ("adaptation.acceptance=paired", "there is nothing to pair"),
        ("signals.lambda", "expected key=value"),
        ("signals.lambda=[1", "no value that YAML can read"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_name(root, override, message):
    with pytest.raises(ConfigError, match=message):
        replay_report.replay_run(root / RUN, [override])


def test_an_unknown_run_is_refused_with_the_nearest_name(root):
    with pytest.raises(ConfigError, match=r"no finished run 'ful' below runs/: unknown; did you mean 'full'"):
        replay_report.folders("ful", root)


@pytest.mark.parametrize("find", [replay_report.folders, names.arm_of])
@pytest.mark.parametrize("name", ["full", "full/seed-0", "runs/full/seed-0"])
def test_a_run_in_training_is_said_to_be_in_training(tmp_path, find, name):
    live = RunFolder(tmp_path / ".rla/live/1f/full/seed-0")
    live.recover(print)
    write_snapshot(TaskBuffer.start([]), snapshot_path(live.path, 0))
    with pytest.raises(ConfigError, match="has not ended; `rlanything train --arm full` goes on with it"):
        find(name, tmp_path)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=30))
def test_the_correlation_of_running_sums_is_numpys(values):
    import numpy as np

    pairs = Pairs()
    for a, b in values:
        pairs.add(a, b)
    x, y = np.array(values).T
    if min(x.std(), y.std()) > 1e-3:
        assert pairs.correlation == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)
    assert pairs.flipped == int((x * y < 0).sum())


def test_words_of_a_run_cannot_move_the_cursor_or_end_the_report(capsys):
    print(replay_report.render(ReplayReport("full/seed-0", problem="reply is \ud800\x1b[2J")))
    assert "DIFFERS  reply is \\ud800\\x1b[2J\n" in capsys.readouterr().out


def test_an_interrupted_replay_does_not_claim_to_go_on(root, monkeypatch, capsys):
    def interrupted(*one: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay_report, "replay_run", interrupted)
    assert main(["--root", str(root), "replay", "full"]) == 130
    assert (
        capsys.readouterr().err == "interrupted; a replay writes nothing, so the same command begins again\n"
    )
