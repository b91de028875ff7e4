"""Workers that die as a test says, and a small rollout whose episodes they run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripted import ACTIONS, Family, rollout_worker, task

from rlanything.config import ExecutorConfig
from rlanything.core.ids import canonical_json
from rlanything.core.records.rollouts import trajectory_to_json
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.loop.share import hosted
from rlanything.runs.executors.crew import Crew
from rlanything.runs.executors.dispatcher import Dispatcher
from rlanything.runs.executors.worker import Answer, Order, Worker

CODE = "the same code"
SAMPLING = Sampling(run_seed=3, phase="act", iteration=0, temperature=0.8, max_steps=6)
LAST_WORDS = "the last words of a worker"


class FatedWorker(Worker):
    """Takes a file from `folder` with every order and does what its name says, until there is none."""

    def __init__(self, folder: Path, code: str, node: str, pause_s: float) -> None:
        super().__init__(Family, code, node)
        self.folder, self.pause_s = folder, pause_s

    def answer(self, order: Order) -> Answer:
        fate = self._fate()
        if fate == "before":
            self._die()
        if fate == "hang":
            time.sleep(600)
        time.sleep(self.pause_s)
        answer = super().answer(order)
        if fate == "after":  # it has succeeded, and does not report it
            self._die()
        return answer

    def _fate(self) -> str:
        for path in sorted(self.folder.glob("*.*")):
            try:
                path.unlink()
            except FileNotFoundError:
                continue  # another worker has taken it
            return path.suffix[1:]
        return ""

    def _die(self) -> None:
        os.write(2, f"{LAST_WORDS}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class FatedMaker:
    """See `Maker`."""

    folder: Path
    code: str = CODE
    pause_s: float = 0.0
    unwilling: str = ""

    def __call__(self, node: str = "") -> Worker:
        if self.unwilling == "raise":
            raise RuntimeError("the environment cannot run here")
        if self.unwilling == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return FatedWorker(self.folder, self.code, node, self.pause_s)


def fates(folder: Path, *names: str) -> None:
    """What becomes of the workers that take the next orders: before | after | hang | fine."""
    for number, name in enumerate(names):
        (folder / f"{number:03}.{name}").touch()


def settings(**changed: object) -> ExecutorConfig:
    return ExecutorConfig(**{"form": "processes", "workers": 2, "attempts": 6, **changed})


@contextmanager
def crew_of(pool, config: ExecutorConfig, said: list[str] | None = None):
    """A crew that has started."""
    crew = Crew(pool, config, CODE, (said if said is not None else []).append)
    try:
        crew.start()
        yield crew
    finally:
        crew.close()


def by_seed(request):
    return ACTIONS[request.seed % 2]


def rolled_out(levels=range(6)) -> bytes:
    """The records of two tries of each level; the environments of some levels crash."""
    faults = {2: "raise in step", 3: "raise in reset", 4: "raise in close"}
    work = [
        Assignment(k, task(level, steps=4, **({"fault": faults[level]} if level in faults else {})), 2)
        for k, level in enumerate(levels)
    ]
    found = rollout_worker(by_seed).roll_out(work, SAMPLING)
    return b"".join(canonical_json(trajectory_to_json(trajectory)).encode() for trajectory in found)


def placed(crew: Crew, config: ExecutorConfig, run: Callable[[], bytes] = rolled_out) -> bytes:
    """The same with the workers of a crew."""
    with hosted(Dispatcher(crew, config)):
        return run()
