"""The web family: tasks, episodes and the teacher. Implements the protocols of `rlanything.core.protocols`."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from envs.computer.observes import observes
from envs.computer.observes import screen as sides
from envs.settings import chances, one_of, seconds, shares, text, whole
from envs.splits import FAMILIAR, SPLITS
from envs.web.browser import launch
from envs.web.browser.pool import Settings
from envs.web.kinds.table import KINDS, known
from envs.web.play.environment import WebEnvironment
from envs.web.play.episode import Episode, Setting
from envs.web.play.text import STYLES, unseen
from envs.web.play.together import Together
from envs.web.tasks import hints
from envs.web.tasks.edit import Edit
from envs.web.tasks.sampling import ENV, draw_tasks, is_clear
from envs.web.tasks.stage import Stage
from envs.web.teacher import demonstration
from envs.web.teacher.expert import HABITS, demonstrate
from envs.web.teacher.oracle import Label, labels
from rlanything.core.errors import MachineError
from rlanything.core.protocols import Environment
from rlanything.core.types import Direction, Observation, Task

_SEED = re.compile(r"[\w-]{1,64}", re.ASCII)
Kinds = Sequence[str] | Mapping[str, float]
TASK = 160, 210
"""Width and height of the part of a page that a task is in, pixels."""
LARGEST_SIDE = 4096
"""Pixels: a picture of this width and height can still be kept."""


class WebFamily:
    """Tasks on web pages. The arguments are what experiments/env/web.yaml declares.

    kinds: names, or names with shares, of the kinds in train and in_domain. ood_kinds: the same for out_of_domain and
        reward_panel; no kind is in both, and no rewrite leads to one of these.
    text: how a page is written, `plain` for language models or `compact` for the embedded ones.
    observe: what an agent is shown, `tree` (the page as text), `screenshot` or `both`. With pictures no admissible
        commands are listed, because places of a picture are actions too.
    screen: width and height of a page, and of its picture, in pixels.
    timeout: seconds that a page may take to load or to answer.
    most_pages: pages that stay open: of a kind as many as it has episodes that advance together, and 8 at most.
    chromium: path of the browser; None: the one that is installed.
    pages: folder of the pages; None: those of MiniWoB++.
    habits: bad habits of the demonstrations (`teacher.expert.HABITS`), with the chance that the expert gives in to it.
        A policy that imitates it has these habits too. None without noise.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        kinds: Kinds,
        ood_kinds: Kinds,
        text: str = "plain",
        observe: str = "tree",
        screen: Sequence[int] = launch.SCREEN,
        timeout: float = 45.0,
        most_pages: int = 32,
        chromium: str | None = None,
        pages: str | None = None,
        habits: Mapping[str, float] | None = None,
    ) -> None:
        self._habits = chances("habits", habits or {}, tuple(HABITS))
        self._near = shares("kinds", kinds, tuple(KINDS))
        self._far = shares("ood_kinds", ood_kinds, tuple(KINDS))
        if both := sorted(self._near.keys() & self._far.keys()):
            raise ValueError(f"ood_kinds: {both[0]} is one of kinds too, so it would not be out of domain")
        style = STYLES[one_of("text", text, tuple(STYLES))]
        self._tree, self.pictures = observes(observe)
        self.only_pictures = observes(observe).only_pictures
        self._read = style if self._tree else unseen(style)
        places = _path("chromium", chromium), _path("pages", pages)
        limits = seconds("timeout", timeout), whole("most_pages", most_pages, 1, 200)
        self._settings = Settings(*places, *limits, sides(screen, TASK, LARGEST_SIDE), self.pictures)
        self._stage = Stage(self._settings, style, self._tree)
        self._together = Together()
        self._edit = Edit(self._stage, self._far, style)

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return SPLITS

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split; the same for the same arguments."""
        one_of("split", split, SPLITS)
        kinds = self._near if split in FAMILIAR else self._far
        return draw_tasks(self._stage.pool, split, count, seed, kinds)

    def environment(self) -> Environment:
        """An environment. Raises `MachineError` where Chromium, Playwright or the pages are not installed."""
        pool = self._stage.pool
        assert pool is not None
        return self._together.join(
            WebEnvironment(lambda task: self._as_read(task, pictures=self.pictures), listed=not self.pictures)
        )

    def programs(self) -> Mapping[str, str]:
        """The version of Chromium: another one may break lines or name an element differently."""
        with contextlib.suppress(MachineError):  # the first episode says what is missing
            return {"chromium": launch.version(launch.chromium(self._settings.chromium))}
        return {}

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Show the first views of episodes that are about to start, in few calls to the browser."""
        starts = defaultdict[str, list[tuple[str, list[dict[str, Any]]]]](list)
        for task, _ in work:  # the task has the seed of its page
            if _names_page(task):  # else the episode says what is wrong when it begins
                starts[task.payload["kind"]].append((task.payload["seed"], []))
        self._stage.pool.play_ahead(starts, self.pictures)

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Play the actions of a turn, one of each running episode, in few calls to the browser."""
        self._together.advance(self._stage.pool, work)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        payload = task.payload
        if payload.keys() != {"kind", "seed", "hint"} or not all(
            isinstance(v, str) for v in payload.values()
        ):
            return "a task has a kind, a seed and a hint, which are texts"
        kind, seed, hint = payload["kind"], payload["seed"], payload["hint"]
        if not _names_page(task):
            return "the kind is unknown, or the seed is no word"
        asked = self._stage.instruction(kind, seed)
        if not is_clear(self._stage.pool, KINDS[kind], seed, asked):
            return "the page asks for something that its kind does not describe, or for one of two things"
        if task.instruction != (f"{asked} Hint: {hint}" if hint else asked):
            return "the instruction is not that of the page and the hint"
        return next(hints.objections(hint, *self._stage.way(kind, seed)), "") if hint else ""

    def describe(self, task: Task) -> str:
        """The templates and the hint that an adapter may choose from, and last the task in the form of a reply."""
        return self._edit.describe(task)

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for. Raises `InvalidProposal`."""
        return self._edit.parse(parent, reply)

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Raises `InvalidProposal` for none."""
        return self._edit.rewrite(task, direction, seed)

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, command) pairs of the expert; noise: the chance of a random admissible command.

        Without noise the expert is at its best, and has no habits either.
        """
        return demonstrate(self._episode(task), seed, noise, self._habits if noise else {})

    def demonstration(self, task: Task) -> list[tuple[Observation, str]]:
        """The expert as (observation, reply) pairs: calls of a tool at the places of what it clicks, without pictures.

        Stand-ins of models learn from them.
        """
        return demonstration.demonstration(self._stage.pool, self._as_read(task, 2, self.pictures))

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """Whether each action was part of a shortest remaining solution, given what had been seen before it."""
        return [label.good for label in self._labels(task, actions)]

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """The reason of each label."""
        return [label.reason for label in self._labels(task, actions)]

    def _labels(self, task: Task, actions: Sequence[str]) -> list[Label]:
        return labels(self._episode(task), actions)

    def _episode(self, task: Task) -> Episode:
        """The episode as the teacher follows it: without pictures, and with a second try."""
        return self._stage.episode(task.payload["kind"], task.payload["seed"], task.payload["hint"])

    def _as_read(self, task: Task, tries: int = 1, pictures: bool = False) -> Episode:
        """The episode as an agent reads it."""
        payload = task.payload
        setting = Setting(known(payload["kind"]), payload["seed"], payload["hint"])
        return Episode(self._stage.pool, setting, self._read, tries, pictures)


def _names_page(task: Task) -> bool:
    """Whether a task has a known kind, which becomes the name of a file, and a seed that is a word."""
    kind, seed = task.payload.get("kind"), task.payload.get("seed")
    return isinstance(kind, str) and kind in KINDS and isinstance(seed, str) and bool(_SEED.fullmatch(seed))


def _path(key: str, value: str | None) -> str | None:
    return None if value is None else text(key, value)
