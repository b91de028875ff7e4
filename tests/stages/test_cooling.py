"""The control `base_cooled`: the untrained policy at the temperature that is best on tasks of their own."""

from __future__ import annotations

import json
import pickle
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from scripted import rollout_worker, task, winning
from stage_cases import small

from rlanything.config import parse
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.splits import TRAIN
from rlanything.planning import compose
from rlanything.report.results.evaluations import ReportError, read_cooled
from rlanything.runs.families import family, practice_tasks
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.workers import side_by_side
from rlanything.stages import cooling
from rlanything.stages.evaluate import evaluate_arm
from rlanything.stages.tasks import make_tasks

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
TRIED = (
    "evaluate.cooling.temperatures=[1.0,0.5,0.0]",
    "evaluate.cooling.tasks=3",
    "train.seeds=2",
    "train.workers=1",  # in this process, where the stand-ins are
)


@pytest.fixture
def root(tiny_project, tmp_path) -> Path:
    """The tiny project's tasks and models, without results."""
    for name in ("data", "models"):
        shutil.copytree(tiny_project / name, tmp_path / name)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


def evaluation(root: Path, name: str) -> dict:
    return json.loads(Layout(root).evaluation(name).read_text())


def sent(function, calls, workers):
    """What worker processes would be sent and send back, without the seconds that each takes to start."""
    found = side_by_side(*pickle.loads(pickle.dumps((function, calls))), workers)
    return pickle.loads(pickle.dumps(found))


@pytest.mark.long
def test_it_is_the_base_at_the_best_of_the_temperatures_with_the_draws_of_the_base(root, monkeypatch):
    monkeypatch.setattr(cooling, "side_by_side", sent)
    evaluate_arm(small(*TRIED), root, "base_cooled")
    cooled = evaluation(root, "base_cooled")
    assert set(cooled["shares"]) == {"1.0", "0.5", "0.0"}
    best = cooled["temperature"]
    assert cooled["shares"][str(best)] == max(cooled["shares"].values())
    assert read_cooled(root).temperature == best
    evaluate_arm(small(*TRIED, f"evaluate.temperature={best}"), root, "base")
    base = evaluation(root, "base")
    for seed in ("0", "1"):
        mine = cooled["seeds"][seed]
        assert mine == {key: base["seeds"][seed][key] for key in mine}
        assert {"in_domain", "out_of_domain"} <= set(mine)


def test_of_equally_good_temperatures_the_highest_is_taken(root, monkeypatch):
    shares = {1.0: 0.2, 0.5: 0.6, 0.0: 0.6}
    monkeypatch.setattr(cooling, "try_temperature", lambda *call: shares[call[3]])
    monkeypatch.setattr(cooling, "measure_at", lambda *call: {"temperature": call[3]})
    config = small(*TRIED)
    found = cooling.measure_cooled(config, root, config.model.policy)
    assert found["temperature"] == 0.5
    assert found["seeds"] == {"0": {"temperature": 0.5}, "1": {"temperature": 0.5}}


def test_temperatures_are_tried_on_training_tasks_that_nothing_else_uses(root):
    config = small(*TRIED)
    tasks = {task.task_id for task in cooling.fresh_tasks(config, root, 3)}
    used = [read_tasks(Layout(root).tasks(name)) for name in (TRAIN, *config.tasks.panels)]
    used.append(practice_tasks(config, root, family(config)))
    assert len(tasks) == 3
    assert not tasks & {task.task_id for some in used for task in some}


def test_temperatures_are_tried_on_no_task_that_a_policy_of_another_supervision_learned_from(
    root, monkeypatch
):
    """The ceiling of a check learns from more demonstrations than the base. Without a common task nothing changes."""
    config, taught = small(*TRIED), small(*TRIED, "bootstrap.policy.noise=0")
    alone = cooling.fresh_tasks(config, root, 3)
    assert cooling.fresh_tasks(config, root, 3, taught) == alone
    practice = cooling.families.practice_tasks
    more = {id(taught): alone[:1]}
    monkeypatch.setattr(
        cooling.families, "practice_tasks", lambda c, *rest: [*practice(c, *rest), *more.get(id(c), [])]
    )
    found = cooling.fresh_tasks(config, root, 3, taught)
    assert len(found) == 3
    assert alone[0].task_id not in {task.task_id for task in found}


