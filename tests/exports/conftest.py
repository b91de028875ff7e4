"""A project with a finished run, and its exports, one a format, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlanything.exports.export import export
from rlanything.loop.record import EpisodeRecord
from rlanything.repro.stored import StoredIteration, StoredRun

RUN = "full/seed-0"


@pytest.fixture(scope="session")
def project(undisturbed) -> Path:
    return undisturbed.parents[2]


@pytest.fixture(scope="session")
def records(undisturbed) -> list[tuple[int, EpisodeRecord]]:
    """(iteration, record) of every rollout, in stored order."""
    run = StoredRun(undisturbed)
    return [(k, record) for k in run.iterations for record in StoredIteration(run, k).episodes]


@pytest.fixture(scope="session")
def exported(project, tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a format, for the whole run."""
    top = tmp_path_factory.mktemp("exports")

    def folder(kind: str) -> Path:
        place = top / kind
        if not place.exists():
            made = export(RUN, kind, place, root=project)
            assert not made.notes
        return place

    return folder
