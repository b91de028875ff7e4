"""Policy and reward model with eyes under one trainer: sampled, recomputed and updated with the pictures they saw."""

from __future__ import annotations

import copy
import logging

import pytest
import torch
from lightning.pytorch import Trainer
from sight_cases import KINDS, NAMES, PICTURES, TEXTS, folder, prompt

from rlanything.config import LearnConfig, OptimizerConfig, SupervisedConfig
from rlanything.core.types import (
    Judgement,
    Request,
    ScoredReplies,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)
from rlanything.engines import checkpoint
from rlanything.engines.chat import Chat
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.batches import make_batches
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import JointModule
from rlanything.learn.supervised.fit import fit
from rlanything.loop.chat_model import ChatModel
from rlanything.rehearsal.architectures import architecture
from rlanything.stages.bootstrap.warmstart import reply_rows

RATE = OptimizerConfig(lr=1e-3)
CONFIG = LearnConfig(policy=RATE, reward=RATE, updates=2, importance="recomputed", kl_reference="base")
SHOWN = [(NAMES[0],), (NAMES[0], NAMES[1]), (NAMES[1], NAMES[2], NAMES[3])]


class Player:
    """A model that reads pictures, with its engine."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.model, self.tokenizer = checkpoint.load(folder(kind))
        self.eyes = sight.load(str(folder(kind)), None, self.model, PICTURES.__getitem__)
        self.engine = TransformersEngine(self.model, self.tokenizer, eyes=self.eyes)

    def sample(self, names, count, seed):
        request = Request(prompt(self.kind, *names), seed, 5, images=names)
        asked = [Request(request.prompt_ids, seed + k, 5, images=names) for k in range(count)]
        return request.prompt_ids, self.engine.generate(asked)


def experience(policy: Player, reward: Player):
    steps = []
    for k, names in enumerate(SHOWN):
        ids, (found,) = policy.sample(names, 1, 100 + k)
        steps.append(Step(ids, found.ids, found.logprobs, (), "", True, "", prompt_images=names))
    trajectory = Trajectory("task", 0, 0, 0, "", tuple(steps), 1, Status.OK)
    judged = []
    for k, names in enumerate(SHOWN[1:]):
        ids, found = reward.sample(names, 2, 200 + 10 * k)
        judged.append(Judgement(ids, tuple(Vote(1, "", c.ids, c.logprobs) for c in found), names))
    votes = ScoredReplies(tuple(judged), ((1.0, -1.0),) * 2, (1.0, 1.0))
    return [ScoredTrajectory(trajectory, (1.0, -1.0, 0.5))] * 2, [votes] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_an_iteration_trains_both_models_on_what_they_saw(kind):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    policy, reward = Player(kind), Player(kind)
    first = copy.deepcopy(policy.model), copy.deepcopy(reward.model)
    module = JointModule(
        CONFIG, policy.model, reward.model, *first, {"policy": policy.eyes, "reward": reward.eyes}
    )
    metrics: dict[str, float] = {}

    def collect():
        batches, found = make_batches(module, *experience(policy, reward), 0, 0)
        metrics.update(found)
        return batches

    data = ExperienceDataModule(collect, CONFIG.updates, dict, lambda _: None)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    Trainer(max_epochs=1, accelerator="cpu", enable_checkpointing=False, **quiet).fit(module, data)
    for name, player, before in zip(("policy", "reward"), (policy, reward), first, strict=True):
        assert metrics[f"{name}/mismatch_max"] < 2e-5
        assert metrics[f"{name}/rows"] == (6 if name == "policy" else 4)
        assert all(torch.isfinite(torch.tensor(module.totals[f"{name}/loss"])))
        now, then = (m.base_model.visual.state_dict() for m in (player.model, before))
        assert any(not torch.equal(now[key], then[key]) for key in now)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stand_in_that_can_see_is_taught_with_text(kind):
    """As `rlanything rehearse --policy qwen2_5_vl` does: the lessons of stand-ins have no pictures."""
    made = architecture(kind)
    tokenizer = made.tokenizer(TEXTS)
    model = made.fresh(tokenizer, 5)
    chat = ChatModel(TransformersEngine(model, tokenizer), Chat(tokenizer), 512)
    rows = [reply_rows(chat, "Which action is next?", "click 3", 0.0)] * 4
    losses: list[float] = []
    settings = SupervisedConfig(episodes=4, steps=12, batch=4)
    fit(model, rows, settings, 0, lambda _step, _of, loss: losses.append(loss))
    assert losses[-1] < losses[0] / 2
