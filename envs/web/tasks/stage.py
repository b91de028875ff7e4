"""What the makers of tasks ask of pages: instructions, the expert's way. Answers are remembered, as tasks recur."""

from __future__ import annotations

from collections import OrderedDict

from envs.web.browser.pool import Pool, Settings
from envs.web.browser.shared import shared
from envs.web.kinds.table import known
from envs.web.play.episode import Episode, Setting
from envs.web.play.text import Style
from envs.web.tasks import hints

MOST = 2048


class Stage:
    """Episodes outside the loop. A browser that fails is started a second time before its failure is raised.

    numbered: whether agents read the numbers of elements.
    """

    def __init__(self, settings: Settings, style: Style, numbered: bool = True) -> None:
        self._settings, self._style, self._numbered = settings, style, numbered
        self._ways: OrderedDict[tuple[str, str], tuple[set[str], set[str]]] = OrderedDict()

    @property
    def pool(self) -> Pool:
        """The pages of this process. Raises `MachineError` where something is not installed."""
        return shared(self._settings)

    def episode(self, kind: str, seed: str, hint: str = "") -> Episode:
        """An episode at its start. Raises `ValueError` for an unknown kind, `BrowserError`, `BrowserTimeout`."""
        return Episode(self.pool, Setting(known(kind), seed, hint), self._style, tries=2)

    def instruction(self, kind: str, seed: str) -> str:
        """What the page asks for."""
        return self.pool.play(known(kind).name, seed, [], 2).instruction

    def way(self, kind: str, seed: str) -> tuple[set[str], set[str]]:
        """The commands and texts of the expert's way (`hints.way`); none where the page asks for something else."""
        key = kind, seed
        if key not in self._ways:
            asked = known(kind).asks_for(self.instruction(kind, seed))
            self._ways[key] = hints.way(self.episode(kind, seed)) if asked else (set(), set())
            if len(self._ways) > MOST:
                self._ways.popitem(last=False)
        return self._ways[key]

    def hint(self, kind: str, seed: str) -> str:
        """The hint that names the first good command, in alphabetical order, or its element for agents without numbers.

        It names nothing where there is no such command.
        """
        episode = self.episode(kind, seed)
        asked = episode.setting.kind.asks_for(episode.instruction)
        command = min(episode.setting.kind.good(episode.scene), default="") if asked else ""
        if self._numbered or not command:
            return f"start with {command}"
        number = int(command.split(" ")[1])
        item = next(item for item in episode.view.elements if item.number == number)
        named = f'start with the {item.role} "{item.name}"'
        return f"start with the {item.role}" if hints.malformed(named) or '"' in item.name else named
