"""A small coding world for the loop: programs are words whose verdicts are known, and so are tests.

A task "solve LEVEL" has two tests of its own. Programs: `right*` pass all, `half*` the first, everything else none.
Written tests: `strict` lets only right programs pass, `weak` lets all, `lie` only wrong ones;
any other reply holds no test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

from scripted import chat_model, prompts

from rlanything.buffer import TaskBuffer
from rlanything.config import (
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    RolloutConfig,
    SignalsConfig,
    TrainConfig,
)
from rlanything.core.types import InvalidProposal, Observation, Request, StepResult, Task
from rlanything.core.unittests import Examination, Tables
from rlanything.loop.adapt import Adapter
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import Loop
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.unit_tests.signals import UnitTestModel
from rlanything.rewards.unit_tests.writer import UnitTestWriter

FULL = ArmConfig(step_votes=True, train_reward=True, adapt=True)
TESTS = ("strict", "weak", "lie")


def problem(level: int, **payload: object) -> Task:
    return Task("coding", f"solve {level}", {"level": level, **payload})


def dataset(program: str) -> tuple[bool, bool]:
    return program.startswith(("right", "half")), program.startswith("right")


def passes(program: str, test: str) -> bool:
    right = program.startswith("right")
    return {"strict": right, "weak": True, "lie": not right}.get(test, False)


class Solve:
    """One program, one answer."""

    def __init__(self, family: Problems) -> None:
        self.family = family

    def reset(self, task: Task, seed: int) -> Observation:
        self.task = task
        return Observation(task.instruction)

    def step(self, action: str) -> StepResult:
        if action == "crash":
            raise RuntimeError("the sandbox failed")
        self.family.order.append(("step", action))
        return StepResult(Observation("tried"), True, all(dataset(action)))

    def close(self) -> None: ...


class Problems:
    """The family. `order`: what it was asked, in order."""

    name = "coding"

    def __init__(self) -> None:
        self.order: list[tuple[str, str]] = []
        self.examined: list[Examination] = []

    def environment(self) -> Solve:
        return Solve(self)

    def validate(self, task: Task) -> str:
        return ""

    def describe(self, task: Task) -> str:
        return task.instruction

    def parse(self, parent: Task, reply: str) -> Task:
        if not reply.isdecimal():
            raise InvalidProposal("no level")
        return problem(int(reply), **{k: v for k, v in parent.payload.items() if k != "level"})

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        self.order += [("prefetch", answer) for _, answer in work]

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        self.examined += work
        return [self._tables(programs, replies) for _, programs, replies in work]

    def criticism(self, task: Task, tables: Tables) -> str:
        return f"{len(tables.dataset)} programs of {task.instruction}, tests {' '.join(tables.tests)}"

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        return [{k: f"test {k}" for k, ok in enumerate(row) if not ok} for row in tables.dataset]

    def program(self, task: Task, answer: str) -> str:
        return answer.partition("#")[0].strip()  # what follows is said about it

    def proven(self, task: Task) -> bool:
        return bool(task.payload.get("proven"))

    def _tables(self, programs: Sequence[str], replies: Sequence[str]) -> Tables:
        tests = tuple(r if r in TESTS else "" for r in replies)
        generated = tuple(tuple(passes(p, t) for t in tests) for p in programs)
        return Tables(tests, tuple(dataset(p) for p in programs), generated)


class CodingWorld:
    """A loop over scripted models. `programs`: level -> the programs of its four rollouts."""

    def __init__(
        self,
        programs: dict[int, Sequence[str]],
        *,
        replies: Sequence[str] = TESTS,
        adapter: Callable[[Request], str] = lambda _: "nonsense",
        arm: ArmConfig = FULL,
        reward_context: int = 10_000,
        critic: str = "extractive",
        judge: dict[str, object] | None = None,
        **signals: object,
    ) -> None:
        self.family = Problems()
        self.adapter = chat_model(adapter)
        self.policy = chat_model(lambda r: self._program(programs, r))
        supply = iter(())

        def write(request: Request) -> str:
            nonlocal supply
            reply = next(supply, None)
            if reply is None:
                supply = iter(replies)
                reply = next(supply)
            return reply

        self.reward = chat_model(write, reward_context)
        config = SimpleNamespace(
            rollout=RolloutConfig(tasks=len(programs), rollouts=4, max_steps=1, max_tokens=8),
            judge=JudgeConfig(**{"writes": "tests", "m": len(replies), "max_tokens": 8, **(judge or {})}),
            signals=SignalsConfig(**signals),
            adaptation=AdaptationConfig(critic=critic, max_tokens=16),
            train=TrainConfig(iterations=9),
        )
        spoken = prompts()
        writer = UnitTestWriter(self.reward, spoken, config.judge, self.family)
        self.loop = Loop(
            config,
            arm,
            7,
            RolloutWorker(self.family, self.policy, spoken, config.rollout),
            UnitTestModel(config, arm, 7, writer),
            Adapter(self.family, self.adapter, spoken, config.adaptation, 60.0),
        )

    @staticmethod
    def start(*tasks: Task) -> LoopState:
        return LoopState(0, TaskBuffer.start(tasks))

    @staticmethod
    def _program(programs: dict[int, Sequence[str]], request: Request) -> str:
        text = "".join(map(chr, request.prompt_ids))
        level = int(text.partition("solve ")[2].partition("|")[0])
        return programs[level][int(request.session.split("/")[2])]
