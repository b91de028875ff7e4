"""The family of OSWorld's tasks. Implements the protocols of `rlanything.core.protocols`, without a teacher."""

from __future__ import annotations

from collections.abc import Sequence

from envs.desktop import rewording
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import Settings, World
from envs.desktop.osworld.tasks import ENV, EXTENSION, Sources, task_file, templates
from envs.desktop.play.environment import DesktopEnvironment
from envs.desktop.play.together import Together
from envs.settings import names, one_of, seconds, text, whole
from envs.splits import SPLITS
from rlanything.core.errors import MachineError
from rlanything.core.protocols import Environment
from rlanything.core.types import InvalidProposal, Task

OBSERVES = ("screenshot", "tree", "both")


class OSWorldFamily:
    """Tasks of OSWorld in its own virtual machines. The arguments are what experiments/env/osworld.yaml declares.

    data: the folder `evaluation_examples`; tasks, templates: folders in it for panels and for training; index: the file
        that says which tasks are used. ood_apps, reward_apps: applications of out_of_domain and of reward_panel.
    command: what starts a world, and speaks the protocol (docs/gui.md). worlds: how many may run in this process.
    observe: screenshot, tree or both. screen: its width and height in pixels.
    start, timeout: seconds until a world says hello, and for each of its other answers.
    evaluators: digest of the evaluators that the world must have; None: any.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        data: str,
        command: Sequence[str],
        tasks: str = "examples",
        templates: str = "new_examples",
        index: str = "test_nogdrive.json",
        ood_apps: Sequence[str] = ("multi_apps", "chrome"),
        reward_apps: Sequence[str] = ("multi_apps",),
        worlds: int = 96,
        observe: str = "screenshot",
        screen: Sequence[int] = (1920, 1080),
        start: float = 900.0,
        timeout: float = 300.0,
        evaluators: str | None = None,
    ) -> None:
        places = text("data", data), text("tasks", tasks), text("templates", templates), text("index", index)
        apps = names("ood_apps", ood_apps), names("reward_apps", reward_apps)
        self._sources = Sources(*places, *apps, evaluators=evaluators or "")
        self.only_pictures = one_of("observe", observe, OBSERVES) == "screenshot"
        self.pictures = observe != "tree"
        self._screen = tuple(whole("screen", side, 1, 8192) for side in screen)
        if len(self._screen) != 2:
            raise ValueError(f"screen: {list(screen)!r} is not [width, height] in pixels")
        settings = Settings(
            names("command", command), seconds("start", start), seconds("timeout", timeout),
            pictures=self.pictures, trees=observe != "screenshot",
        )  # fmt: skip
        self.most_open = whole("worlds", worlds, 1, 4096)
        self._pool = Pool(settings, self.most_open, self._check)
        self._together = Together(lambda: DesktopEnvironment(self._pool, task_file), self.most_open)

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return SPLITS

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct tasks of a split. Raises `TaskFileError`, and `ValueError` where it has fewer."""
        return self._sources.draw(one_of("split", split, SPLITS), count, seed)

    def environment(self) -> Environment:
        """An environment. Raises `MachineError` where the command is missing, or starts another world than is meant."""
        self._pool.ready()
        return self._together.environment()

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Set tasks up at the same time, before their episodes are reset one by one."""
        self._pool.ready()
        self._together.prepare(work)

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Make the steps of a turn at the same time, before the episodes take them one by one."""
        self._together.advance(work)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        payload = task.payload
        if payload.keys() != {"app", "file", "evaluators", "key", "content"} or not isinstance(
            payload["content"], dict
        ):
            return "a task has an application, a file, evaluators, a key and the content of its file"
        if payload["evaluators"] != self._sources.evaluators:
            return "the task is judged by other evaluators than env.evaluators"
        known = templates(task)
        if payload["key"] not in known and (payload["key"] or EXTENSION[0] in payload["content"]):
            return "its evaluator is none of its file"
        canonical = known.get(payload["key"], task.instruction)
        if task.instruction in (canonical, payload["content"].get("instruction")):
            return ""
        return next(rewording.objections(task.instruction, canonical), "")

    def describe(self, task: Task) -> str:
        """The templates that an adapter may choose from, and last the task in the form of a reply."""
        lines = [f"application: {task.payload['app']}", "templates, by the name of their evaluator:"]
        lines += [rewording.reply(key, said) for key, said in templates(task).items()]
        return "\n".join([*lines, "the task now:", rewording.reply(task.payload["key"], task.instruction)])

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for. Raises `InvalidProposal`."""
        key, instruction = rewording.read(reply, templates(parent))
        if (key, instruction) == (parent.payload["key"], parent.instruction):
            raise InvalidProposal("the reply changes nothing")
        return Task(ENV, instruction, {**parent.payload, "key": key}, parent.metadata)

    def _check(self, world: World) -> None:
        """Raise `MachineError` for a world that is another one than the configuration says."""
        if world.hello.screen != self._screen:
            raise MachineError(
                f"the world's screen has {world.hello.screen} pixels, env.screen says {self._screen}"
            )
        found, wanted = world.hello.facts.get("evaluators", ""), self._sources.evaluators
        if wanted and found != wanted:
            raise MachineError(
                f"the world's evaluators are {found or 'unnamed'}, env.evaluators says {wanted}"
            )
