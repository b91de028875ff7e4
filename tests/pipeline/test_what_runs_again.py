"""Which stages `dvc repro` runs again after a change: those that it concerns, and only those.

Most cases ask DVC which stages have changed and follow its graph from there (`would_run`), which takes a second; a few
run the pipeline for real, with stand-ins for the work (`repro`), and must agree.
"""

import pytest
from pipeline_cases import ARMS, TRAINED

pytestmark = pytest.mark.integration

EVERYTHING = {
    "tasks",
    "bootstrap",
    "report",
    *(f"train@{a}" for a in TRAINED),
    *(f"evaluate@{a}" for a in ARMS),
}


def retrained(*arms: str) -> set[str]:
    """These arms are trained and evaluated again, and the report is made again."""
    return {f"{stage}@{arm}" for stage in ("train", "evaluate") for arm in arms} | {"report"}


def test_the_first_time_everything_runs(finished):
    assert set((finished / "ran.log").read_text().split()) == EVERYTHING


@pytest.mark.long
def test_the_pipeline_really_runs_what_was_foreseen_and_is_then_up_to_date(project):
    assert project.would_run() == set()
    project.change("arms.policy.step_votes", False)
    foreseen = project.would_run()
    assert project.repro() == foreseen == retrained("policy")
    assert project.would_run() == set()
    assert project.repro() == set()


@pytest.mark.long
def test_base_models_that_come_out_the_same_retrain_nothing_else(project):
    project.touch("experiments/prompts/embedded/adapter.txt")
    assert project.repro(same="bootstrap") == retrained("full") | {"bootstrap"}


def test_what_was_undone_changed_nothing(asked):
    asked.change("seed", 17)
    asked.touch("rlanything/stages/evaluate.py")
    assert asked.would_run() == EVERYTHING
    asked.undo()
    assert asked.would_run() == set()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("signals.lambda", 2.0, retrained("policy", "policy_reward", "full")),
        ("adaptation.alpha_high", 0.95, retrained("full")),
        ("arms.policy.step_votes", False, retrained("policy")),
        ("signals.reward_min", 0.01, retrained("policy_reward", "full")),
        ("learn.reward.lr", 0.125, retrained("policy_reward", "full")),
        ("learn.policy.lr", 0.125, retrained(*TRAINED)),
        ("evaluate.repeats", 17, {*(f"evaluate@{arm}" for arm in ARMS), "report"}),
        ("evaluate.cooling.tasks", 17, {"evaluate@base_cooled", "report"}),
        ("train.workers", 17, {"report"}),
        ("bootstrap.min_mu", 1.999, EVERYTHING - {"tasks"}),
        ("seed", 17, EVERYTHING),
        ("tasks.start_digest", "0" * 64, EVERYTHING),
    ],
)
def test_after_a_parameter_changed(asked, name, value, expected):
    asked.change(name, value)
    assert asked.would_run() == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("adapter", retrained("full") | {"bootstrap"}),
        ("critic", retrained("full") | {"bootstrap"}),
        ("judge", EVERYTHING - {"tasks"}),
        ("policy_turn", EVERYTHING - {"tasks"}),
    ],
)
def test_after_a_prompt_changed_that_leaves_the_base_models_as_they_were(asked, prompt, expected):
    asked.touch(f"experiments/prompts/embedded/{prompt}.txt")
    assert asked.would_run(same="bootstrap") == expected


@pytest.mark.parametrize("role", ["policy", "reward", "adapter"])
def test_the_temperature_is_chosen_on_tasks_that_no_base_model_practised_on(asked, role):
    asked.change(f"bootstrap.{role}.episodes", 6000)
    assert asked.would_run(same="bootstrap") == {"bootstrap", "evaluate@base_cooled", "report"}


def test_prompts_that_are_not_chosen_concern_nothing(asked):
    asked.touch("experiments/prompts/instruct/judge.txt")
    assert asked.would_run() == set()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("rlanything/report/tables.py", {"report"}),
        ("rlanything/stages/evaluate.py", {*(f"evaluate@{arm}" for arm in ARMS), "report"}),
        ("rlanything/runs/seedrun.py", retrained(*TRAINED)),
        ("rlanything/cli.py", set()),
        ("envs/alfworld/README.md", set()),
    ],
)
def test_after_code_changed(asked, file, expected):
    asked.touch(file)
    assert asked.would_run() == expected
