"""The bootstrap of a reward model that writes tests: models, a panel with an exact oracle, and what is refused."""

from __future__ import annotations

import json

import pytest
from stage_cases import ROOT, small, small_coding

from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from rlanything.core.coding_signals import gt_programs
from rlanything.core.errors import ConfigError, EnvironmentFailure
from rlanything.files.records import read_lines
from rlanything.rewards.kind import kind_of
from rlanything.rewards.step_votes.lessons import VoteLessons
from rlanything.rewards.unit_tests.evaluation import PanelProblem, too_few_right
from rlanything.runs import build, families
from rlanything.runs.layout import Layout
from rlanything.stages.bootstrap import stage


def test_the_first_writer_writes_some_right_tests(coding_project):
    found = json.loads(Layout(coding_project).bootstrap.read_text())
    assert set(found) == {"in_domain", "out_of_domain", "panel_success", "ut", "detect"}
    assert 0 < found["ut"] <= 1
    assert found["detect"] <= found["ut"]
    assert sorted(path.name for path in (coding_project / "models").iterdir()) == [
        "adapter", "bootstrap.json", "policy", "reward", "reward_panel.jsonl.gz",
    ]  # fmt: skip


def test_every_problem_of_the_panel_has_a_program_that_is_right(coding_project):
    config, layout = small_coding(), Layout(coding_project)
    panel = [
        PanelProblem.from_json(r)
        for r in read_lines(layout.reward_panel("reward_panel"), "rlanything bootstrap")
    ]
    assert len(panel) == config.tasks.panels["reward_panel"].tasks
    for problem in panel:
        assert len(problem.programs) == len(problem.dataset) == config.evaluate.reward_rollouts + 1
        assert gt_programs(problem.dataset)[-1] is True
        assert problem.programs[-1] == problem.task.payload["solution"]
        assert problem.opening == problem.task.instruction


def test_the_panel_is_the_same_again(coding_project, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    for name in ("experiments", "data"):
        (again / name).symlink_to(coding_project / name)
    models = again / "models"
    models.mkdir()
    for name in ("policy", "reward", "adapter"):
        (models / name).symlink_to(coding_project / "models" / name)
    stage._finish(small_coding(), again, Layout(again), "")
    for name in ("bootstrap.json", "reward_panel.jsonl.gz"):
        assert (models / name).read_bytes() == (coding_project / "models" / name).read_bytes()


def test_lessons_are_the_loop_s_question_and_a_test_that_can_be_read():
    config, family = small_coding("bootstrap.reward.noise=0"), CodingFamily()
    prompts = build.prompts(config, ROOT)
    taught = kind_of(config).warm_start(config, family, prompts)
    task = family.make("train", 1, 0)[0]
    demo = family.demonstrate(task, 0, 0.0)
    question, reply = taught.corpus([task], [demo])
    assert question == prompts.test_question(demo[0][0].text)[-1]["content"]
    assert reply.splitlines()[-1].startswith("test: ")
    assert taught.critic(task, 1) == family.demonstrate_criticism(task, 1)


@pytest.mark.parametrize("method", ["demonstrate", "demonstrate_test", "demonstrate_criticism"])
@pytest.mark.parametrize("fails", [ValueError("no solution"), None])
def test_what_the_teacher_of_tests_fails_at_is_named_with_its_task(method, fails, monkeypatch):
    config, family = small_coding(), CodingFamily()
    taught = kind_of(config).warm_start(config, family, build.prompts(config, ROOT))
    (task,) = family.make("train", 1, 0)
    demo = family.demonstrate(task, 0, 0.0)

    def answer(*_):
        if fails is not None:
            raise fails

    monkeypatch.setattr(CodingFamily, method, answer)
    why = "TypeError: " if fails is None else "ValueError: no solution"
    said = rf"env: CodingFamily\.{method} failed for task {task.task_id[:12]} .*: {why}"
    with pytest.raises(EnvironmentFailure, match=said):
        taught.critic(task, 0) if method == "demonstrate_criticism" else taught.corpus([task], [demo])


def test_a_family_that_shows_no_tests_cannot_teach_a_writer():
    config = small_coding()
    with pytest.raises(ConfigError, match=r"judge\.writes = 'tests': AlfworldFamily demonstrates no tests"):
        kind_of(config).warm_start(config, AlfworldFamily(), build.prompts(config, ROOT))


def test_votes_are_taught_where_votes_are_written():
    config = small()
    family = families.family(config)
    taught = kind_of(config).warm_start(config, family, build.prompts(config, ROOT))
    assert isinstance(taught, VoteLessons)


@pytest.mark.parametrize(
    ("right", "least", "said"),
    [
        (0.04, 0.05, "a share of 0.040 is right, below bootstrap.min_ut = 0.05"),
        (float("nan"), 0.0, "no problem of the reward panel has a right program"),
        (0.05, 0.05, ""),
    ],
)
def test_a_writer_that_is_hardly_ever_right_is_refused(right, least, said):
    found = too_few_right(right, least)
    assert said in found
    assert bool(found) == bool(said)
