"""Lightning's logger for MLflow, with a database that several seeds may open at once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import MLFlowLogger
from lightning.pytorch.loggers.logger import rank_zero_experiment

from rlanything.files import locks

SQLITE = "sqlite:///"
"""What the `tracking_uri` of a database file begins with."""
PATIENCE_S = 600.0
"""How long a seed waits for another one to make the database, which takes up to half a minute on a busy machine."""


class SharedMLFlowLogger(MLFlowLogger):
    """Opens the database, its experiment and its run while no other process does.

    The first one to open a database file makes its tables, and creates the experiment. Two at once break it.
    """

    __signature__ = inspect.signature(MLFlowLogger)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Arguments as Lightning's. Raises `ConfigError` where another process holds the database too long."""
        given = self.__signature__.bind(*arguments, **options).arguments
        self._database = str(given.get("tracking_uri") or "")
        with self._alone():
            super().__init__(*arguments, **options)

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The client of MLflow, once the run is there."""
        if self._initialized:
            return super().experiment
        with self._alone():
            return super().experiment

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """In the block no other process opens the database. A server takes care of that itself."""
        if not self._database.startswith(SQLITE):
            yield
            return
        path = Path(f"{self._database.removeprefix(SQLITE)}.lock")
        with locks.held(path, f"{path}: another process opens MLflow's database", PATIENCE_S):
            yield
