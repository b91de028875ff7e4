"""A small world for the loop: environments, engines and a chat format that do what a test's script says.

An episode asks for "win" or "lose" at every step; it succeeds when every action was "win". Token ids are code points.
A task with `shows` shows a picture with every observation.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from string import Template
from types import SimpleNamespace

from image_cases import png

from rlanything.buffer import TaskBuffer
from rlanything.config import (
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    RolloutConfig,
    SignalsConfig,
    TrainConfig,
)
from rlanything.core.images import Image
from rlanything.core.types import Completion, InvalidProposal, Observation, Request, StepResult, Task
from rlanything.loop.adapt import Adapter
from rlanything.loop.batch import LoopState
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.iteration import Loop
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.signals import StepVoteModel

END = 0
ACTIONS = ("win", "lose")
FULL = ArmConfig(step_votes=True, train_reward=True, adapt=True)


def task(level: int, **payload: object) -> Task:
    return Task("levels", f"reach level {level}", {"level": level, "steps": 2, **payload})


class Chat:
    """One id per character; 0 ends a turn."""

    def start(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        return _ids("".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>")

    def extend(
        self, prompt: Sequence[int], response: Sequence[int], message: dict[str, str]
    ) -> tuple[int, ...]:
        return (*prompt, *response, *_ids(f"<{message['role']}>{message['content']}<assistant>"))

    def decode(self, ids: Sequence[int]) -> str:
        return read(ids)

    def encode_choice(self, text: str) -> tuple[int, ...]:
        return (*_ids(text), END)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def read(ids: Sequence[int]) -> str:
    """The text of ids, without the ends of turns."""
    return "".join(map(chr, (i for i in ids if i != END)))


class Engine:
    """Replies with `script(request)`; remembers what it was asked, batch by batch."""

    def __init__(self, script: Callable[[Request], str]) -> None:
        self.script = script
        self.batches: list[list[Request]] = []
        self.released: list[str] = []
        self.version = 0

    @property
    def asked(self) -> list[Request]:
        return [request for batch in self.batches for request in batch]

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.batches.append(list(requests))
        return [self._complete(self.script(request)) for request in requests]

    def _complete(self, text: str) -> Completion:
        ids = (*_ids(text), END)
        logprobs = tuple(-0.1 * (k + 1) for k in range(len(ids)))
        return Completion(ids, logprobs, ((),) * len(ids), True, self.version)

    def release(self, sessions: Sequence[str]) -> None:
        self.released += sessions

    def sync(self, version: int) -> None:
        self.version = version

    def close(self) -> None: ...


class Levels:
    """The environment. `payload["fault"]` names what goes wrong, and where."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.seed, self.done, self.all_won = task, seed, 0, True
        self._fault("reset")
        return self._seen(f"{task.instruction} [{seed % 1000}]")

    def step(self, action: str) -> StepResult:
        self.done += 1
        self._fault("step")
        self.family.acted.append(action)
        self.all_won &= action == "win"
        over = self.done == self.task.payload["steps"]
        return StepResult(self._seen(f"{action} was done"), over, over and self.all_won)

    def close(self) -> None:
        self.family.closed += 1
        self._fault("close")

    def _seen(self, text: str) -> Observation:
        shown = (Image(png(shade=self.done)),) if self.task.payload.get("shows") else ()
        return Observation(text, tuple(self.task.payload.get("actions", ACTIONS)), shown)

    def _fault(self, where: str) -> None:
        fault = self.task.payload.get("fault", "")
        if fault == f"raise in {where}":
            raise RuntimeError(f"broken {where}")
        if fault == f"hang in {where}":
            time.sleep(30)


class Family:
    """Tasks with a level; a reply `level N` names another one, from 0 to 99."""

    name = "levels"

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.closed = 0

    def splits(self) -> tuple[str, ...]:
        return ("train",)

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        return [task(k) for k in range(count)]

    def environment(self) -> Levels:
        return Levels(self)

    def validate(self, task: Task) -> str:
        return "" if task.payload["level"] < 100 else "there is no such level"

    def describe(self, task: Task) -> str:
        return f"now at level {task.payload['level']}"

    def parse(self, parent: Task, reply: str) -> Task:
        found = re.fullmatch(r"level (\d+)", reply)
        if not found:
            raise InvalidProposal("the reply names no level")
        return task(int(found[1]), **{k: v for k, v in parent.payload.items() if k != "level"})


