"""A study of the project, for tests of its registration."""

import pytest
from study_cases import OWN, space_of

from rlanything.checks.study.declare import load_study
from rlanything.checks.workspace import Workspace


@pytest.fixture
def space(tmp_path):
    """A study of the project, with a workspace that is not in the project."""
    study = load_study(OWN)
    own = space_of(study)
    return (
        study,
        Workspace(tmp_path / "space", own.project, study, own.config, own.inputs, 1),
        tmp_path / "place",
    )
