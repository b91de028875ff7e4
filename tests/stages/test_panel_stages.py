"""Panels through the whole pipeline: drawn apart from each other, measured, labelled, and in the report."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import small, small_coding

from envs.coding.family import CodingFamily
from envs.coding.sandbox import SandboxError
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.files.records import read_metrics, write_json, write_lines
from rlanything.planning import dvcfile
from rlanything.report import document, figures
from rlanything.report.report_data import gather
from rlanything.report.results.details import read_extras
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import evaluate, label, report, tasks, train
from rlanything.stages.bootstrap import stage

ROOT = Path(__file__).parents[2]
FURTHER = "+tasks.panels.mine={split: in_domain, tasks: 2, measures: [policy, reward]}"
LEAST = ("train.iterations=1", "evaluate.every=1", "tasks.panels.out_of_domain.tasks=1")
UNTAUGHT = (
    "judge.max_invalid=1",
    *(f"bootstrap.{model}.steps=4" for model in ("policy", "reward", "adapter")),
    *(f"bootstrap.{model}.episodes=24" for model in ("policy", "reward", "adapter")),
)
POLICY = {"in_domain", "out_of_domain", "mine"}

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(900)]


@cache
def default_tasks(coding: bool) -> dict[str, list[str]]:
    return ids(small_coding() if coding else small())


def ids(config) -> dict[str, list[str]]:
    return {name: [t.task_id for t in found] for name, found in tasks.make_splits(config, ROOT).items()}


@given(
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(["train", "in_domain", "reward_panel"]), st.integers(1, 4)), max_size=3
    ),
)
@settings(deadline=None, max_examples=8)
def test_panels_of_a_split_are_apart_and_change_no_panel_that_was_there(coding, further):
    added = [
        f"+tasks.panels.more{k}={{split: {split}, tasks: {count}, measures: [policy]}}"
        for k, (split, count) in enumerate(further)
    ]
    found = ids(small_coding(*added) if coding else small(*added))
    assert {name: found[name] for name in default_tasks(coding)} == default_tasks(coding)
    assert [len(found[f"more{k}"]) for k in range(len(further))] == [count for _, count in further]
    every = [task for of in found.values() for task in of]
    assert len(set(every)) == len(every)


def test_the_held_out_problems_may_come_from_the_training_file(tmp_path):
    """The paper's panel of CodeContests without a file of its own."""
    generated = CodingFamily.easiest({})
    generated.write_data(tmp_path, generated.stand_ins({"train": 20, "LiveBench": 4}, 0))
    data = small_coding("tasks.train=12").model_dump(by_alias=True)
    problems = {name: str(tmp_path / f"{name}.json") for name in ("train", "LiveBench")}
    env = {"_target_": data["env"]["_target_"], "form": "reference", "problems": problems}
    panel = {"tasks": 3, "measures": ["policy", "reward"]}
    panels = {"LiveBench": panel, "CodeContests": {**panel, "tasks": 8, "split": "train"}}
    config = parse(data | {"env": env, "tasks": data["tasks"] | {"panels": panels}})
    found = ids(config)
    assert {name: len(set(of)) for name, of in found.items()} == {
        "train": 12,
        "LiveBench": 3,
        "CodeContests": 8,
    }
    assert len({task for of in found.values() for task in of}) == 23
    with pytest.raises(ConfigError, match=r"21 are wanted and .*train\.json holds 20"):
        ids(
            parse(
                data
                | {
                    "env": env,
                    "tasks": data["tasks"]
                    | {"panels": panels | {"more": {**panel, "split": "train", "tasks": 1}}},
                }
            )
        )


def test_a_training_task_on_a_panel_is_refused(monkeypatch):
    family = type(tasks.families.family(small()))
    made = family.make
    monkeypatch.setattr(family, "make", lambda self, split, count, seed: made(self, "train", count, 0))
    with pytest.raises(ConfigError, match=r"tasks\.panels\.\w+: task .* is a training task too"):
        tasks.make_splits(small(), ROOT)


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["votes", "tests"]
)
def run(request, tmp_path_factory) -> tuple[Config, Path]:
    """An experiment of one arm with two policy panels and two reward panels, one of them both, through every stage."""
    config = (small_coding if request.param else small)(*LEAST, *UNTAUGHT, FURTHER)
    if request.param:
        require_sandbox()
    root = tmp_path_factory.mktemp("panels")
    (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(config, root)
    stage.make_models(config, root)
    train.train_arm(config, root, "full")
    for arm in ("base", "full"):
        evaluate.evaluate_arm(config, root, arm)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "PAPER", {})  # PDF takes most of drawing, and tests/report look at it
        report.write_report(config, root)
    return config, root


