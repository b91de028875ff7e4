"""`replay --play`: what only the environment, the prompts and the tokenizers can say is found when it was changed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from buffer_cases import rechained
from replay_cases import RUN, edit, playable
from stage_cases import small

from rlanything.cli import main
from rlanything.core.records.rollouts import trajectory_from_json
from rlanything.core.types import Status
from rlanything.loop.group import CONTEXT_FULL
from rlanything.repro import replay_report
from rlanything.repro.played import unequal

pytestmark = pytest.mark.integration
Record = dict[str, Any]


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    return playable(undisturbed, tmp_path)


def problem(root: Path, *, play: bool = True) -> str:
    return replay_report.replay_run(root / RUN, (), play=play).problem


def test_a_run_that_is_played_again_is_the_same(root, capsys):
    assert main(["--root", str(root), "replay", "full", "--play", "--json"]) == 0
    said = capsys.readouterr()
    assert [(one["played"], one["identical"]) for one in json.loads(said.out)] == [(True, True)]
    assert "replay: full/seed-0: 1 of " in said.err


def last_step(record: Record) -> Record | None:
    steps = record["trajectory"]["steps"]
    return steps[-1] if steps and record["trajectory"]["status"] in ("ok", "truncated") else None


def observation(record: Record) -> bool | None:
    if step := last_step(record):
        step["observation"] = "You have won."
        return True
    return None


def opening(record: Record) -> bool:
    record["trajectory"]["first_observation"] += " It is dark."
    return True


def action(record: Record) -> bool | None:
    if step := last_step(record):
        step["action"] = "look around"
        return True
    return None


def token(record: Record) -> bool | None:
    """Another command than the one that was sampled, which was allowed too."""
    for step in record["trajectory"]["steps"]:
        for place, allowed in enumerate(step["allowed"]):
            if len(allowed) > 1:
                step["response"][place] = next(one for one in allowed if one != step["response"][place])
                return True
    return None


def choice(record: Record) -> bool | None:
    """A command less was admissible, so that what was sampled seems likelier."""
    for step in record["trajectory"]["steps"]:
        for place, allowed in enumerate(step["allowed"]):
            if len(allowed) > 2:
                allowed.remove(next(one for one in allowed if one != step["response"][place]))
                return True
    return None


def prompt(record: Record) -> bool | None:
    if step := last_step(record):
        step["prompt_added"][0] += 1
        return True
    return None


def reasoning(record: Record) -> bool | None:
    for judgement in record["judgements"]:
        judgement["votes"][0]["reasoning"] = "I was paid to say so"
        return True
    return None


def question(record: Record) -> bool | None:
    for judgement in record["judgements"]:
        judgement["prompt_added"][-1] += 1
        return True
    return None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (observation, "the observation is 'You have won.', played again"),
        (opening, "the first observation"),
        (action, "the action is 'look around', played again"),
        (token, ", played again"),
        (choice, "what is allowed"),
        (prompt, "the prompt"),
        (reasoning, "the reasoning of vote 1 is 'I was paid to say so', played again"),
        (question, "the reward model's prompt"),
    ],
)
def test_what_a_replay_believes_is_found_when_the_run_is_played_again(
    root, change: Callable[[Record], bool | None], says: str
):
    edit(root, 1, change)
    assert problem(root, play=False) == ""
    found = problem(root)
    assert found.startswith("iteration 1, slot ")
    assert says in found


def test_a_vote_whose_verdict_is_not_that_of_its_tokens_is_found(root, monkeypatch):
    """As after a forger who computed all that follows from the verdict again: the stored advantages are believed."""

    def turned(record: Record) -> bool | None:
        for judgement in record["judgements"]:
            for vote in judgement["votes"]:
                if vote["verdict"] is not None:
                    vote["verdict"] = -vote["verdict"]
                    return True
        return None

    edit(root, 0, turned)
    monkeypatch.setattr("rlanything.repro.replay.first_problem", lambda *one: "")
    assert "the verdict of vote " in problem(root)


def test_a_rewrite_that_does_not_follow_from_its_reply_is_found(root):
    path = root / RUN / "buffer" / "events.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    event = next(line for line in lines if line.get("kind") in ("proposed", "invalid"))
    event["reply"] = "something else"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rechained(path.parent)
    assert problem(root, play=False) == ""
    assert f"slot {event['slot']}" in problem(root)


def test_ids_that_are_no_tokens_are_named(root):
    def absurd(record: Record) -> bool | None:
        for judgement in record["judgements"]:
            judgement["votes"][0]["response"][0] = 2**40
            return True
        return None

    edit(root, 0, absurd)
    assert "no tokens of this model" in problem(root)


def test_the_environment_of_a_strangers_run_is_not_made(root, capsys):
    path = root / "provenance" / "full.json"
    record = json.loads(path.read_text())
    record["config"]["env"]["_target_"] = "subprocess.Popen"
    path.write_text(json.dumps(record))
    assert main(["--root", str(root), "replay", "full", "--play"]) == 2
    assert "the run's section env is not that of" in capsys.readouterr().err


def shortened(record: Record) -> bool | None:
    """The last token of a response ends it. Without it, text and action are the same."""
    if step := last_step(record):
        for key in ("response", "logprobs", "allowed"):
            step[key].pop()
        return True
    return None


def full_context(record: Record) -> bool:
    record["trajectory"]["error"] = CONTEXT_FULL
    return True


def version(record: Record) -> bool:
    record["trajectory"]["version"] = 3
    return True


def judged_on(record: Record) -> bool | None:
    """A vote that goes on after its end. The token that ends it has no text."""
    for judgement in record["judgements"]:
        for vote in judgement["votes"]:
            if len(vote["response"]) < small().judge.max_tokens:
                vote["response"].append(vote["response"][-1])
                vote["logprobs"].append(-0.5)
                return True
    return None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (full_context, "whether the context was full is True, played again False"),
        (version, "the version of the weights is 3, played again None"),
        (judged_on, " goes on after token "),
        (shortened, ": its response stops after "),
    ],
)
def test_what_no_run_of_these_rules_holds_is_found(root, monkeypatch, change, says):
    """As after a forger who computed all that follows again: what a replay computes from it is believed."""
    edit(root, 1, change)
    monkeypatch.setattr("rlanything.repro.replay.first_problem", lambda *one: "")
    assert problem(root, play=False) == ""
    assert says in problem(root)


def test_missing_tokenizers_are_named_before_anything_is_played(root, capsys):
    (root / "models").unlink()
    assert main(["--root", str(root), "replay", "full", "--play"]) == 2
    assert "model.policy" in capsys.readouterr().err


def test_an_episode_that_broke_off_is_compared_up_to_there(root):
    record = json.loads(
        gzip.decompress((root / RUN / "rollouts" / "iter_0001.jsonl.gz").read_bytes()).splitlines()[0]
    )
    whole = trajectory_from_json(record["trajectory"])
    first = whole.steps[0]
    cut = replace(whole, steps=(first,), status=Status.ENV_ERROR, outcome=-1)
    assert unequal.trajectories(cut, whole) == ""
    assert unequal.trajectories(replace(cut, steps=()), whole) == ""
    changed = replace(cut, steps=(replace(first, observation="?"),))
    assert unequal.trajectories(changed, whole).startswith("step 0, the observation is '?', played again")
    assert unequal.trajectories(replace(cut, status=Status.TRUNCATED), whole).startswith(
        "the number of steps is 1"
    )
    never = replace(cut, steps=(), status=Status.TIMEOUT, first_observation="", error="no browser")
    assert unequal.trajectories(cut, never) == ""
    assert "played again 'timeout after 0 steps: no browser'" in unequal.trajectories(whole, never)
    now = replace(cut, error="no browser")
    assert "played again 'env_error after 1 step: no browser'" in unequal.trajectories(whole, now)
