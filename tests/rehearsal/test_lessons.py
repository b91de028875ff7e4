"""What the stand-ins of a rehearsal are taught."""

from __future__ import annotations

import pytest
from rehearsal_cases import rehearsal
from stage_cases import ROOT

from envs.alfworld.family import AlfworldFamily
from rlanything.core.errors import EnvironmentFailure
from rlanything.rehearsal.lessons import TeacherLessons


def test_a_demonstration_that_fails_is_named_with_its_task(monkeypatch):
    family = AlfworldFamily()
    (task,) = family.make("train", 1, 0)
    monkeypatch.setattr(AlfworldFamily, "demonstrate", lambda *_: [])
    said = rf"env: AlfworldFamily\.demonstrate failed for task {task.task_id[:12]} .* has no step"
    with pytest.raises(EnvironmentFailure, match=said):
        TeacherLessons(rehearsal(), ROOT, family, [task])
