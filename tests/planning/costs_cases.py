"""Estimates of the paper's models and of the preset for one GPU, for the tests of what a plan says of them."""

from __future__ import annotations

from pathlib import Path

from rlanything.config import Config, parse
from rlanything.planning import compose
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import Estimate, estimate, model_sizes

ROOT = Path(__file__).parents[2]
SMALL = [
    "model.policy.path=Qwen/Qwen2.5-0.5B-Instruct",
    "model.reward.path=Qwen/Qwen2.5-1.5B-Instruct",
    "model.adapter.path=Qwen/Qwen2.5-1.5B-Instruct",
    "learn.micro_batch_tokens=4096",
    "engine.max_batch=32",
]
WHOLE = ["learn.policy.lora=null", "learn.reward.lora=null"]
"""All weights train in the preset for one GPU."""
PAPER = ("scale=paper", "env=osworld")
"""The paper's GUI setting."""
ERROR = 0.09
"""How far a predicted peak may be from the measured one, as a share of it."""
EXPECTED = Assumptions(episode_share=0.4, reply_share=0.1)


def configuration(*overrides: str) -> Config:
    return parse(compose.compose(["scale=paper", *overrides], ROOT))


def planned(
    *overrides: str,
    count: int = 1,
    given: Assumptions = EXPECTED,
    arm: str = "full",
    device: str = "H100",
) -> Estimate:
    config = configuration(*overrides)
    return estimate(config, arm, model_sizes(config, ROOT), devices.device(device), count, given)


def one_gpu(
    *overrides: str, share: float = 1.0, arm: str = "full", device: str = "H100", count: int = 1
) -> Estimate:
    config = parse(compose.compose(["scale=single-gpu", *overrides], ROOT))
    given = Assumptions(reply_share=share)
    return estimate(config, arm, model_sizes(config, ROOT), devices.device(device), count, given)


def osworld(*more: str) -> Config:
    return parse(compose.compose([*PAPER, *more], ROOT))