def require_sandbox() -> None:
    family = CodingFamily()
    try:
        family.sandbox()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")
    family.close()


def measures(config: Config) -> list[str]:
    return ["ut", "detect"] if config.judge.writes == "tests" else ["rm_process", "rm_pairwise", "rm_outcome"]


def test_every_panel_is_measured_by_its_own_tasks(run):
    config, root = run
    found = json.loads((root / "evaluation" / "full.json").read_text())["seeds"]["0"]
    held = {name: {t.task_id for t in read_tasks(Layout(root).tasks(name))} for name in config.tasks.panels}
    rewards = {f"{name}/{panel}": panel for name in measures(config) for panel in ("reward_panel", "mine")}
    assert set(found) >= POLICY | set(rewards)
    assert not set(found) & {"ut", "detect", "rm_process", "rm_pairwise", "rm_outcome", "reward_panel"}
    for name in POLICY:
        assert set(found[name]) == held[name]
    for name, panel in rewards.items():
        assert set(found[name]) <= held[panel]
        assert found[name]
    made = json.loads((root / "models" / "bootstrap.json").read_text())
    assert set(made) >= POLICY | {"panel_success/reward_panel", "panel_success/mine"}


def test_curves_and_report_are_over_the_same_panels(run):
    config, root = run
    first = read_metrics(root / "runs" / "full" / "seed-0" / "metrics.jsonl")[0]
    shares = [f"{name}/{panel}" for name in measures(config) for panel in ("reward_panel", "mine")]
    assert {key.removeprefix("panel/") for key in first if key.startswith("panel/")} >= POLICY | set(shares)
    summary = json.loads((root / "report" / "summary.json").read_text())
    assert set(summary["full"]) >= POLICY | set(shares)
    page = (root / "report" / "report.md").read_text()
    assert ("### Code mine" if config.judge.writes == "tests" else "### Accuracy mine") in page
    for panel in ("reward_panel", "mine"):
        assert (root / "report" / "figures" / f"reward_model_{panel}.png").is_file()
        assert f"(figures/reward_model_{panel}.png)" in page
    curves = (root / "report" / "plots" / "learning.csv").read_text()
    assert all(f",{name}," in curves for name in (*POLICY, *shares))


def test_the_pipeline_depends_on_the_files_of_its_panels(run):
    stages = yaml.safe_load(dvcfile.text(run[0]))["stages"]
    for name in ("train", "evaluate"):
        deps = stages[name]["do" if "do" in stages[name] else "foreach"]["deps"]
        assert {"data/tasks/mine.jsonl", "models/mine.jsonl.gz", "models/reward_panel.jsonl.gz"} <= set(deps)
        assert "data/tasks/reward_panel.jsonl" not in deps


def test_another_configuration_leaves_no_panel_behind(run, tmp_path):
    """Whoever reads models/ whole, as a run's fingerprint does, would take it for its own."""
    config, _ = run
    layout = Layout(tmp_path)
    for name in ("mine", "other"):
        write_lines(layout.reward_panel(name), [])
    stage._remove_others(layout, [layout.reward_panel(name) for name in config.tasks.reward_panels])
    assert [path.name for path in layout.bootstrap.parent.iterdir()] == ["mine.jsonl.gz"]


def test_judges_label_every_panel(run):
    config, root = run
    if config.judge.writes == "tests":
        pytest.skip("programs are run; nobody judges them")
    data = config.model_dump(by_alias=True)
    judged = parse(
        data
        | {
            "evaluate": data["evaluate"]
            | {"labels": "judge", "judges": {"strong": {"path": "models/reward"}}}
        }
    )
    label.make_labels(judged, root)
    found = evaluate.evaluate_seed(judged.model_dump(by_alias=True), root, "base", 0)
    assert found["rm_process/mine"] == found["labels/mine"]["strong"]["rm_process"]
    assert list(label.final_panels(judged, Layout(root))) == ["reward_panel", "mine"]
    write_json(root / "evaluation" / "base.json", {"arm": "base", "seeds": {"0": found}})
    extras = read_extras(root, [])
    assert set(extras.judged) == {"reward_panel", "mine"}
    assert "on `mine`" in document.report_md(gather(judged, root))
