"""Checks that measure the project's finished runs: what they declare alike, and their way from a file to a page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rlanything.checks.declaration import PLACE, check_declaration, keep, published
from rlanything.checks.running import say
from rlanything.config import Config, Section
from rlanything.config.section import Positive
from rlanything.core.errors import ConfigError
from rlanything.files import atomic, locks
from rlanything.files.records import write_json
from rlanything.runs.resuming.began import check_began
from rlanything.runs.workers import run_all


class OfRuns(Section):
    """What a declaration says of the runs that are measured."""

    seeds: Positive | None = None
    """How many of the configuration's; None: all."""

    def used(self, config: Config) -> range:
        """The training seeds that are measured."""
        return range(self.seeds or config.train.seeds)

    @abstractmethod
    def measured(self, config: Config) -> tuple[str, ...]:
        """The arms whose runs hold the models that are measured, each once.

        Raises `ConfigError` for an arm that cannot be measured so.
        """

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for a configuration whose runs cannot be measured so; here: with fewer seeds."""
        if (self.seeds or 1) > config.train.seeds:
            raise ConfigError(f"seeds = {self.seeds}: train.seeds = {config.train.seeds} were trained")


class Part(Protocol):
    """What one process of a check measures, for example a finished run."""

    @property
    def done(self) -> bool:
        """Whether its measurement is there."""
        ...


Declared = TypeVar("Declared", bound=OfRuns)
Measured = TypeVar("Measured", bound=Part)
Found = TypeVar("Found")


@dataclass(frozen=True)
class FinishedRuns(Generic[Declared, Measured, Found]):
    """A kind of check.

    name: of its command, and of its files. folder: where its measurements lie, from the project. done: words for the
    parts that are measured, `runs are measured`. load: reads a declaration. parts: everything that it measures.
    measure: called with the configuration and the declaration as plain values and a part, in a process of its own, so
    that models and sandboxes go with it. read: what the measurements say. to_json, to_markdown: that, as it is
    published. add: writes what is published besides.
    """

    name: str
    folder: Path
    done: str
    load: Callable[[Path], Declared]
    parts: Callable[[Config, Path, Declared], list[Measured]]
    measure: Callable[[dict[str, Any], Path, dict[str, Any], Measured], None]
    read: Callable[[Config, Declared, list[Measured]], Found]
    to_json: Callable[[Found], dict[str, Any]]
    to_markdown: Callable[[Found, str], str]
    add: Callable[[Found, list[Measured], Path], None]

    def declared(
        self, file: Path, root: Path, config: Config, workers: int
    ) -> tuple[Declared, list[Measured]]:
        """What is declared, and all of its parts. Raises `ConfigError` as `run` does."""
        check_declaration(file, root, workers)
        declared = self.load(file)
        declared.check(config)
        for arm in declared.measured(config):
            check_began(config, root, arm)
        return declared, self.parts(config, root, declared)

    def run(self, file: Path, root: Path, config: Config, workers: int) -> Found:
        """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

        Args:
            file: the declaration.
            root: the project, whose finished runs are measured.
            config: its configuration.
            workers: parts at once; changes no result.

        Raises:
            ConfigError: before any work, for a declaration that cannot be run, and where a run is missing or began from
                other training tasks or base models than there are now.
        """
        declared, parts = self.declared(file, root, config, workers)
        check, place = f"{self.name} {file.stem}", root / self.folder
        atomic.make(place)
        with locks.held(place / "lock", f"{place}: another process runs this check here"):
            left = [part for part in parts if not part.done]
            say(check, f"{len(parts) - len(left)} of {len(parts)} {self.done}")
            given = (config.model_dump(by_alias=True), root, declared.model_dump())
            run_all(self.measure, [(*given, part) for part in left], workers)
            found = self.read(config, declared, parts)
            with published(file.stem, root) as folder:
                keep(file, declared, self.load, folder / f"{self.name}.yaml")
                write_json(folder / f"{self.name}.json", self.to_json(found))
                (folder / "report.md").write_text(self.to_markdown(found, file.stem))
                self.add(found, parts, folder)
        print(self.to_markdown(found, file.stem), end="")
        say(check, f"results: {root / PLACE / file.stem}")
        return found