def prompts(
    action_format: str = "verbatim", verdict_format: str = "word", context: str = "chat", **changed: str
) -> Prompts:
    texts = {
        "policy_system": "play",
        "policy_turn": "$observation|$actions",
        "judge_system": "judge",
        "judge": "$observation?$action?",
        "policy_history": "play\n${history}$observation|$actions",
        "policy_history_step": "$observation > $action",
        "judge_history": "judge [$prompt] [$response] $action: $observation?",
        "critic": "$task: $steps",
        "critic_step": "$task: $step because $reasons",
        "adapter": "$facts, $direction, $accuracy, $critic",
        **changed,
    }
    templates = {name: Template(text) for name, text in texts.items()}
    return Prompts(templates, action_format, verdict_format, context)


def chat_model(script: Callable[[Request], str], max_context: int = 10_000) -> ChatModel:
    return ChatModel(Engine(script), Chat(), max_context)


def rollout_worker(
    script: Callable[[Request], str], *, max_context: int = 10_000, spoken=None, images=None, **changed
) -> RolloutWorker:
    config = RolloutConfig(**{"max_tokens": 8, "timeout_s": 5.0, **changed})
    return RolloutWorker(Family(), chat_model(script, max_context), spoken or prompts(), config, images)


def winning(wins: dict[int, int]) -> Callable[[Request], str]:
    """The policy that wins the first `wins[level]` rollouts of every task, and loses the others at once."""

    def script(request: Request) -> str:
        level = int(re.findall(r"reach level (\d+)", read(request.prompt_ids))[0])
        return "win" if int(request.session.split("/")[2]) < wins[level] else "lose"

    return script


def voting(verdicts: Sequence[str]) -> Callable[[Request], str]:
    """The reward model whose j-th vote on every step is `verdicts[j]`."""
    asked: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def script(request: Request) -> str:
        key = (request.group, request.prompt_ids)
        asked[key] += 1
        return verdicts[(asked[key] - 1) % len(verdicts)]

    return script


class World:
    """A loop over scripted models. `wins`: level -> rollouts won, of 4."""

    def __init__(
        self,
        wins: dict[int, int],
        *,
        votes: Sequence[str] = ("good", "good", "bad"),
        adapter: Callable[[Request], str] = lambda _: "nonsense",
        arm: ArmConfig = FULL,
        rollout: dict[str, object] | None = None,
        judge: dict[str, object] | None = None,
        adaptation: dict[str, object] | None = None,
        staleness: int = 0,
        **signals: object,
    ) -> None:
        self.family = Family()
        self.policy, self.reward = chat_model(winning(wins)), chat_model(voting(votes))
        self.adapter = chat_model(adapter)
        config = SimpleNamespace(
            rollout=RolloutConfig(
                **{"tasks": 2, "rollouts": 4, "max_steps": 5, "max_tokens": 8, **(rollout or {})}
            ),
            judge=JudgeConfig(**{"m": 3, "max_tokens": 8, **(judge or {})}),
            signals=SignalsConfig(**signals),
            adaptation=AdaptationConfig(**{"critic": "extractive", "max_tokens": 16, **(adaptation or {})}),
            train=TrainConfig(iterations=9, staleness=staleness),
        )
        spoken = prompts()
        self.loop = Loop(
            config,
            arm,
            7,
            RolloutWorker(self.family, self.policy, spoken, config.rollout),
            StepVoteModel(config, arm, 7, Judge(self.reward, spoken, config.judge)),
            Adapter(self.family, self.adapter, spoken, config.adaptation, 60.0),
        )

    def start(self, *tasks: Task) -> LoopState:
        return LoopState(0, TaskBuffer.start(tasks))
