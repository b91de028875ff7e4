"""Where a study is stored: a journal file in its folder, or a database. Messages never show a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rlanything.core.errors import ConfigError
from rlanything.sweep.errors import SweepStopped
from rlanything.sweep.study.journal import Journal

JOURNAL = "study.journal"


def open_storage(url: str | None, folder: Path) -> BaseStorage:
    """The journal file in `folder`, or the database at `url`. Raises `ConfigError`.

    A connection is tested before it is used, so that a server may be restarted while workers run.
    """
    if url is None:
        return JournalStorage(Journal(folder / JOURNAL))
    arguments = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    try:
        return RDBStorage(url, engine_kwargs={"pool_pre_ping": True, **arguments})
    except ImportError as error:
        raise ConfigError(
            f"storage {without_password(url)}: {error}; install what it needs with pip install 'rlanything[sweep]'"
        ) from None
    except Exception as error:  # SQLAlchemy's and the driver's own, of many classes
        raise ConfigError(f"storage {without_password(url)}: {_reason(error, url)}") from None


@contextmanager
def storage_errors(url: str | None) -> Iterator[None]:
    """What the storage refuses in the middle of the work leaves the block as `SweepStopped`."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        where = "the study" if url is None else f"storage {without_password(url)}"
        raise SweepStopped(
            f"{where}: {_reason(cause, url or '')}; start the sweep again once it is back: it goes on"
        ) from error


def without_password(url: str) -> str:
    """The address for messages."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "(not an address, e.g. sqlite:///sweep.db)"


def _reason(error: Exception, url: str) -> str:
    first = str(error).partition("\n")[0]
    return first.replace(url, without_password(url)) if url else first
