"""The whole loop with model.context = history: what is trained on is what was sampled, and a run is read back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from stage_cases import ROOT, lines, small

from rlanything.cli import main
from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.types import Episode, Lesson, ScoredReplies, ScoredTrajectory
from rlanything.engines.placement import Role
from rlanything.files.records import read_lines
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.loop.record import EpisodeRecord
from rlanything.repro import replay_report
from rlanything.runs import build
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, tasks, train
from rlanything.stages.bootstrap.stage import make_models

pytestmark = [pytest.mark.long, pytest.mark.integration]
ARM = "full"
GENERATE = "rlanything.engines.transformers.TransformersEngine"
CANDIDATES = "${history}You see: $observation\nYou can:\n$actions"
TOLERANCE = 2e-5
"""In log-probs: what rounding makes of the same tokens, read in another batch."""


def configuration(*overrides: str) -> Config:
    """The smallest training with a history; the trainer's own log-probs are compared with the recorded ones.

    Votes train the reward model also where every episode fails.
    """
    short = (
        *("bootstrap.policy.steps=6", "bootstrap.policy.episodes=12"),
        *("bootstrap.reward.steps=4", "bootstrap.reward.episodes=6"),
        *("bootstrap.adapter.steps=4", "bootstrap.adapter.episodes=8"),
    )
    history = "model.context=history", "model.prompts=prompts"
    learn = "learn.importance=recomputed", "signals.reward_balance=none"
    return small(*history, *short, *learn, *overrides)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """Tasks and models that were made with a history; the policy is shown the candidates."""
    root = tmp_path_factory.mktemp("history")
    shutil.copytree(ROOT / "experiments" / "prompts" / "embedded", root / "prompts")
    (root / "prompts" / "policy_history.txt").write_text(CANDIDATES)
    tasks.make_tasks(configuration(), root)
    make_models(configuration(), root)
    return root


@pytest.fixture(scope="module", params=["native", pytest.param("transformers", marks=pytest.mark.slow)])
def run(request, project, tmp_path_factory) -> Path:
    """A project with a finished run of arm `full`, sampled by one engine."""
    root = tmp_path_factory.mktemp(request.param) / "project"
    shutil.copytree(project, root)
    engine = () if request.param == "native" else (f"engine._target_={GENERATE}", "engine.max_batch=16")
    train.train_arm(configuration(*engine), root, ARM)
    return root


def episodes(root: Path, iteration: int = 0) -> list[Episode]:
    """The stored episodes of an iteration."""
    path = Layout(root).run(ARM, 0) / "rollouts" / f"iter_{iteration + 1:04d}.jsonl.gz"
    return [EpisodeRecord.from_json(record).episode for record in read_lines(path, "train")]


def difference(model: torch.nn.Module, rows: list[Row]) -> float:
    """The largest difference between the log-probs of rows and those that were recorded at sampling."""
    assert rows
    found = 0.0
    for row in rows:
        with torch.no_grad():
            fresh = target_logprobs(model, pack([row]))
        found = max(found, float((fresh - torch.tensor(row.old)).abs().max()))
    return found


def test_the_policy_learns_from_what_it_sampled(run):
    model, _ = build.load(configuration(), configuration().model.policy, run, Role.FROZEN, "policy")
    found = [e.trajectory for e in episodes(run) if e.trajectory.counts and e.trajectory.steps]
    rows = [policy_rows(ScoredTrajectory(t, (1.0,) * len(t.steps)), "step") for t in found]
    assert difference(model, [row for part in rows for row in part]) < TOLERANCE
    longest = max(found, key=lambda t: len(t.steps))
    assert len(longest.steps) > 2
    assert len(policy_rows(ScoredTrajectory(longest, (1.0,) * len(longest.steps)), "step")) > 1


def test_the_reward_model_learns_from_what_it_sampled(run):
    model, _ = build.load(configuration(), configuration().model.reward, run, Role.FROZEN, "reward")
    judged = [e for e in episodes(run) if e.judgements]
    for episode in judged:
        pairs = [(j, Lesson((1.0,) * len(j.votes), 1.0)) for j in episode.judgements]
        whole = reward_rows(ScoredReplies.of(pairs), "step")
        cut = reward_rows(ScoredReplies.of(pairs), "step", 1)
        assert (len(whole), len(cut)) == (1, sum(len(j.votes) for j in episode.judgements))
        assert max(difference(model, whole), difference(model, cut)) < TOLERANCE


def test_the_trainer_finds_no_mismatch_in_any_iteration(run):
    rows = lines(Layout(run).run(ARM, 0) / "metrics.jsonl")
    for model in ("policy", "reward"):
        trained = [row for row in rows if row.get(f"{model}/rows")]
        assert trained
        assert all(0 <= row[f"{model}/mismatch_kl"] < TOLERANCE**2 for row in trained)


def test_what_was_read_is_stored_as_text(run):
    trajectory = max((e.trajectory for e in episodes(run)), key=lambda t: len(t.steps))
    seen = [trajectory.first_observation, *(step.observation for step in trajectory.steps)]
    for number, step in enumerate(trajectory.steps):
        past = [
            f"{text}\n{done.action}\n" for text, done in zip(seen, trajectory.steps[:number], strict=False)
        ]
        assert step.prompt_text.startswith("".join(past) + f"You see: {seen[number]}\nYou can:\n1. ")
        assert step.prompt_text.count("You can:") == 1
        assert step.response_text == step.action


def test_the_reward_model_reads_prompt_response_and_result(run):
    _, tokenizer = build.load(configuration(), configuration().model.reward, run, Role.FROZEN, "reward")
    episode = max(episodes(run), key=lambda e: len(e.judgements))
    assert len(episode.judgements) > 2
    for step, judgement in zip(episode.trajectory.steps, episode.judgements, strict=False):
        asked = tokenizer.decode(judgement.prompt_ids)
        assert f"{step.prompt_text}\n{step.response_text}\n{step.observation}\njudge" in asked


def test_a_run_is_replayed_and_evaluated(run, capsys):
    evaluate.evaluate_arm(configuration(), run, ARM)
    assert (run / "evaluation" / f"{ARM}.json").is_file()
    assert main(["--root", str(run), "replay", ARM]) == 0
    assert "the same  every advantage, decision, buffer and metric" in capsys.readouterr().out
    assert replay_report.replay_run(Layout(run).run(ARM, 0), (), play=True).problem == ""


def test_a_reward_panel_of_conversations_is_refused_with_what_to_do(project, tiny_project, tmp_path):
    root = tmp_path / "project"
    shutil.copytree(project, root)
    panel = Layout(root).reward_panel("reward_panel")
    shutil.copy(Layout(tiny_project).reward_panel("reward_panel"), panel)
    with pytest.raises(
        ConfigError, match=r"model\.context = history: step 1 of a trajectory .*`rlanything bootstrap`"
    ):
        evaluate.evaluate_arm(configuration(), root, "base")
