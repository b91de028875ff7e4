"""What is declared of a stage of the pipeline. The stages themselves are in `declared`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.types import Json
from rlanything.stages.dependencies import Columns, writes_tests


@dataclass(frozen=True)
class Stage:
    """One stage. `deps`, `params`, `outs`, `metrics` and `plots` have the format of dvc.yaml."""

    name: str
    module: str
    """The module of the stage. It and its imports are the stage's code."""
    help: str
    about: str
    work: Callable[[Config, Path, str], None]
    """The function that does the work: (configuration, project, arm); arm is '' for a stage without arms."""
    deps: Callable[[Config], Sequence[str]]
    params: Sequence[str]
    outs: Sequence[Json]
    metrics: Sequence[Json] = ()
    plots: Sequence[Json] = ()
    arms: Callable[[Config], Mapping[str, Columns]] | None = None
    """The arms that the stage runs for, one command each; None: the stage runs once."""
    makes: Sequence[str] = ("env", "engine")
    """Sections of the configuration whose classes (`_target_`) the stage makes objects of."""

    loads: Callable[[Config], Sequence[Checkpoint | None]] = lambda config: ()
    """Configured checkpoints whose content decides the results and that `deps` cannot name: a folder that no stage
    makes is a dependency, a name on the hub is none."""
    needed: Callable[[Config], bool] = lambda config: True
    """Whether the pipeline has the stage under a given configuration."""
    why_not: str = ""
    """What the command says where it has not."""

    @property
    def engine(self) -> bool:
        """Whether the stage uses the engine. If so, the engine is checked before the stage starts."""
        return "engine" in self.makes

    @property
    def made(self) -> list[str]:
        """The paths in `outs`."""
        return [out if isinstance(out, str) else str(next(iter(out))) for out in self.outs]

    def params_for(self, config: Config) -> list[str]:
        """`params`; an experiment without endpoints, pictures or written tests does not depend on what is theirs."""
        unused = [] if config.model.images.any else ["model.images"]
        unused += [] if writes_tests(config) else ["${item.written}"]
        asked = [name for name in self.params if config.endpoints.served or "endpoint" not in name]
        return [name for name in asked if name not in unused]

    def check_needed(self, config: Config) -> None:
        """Raise `ConfigError` where the stage has nothing to do."""
        if not self.needed(config):
            raise ConfigError(self.why_not)

    def check_arm(self, config: Config, arm: str) -> None:
        """Raise `ConfigError` unless the stage runs for this arm."""
        if self.arms is not None and arm not in (known := self.arms(config)):
            if not arm:
                raise ConfigError(f"--arm is missing; known: {', '.join(sorted(known))}")
            raise ConfigError(f"arm {arm!r}: {unknown(arm, known)}")
