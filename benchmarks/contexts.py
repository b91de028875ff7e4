"""Tokens that policy and reward model read, and train on, with each `model.context`: `python -m benchmarks.contexts`.

Random tiny models play generated games with the prompts of `experiments/prompts/instruct`, side by side as in an
iteration, and judge every step. Only the numbers of tokens count, so no checkpoint is needed. A response of the policy
is a command without reasoning; with reasoning a chat grows faster, and a history does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedTokenizerBase

from envs.alfworld.family import AlfworldFamily
from rlanything.config import Architecture, JudgeConfig, RolloutConfig
from rlanything.core.types import (
    Completion,
    Judgement,
    Lesson,
    Request,
    ScoredReplies,
    ScoredTrajectory,
    Trajectory,
)
from rlanything.engines.chat import Chat
from rlanything.engines.native import NativeEngine
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import NAMES, Prompts
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.rewards.step_votes.judge import Judge
from rlanything.stages.bootstrap.tokenizer import train_tokenizer

PROMPTS = Path(__file__).parents[1] / "experiments" / "prompts" / "instruct"
SIZES = Architecture(hidden=16, intermediate=32, layers=1, heads=2, kv_heads=1, vocab=1024, positions=1 << 15)
QKV = (SIZES.hidden // SIZES.heads * (SIZES.heads + 2 * SIZES.kv_heads), SIZES.hidden)
"""Shape (out, in) of the weight that projects to queries, keys and values. No other weight of the model has it."""
ROW_TOKENS = 16_384
"""`learn.micro_batch_tokens` of the paper's scale: larger trees are cut."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes of a measurement."""

    tasks: int = 4
    rollouts: int = 4
    steps: int = 15
    votes: int = 3
    reply: int = 8
    """Most tokens of a vote."""


@dataclass(slots=True)
class Tokens:
    """What one model read.

    prompts: tokens of all prompts, which an engine reads that shares nothing. read: tokens that the native engine
    passed through the model, those that it sampled included. rows, trained: rows of training, and their tokens.
    """

    prompts: int = 0
    read: int = 0
    rows: int = 0
    trained: int = 0

    def learn(self, rows: list[Row]) -> None:
        """Count rows of training."""
        self.rows += len(rows)
        self.trained += sum(len(row.ids) for row in rows)


class CountingEngine(NativeEngine):
    """The native engine, which counts what it is asked to read and what it reads."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, seed: int) -> None:
        end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
        super().__init__(fresh_model(SIZES, len(tokenizer), end, pad, seed), tokenizer)
        self.tokens = Tokens()

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `NativeEngine`."""
        self.tokens.prompts += sum(len(request.prompt_ids) for request in requests)
        with TokensRead() as read:
            completions = super().generate(requests)
        self.tokens.read += read.count
        return completions


class TokensRead(TorchFunctionMode):
    """While it is active, torch shows it every call. It counts the tokens that pass through the model of `SIZES`.

    The model has one layer, so each token passes once through the projection to queries, keys and values. The sizes
    of its weight tell this projection from the others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Do what was called, and count the rows of the projection's input NM."""
        if func is functional.linear and tuple(args[1].shape) == QKV:
            self.count += len(args[0])
        return func(*args, **(kwargs or {}))


def measure(context: str, work: Workload) -> dict[str, Tokens]:
    """Tokens of policy and reward model in one context."""
    family, prompts = AlfworldFamily(), Prompts.load(PROMPTS, "verbatim", "boxed", context)
    tokenizer = train_tokenizer(_corpus(family), SIZES.vocab)
    policy, reward = CountingEngine(tokenizer, 0), CountingEngine(tokenizer, 1)
    acting, judging = (ChatModel(engine, Chat(tokenizer), SIZES.positions) for engine in (policy, reward))
    worker = RolloutWorker(family, acting, prompts, RolloutConfig(decoding="constrained", max_tokens=32))
    work_of = [
        Assignment(slot, task, work.rollouts) for slot, task in enumerate(family.make("train", work.tasks, 0))
    ]
    trajectories = worker.roll_out(work_of, Sampling(0, "benchmark", 0, 1.0, work.steps))
    judge = Judge(judging, prompts, JudgeConfig(m=work.votes, max_tokens=work.reply))
    for trajectory, judgements in zip(trajectories, judge.judge(trajectories, 0, 0), strict=True):
        policy.tokens.learn(policy_rows(_lesson(trajectory), "step"))
        reward.tokens.learn(reward_rows(_lessons(judgements), "step", ROW_TOKENS))
    return {"policy": policy.tokens, "reward": reward.tokens}


def _lesson(trajectory: Trajectory) -> ScoredTrajectory:
    return ScoredTrajectory(trajectory, (1.0,) * len(trajectory.steps))


def _lessons(judgements: Sequence[Judgement]) -> ScoredReplies:
    """Every vote trains."""
    return ScoredReplies.of([(asked, Lesson((1.0,) * len(asked.votes), 1.0)) for asked in judgements])


def _corpus(family: AlfworldFamily) -> list[str]:
    """What the tokenizer is learned from: the templates, and what is seen and done in games."""
    demos = [family.demonstrate(task, 0, 0.5) for task in family.make("train", 40, 1)]
    shown = [text for demo in demos for seen, action in demo for text in (seen.text, action, *seen.actions)]
    return shown + [path.read_text() for path in PROMPTS.glob("*.txt")] * 20


def main() -> None:
    """Print a line for each context and model."""
    print(f"{'context':<9}{'model':<8}{'prompts':>11}{'read':>11}{'rows':>7}{'trained on':>12}")
    for context in NAMES:
        for model, found in measure(context, Workload()).items():
            print(
                f"{context:<9}{model:<8}{found.prompts:>11,}{found.read:>11,}{found.rows:>7,}{found.trained:>12,}"
            )


if __name__ == "__main__":
    main()
