"""The work, the workers that do it, and the time that it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from envs.coding.family import CodingFamily
from rlanything.config import ExecutorConfig
from rlanything.core.protocols import TaskFamily
from rlanything.core.types import Observation, StepResult, Task
from rlanything.core.unittests import Examination
from rlanything.loop.episodes import Host, LocalHost, Move
from rlanything.runs.executors.cluster import connected
from rlanything.runs.executors.crew import Crew
from rlanything.runs.executors.dispatcher import Dispatcher
from rlanything.runs.executors.pool import Pool
from rlanything.runs.executors.processes import ProcessPool
from rlanything.runs.executors.worker import Worker

WAIT_S = 0.02
EPISODES, TURNS = 24, 4
PROGRAMS = 6
"""Programs of a task."""


class Slow:
    """An environment that answers after a while."""

    def reset(self, task: Task, seed: int) -> Observation:
        """The first observation."""
        return Observation(str(seed))

    def step(self, action: str) -> StepResult:
        """Wait, then answer."""
        time.sleep(WAIT_S)
        return StepResult(Observation(action), False, False)

    def close(self) -> None:
        """Nothing to close."""


class Measured(CodingFamily):
    """The coding family, whose episodes wait instead of judging a program."""

    def environment(self) -> Any:
        """See `Slow`."""
        return Slow()

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """There is nothing to judge."""


@dataclass(frozen=True)
class Maker:
    """Makes the workers. backend: of the sandbox."""

    backend: str

    def family(self) -> TaskFamily:
        """The family, with one box."""
        return Measured(backend=self.backend, trusted=True, workers=1)

    def __call__(self, node: str = "") -> Worker:
        """A worker."""
        return Worker(self.family, "measured", node)


def programs(host: Host, tasks: Sequence[Task], mark: str) -> None:
    """Run the solutions of the tasks, each in versions that no sandbox has seen. Raises `ValueError` if one fails."""
    family = CodingFamily()
    work: list[Examination] = [
        (task, [f"{family.demonstrate(task, 0, 0.0)[0][1]}\n# {mark} {k}\n" for k in range(PROGRAMS)], [])
        for task in tasks
    ]
    for tables in host.examine(work):
        if not all(passed for row in tables.dataset for passed in row):
            raise ValueError("a right program failed: the sandbox does not work here")


def waiting(host: Host, tasks: Sequence[Task], mark: str) -> None:
    """Play episodes, all of them one turn after the other."""
    answers = [Observation("")] * EPISODES
    for turn in range(TURNS + 1):
        actions = tuple(f"{mark} {k}" for k in range(turn))
        moves = [Move(f"{mark} {k}", tasks[0], k, actions, answers[k].text, 60.0) for k in range(EPISODES)]
        answers = [played.observation for played in host.play(moves)]
    host.clear()


WORK: dict[str, Callable[[Host, Sequence[Task], str], None]] = {"programs": programs, "waiting": waiting}


@contextmanager
def host(form: str, workers: int, maker: Maker) -> Iterator[Host]:
    """A host of the form with that many workers, all of which have started."""
    if form == "inline":
        yield LocalHost(maker.family())
        return
    settings = ExecutorConfig(form="ray" if form == "ray" else "processes", workers=workers)
    with ExitStack() as stack:
        pool: Pool
        if form == "ray":
            from rlanything.runs.executors.actors import ActorPool

            pool = ActorPool(stack.enter_context(connected(settings)), maker, 0.0)
        else:
            processes = ProcessPool(maker)
            stack.callback(processes.close)
            pool = processes
        crew = Crew(pool, settings, "measured", print)
        stack.callback(crew.close)
        crew.start()
        while not all(member.idle for member in crew.members):
            list(crew.finished(1.0))
        yield Dispatcher(crew, settings)


def measure(tasks: int, rounds: int, backend: str) -> dict[str, dict[str, float]]:
    """Seconds (median) and times faster than one worker, by work, form and number of workers."""
    forms = ["processes", *(["ray"] if find_spec("ray") else [])]
    maker, chosen = Maker(backend), CodingFamily().make("train", tasks, 0)
    with ExitStack() as stack:
        # The connection to Ray is made once for all its hosts.
        if "ray" in forms:
            stack.enter_context(connected(ExecutorConfig(form="ray", workers=4)))
        settings = [("inline", 1), *((form, count) for form in forms for count in (1, 2))]
        hosts = {key: stack.enter_context(host(*key, maker)) for key in settings}
        spent: dict[tuple[str, str, int], list[float]] = {}
        for number in range(-1, rounds):  # the first round only warms up
            for what, do in WORK.items():
                for (form, count), asked in hosts.items():
                    start = time.perf_counter()
                    do(asked, chosen, f"{what} {number}")
                    if number >= 0:
                        spent.setdefault((what, form, count), []).append(time.perf_counter() - start)
    return {
        f"{what} {form} {count}": {
            "seconds": round(statistics.median(times), 3),
            "times": round(
                statistics.median(a / b for a, b in zip(spent[what, form, 1], times, strict=True)), 2
            ),
        }
        for (what, form, count), times in spent.items()
    }
