"""`replay --play`: responses that no model gives, and a run that says that there is more to play than there can be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from replay_cases import RUN, playable

from rlanything.core.seeds import derive_seed
from rlanything.core.types import Request
from rlanything.engines.openai.text_ids import TextChat
from rlanything.loop.batch import LoopState
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.repro import replay_report, run_rules
from rlanything.repro.played.engine import RecordedEngine, Vocabulary
from rlanything.repro.played.models import Silent
from rlanything.repro.played.play import PlayedRollouts, Player, Spoken
from rlanything.repro.replay import Rules
from rlanything.repro.stored import StoredIteration, StoredRun

pytestmark = pytest.mark.integration


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    return playable(undisturbed, tmp_path)


TEXT, END = 7, 9
VOCABULARY = Vocabulary(10, {END})


@pytest.mark.parametrize(
    ("ids", "choices", "says"),
    [
        ((TEXT, END), (), ""),
        ((TEXT, TEXT, TEXT), (), ""),
        ((TEXT, TEXT), (), "stops after 2 tokens, and nothing ends it there"),
        ((), (), "stops after 0 tokens"),
        ((TEXT, END, END), (), "goes on after token 1, which ends it"),
        ((TEXT, TEXT, TEXT, END), (), "has 4 tokens, and no more than 3 are sampled"),
        ((TEXT, 10), (), "has the id 10: no tokens of this model, which has 10"),
        ((-1, END), (), "has the id -1"),
        ((TEXT, END), ((TEXT, END), (8, END)), ""),
        ((TEXT,), ((TEXT, END), (8, END)), "stops after 1 tokens"),
        ((TEXT, 1, 2), ((TEXT, 1, 2, END),), ""),
    ],
)
def test_responses_that_a_model_can_have_given(ids, choices, says):
    request = Request((1,), 0, 3, choices=choices)
    found = VOCABULARY.problem(request, ids)
    assert says in found
    assert bool(found) is bool(says)


def test_an_episode_that_would_go_on_without_end_is_ended(root):
    """A run may say that an episode has as many steps as it likes."""
    seed = derive_seed(run_rules.own(root / RUN).config.seed, "run", 0)
    stored = StoredIteration(StoredRun(root / RUN), 0)
    trajectories = [record.episode.trajectory for record in stored.episodes]
    counts = Counter((trajectory.slot, trajectory.task_id) for trajectory in trajectories)
    work = [Assignment(slot, stored.tasks[task], count) for (slot, task), count in counts.items()]
    asked: list[Sampling] = []

    class Worker:
        def roll_out(self, assignments, sampling):
            asked.append(sampling)
            return trajectories

    engine = RecordedEngine()
    policy = Spoken(Silent(engine, TextChat(), 100), engine)
    PlayedRollouts(stored, Worker(), policy).roll_out(work, Sampling(seed, "act", 0, 1.0, 10**9))
    assert [one.max_steps for one in asked] == [1 + max(len(t.steps) for t in trajectories)]


def test_no_more_votes_are_asked_for_than_there_can_be(root):
    """A run may say that a step has as many votes as it likes."""
    run = StoredRun(root / RUN)
    own = run_rules.own(root / RUN)
    config = own.config.model_copy(update={"judge": own.config.judge.model_copy(update={"m": 10**9})})
    stored, state = StoredIteration(run, 0), LoopState(0, run.buffers.at(0))
    player = Player(Rules(config, own.arm, own.seed), run, root, root / "images")
    found = player.problem(stored, state, own.collect(stored, state))
    assert f"the number of votes is {own.config.judge.m}, played again {own.config.judge.m + 1}" in found


def test_no_network_is_made_of_a_model_that_reads_text_alone(root, monkeypatch):
    monkeypatch.setattr("rlanything.repro.played.models.auto_class", None)
    assert replay_report.replay_run(root / RUN, (), play=True).problem == ""