def test_tasks_of_the_demonstrations_are_not_tried_again_in_a_small_world(tmp_path):
    """In the smallest coding world hundreds of tasks are all there are, and the base policy saw most of them."""
    config = parse(compose.compose(["env=coding_easy", "scale=smoke", "bootstrap.reward.episodes=100"], ROOT))
    make_tasks(config, tmp_path)
    seen = {task.task_id for task in practice_tasks(config, tmp_path, family(config))}
    try:
        found = cooling.fresh_tasks(config, tmp_path, 20)
    except ConfigError as error:
        assert "training split" in str(error) or "cannot be made" in str(error)  # noqa: PT017
    else:
        assert not seen & {task.task_id for task in found}


def test_a_temperature_at_which_everything_crashes_is_not_the_best(root, monkeypatch):
    config = small(*TRIED)
    shares = {1.0: float("nan"), 0.5: 0.2, 0.0: 0.1}
    monkeypatch.setattr(cooling, "try_temperature", lambda *call: shares[call[3]])
    monkeypatch.setattr(cooling, "measure_at", lambda *call: {})
    found = cooling.measure_cooled(config, root, config.model.policy)
    assert found["temperature"] == 0.5
    assert found["shares"] == {"0.5": 0.2, "0.0": 0.1}
    monkeypatch.setattr(cooling, "try_temperature", lambda *call: float("nan"))
    with pytest.raises(MachineError, match="crashed"):
        cooling.measure_cooled(config, root, config.model.policy)


@pytest.mark.parametrize(("longest", "share"), [(3, 1.0), (2, 0.0)])
def test_a_temperature_is_tried_at_it_and_with_the_longest_episodes_of_a_measurement(
    tmp_path, monkeypatch, longest, share
):
    worker = rollout_worker(winning({0: 2}))
    monkeypatch.setattr(cooling, "_worker", lambda *_: nullcontext(worker))
    config = small(*TRIED, "evaluate.temperature=0.9", f"evaluate.max_steps={longest}", "rollout.max_steps=9")
    tasks = [task(0, steps=3).to_json()]
    found = cooling.try_temperature(config.model_dump(by_alias=True), tmp_path, {}, 0.5, tasks, 2)
    assert found == share
    assert {request.temperature for request in worker.policy.engine.asked} == {0.5}


def test_without_the_section_it_is_refused_and_no_stage(root):
    config = small("evaluate.cooling=null")
    with pytest.raises(ConfigError, match=r"evaluate\.cooling = null"):
        evaluate_arm(config, root, "base_cooled")
    from rlanything.stages.declared import STAGES

    (stage,) = (stage for stage in STAGES if stage.name == "evaluate")
    assert stage.arms is not None
    assert "base_cooled" not in stage.arms(config)
    assert "base_cooled" in stage.arms(small(*TRIED))


@pytest.mark.parametrize("content", ["{}", '{"temperature": "hot"}', "{"])
def test_a_file_without_a_temperature_is_named(tmp_path, content):
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "base_cooled.json").write_text(content)
    with pytest.raises(ReportError, match=r"evaluation/base_cooled\.json"):
        read_cooled(tmp_path)


def test_held_out_types_are_practised_but_neither_trained_on_nor_used_to_choose_the_temperature(tmp_path):
    """The smoke scale has the types `pick` and `look`."""
    config = parse(compose.compose(["scale=smoke", "env.held_out=[look]"], ROOT))
    make_tasks(config, tmp_path)
    drawn = {
        "practice": practice_tasks(config, tmp_path, family(config)),
        "cooling": cooling.fresh_tasks(config, tmp_path, 24),
        "train": read_tasks(Layout(tmp_path).tasks(TRAIN)),
    }
    looks = {name: {"look" in task.payload["task_type"] for task in tasks} for name, tasks in drawn.items()}
    assert looks == {"practice": {True, False}, "cooling": {False}, "train": {False}}
