"""An environment that cannot label steps: judges label the reward panel, and the whole pipeline works with it."""

from __future__ import annotations

import json
from pathlib import Path

import golden_cases as golden
import pytest

from envs.alfworld.engines.fast import FastEnvironment
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.files.records import read_lines
from rlanything.planning import check
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, label, train
from rlanything.stages.bootstrap import stage

JUDGES = {"same": {"path": "models/reward", "votes": 5}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLANYTHING_ALLOW", "no_oracle")
    return golden.project(tmp_path / "project")


def configured(**changes: object) -> Config:
    """The golden configuration with real checkpoints (those of the golden start) and an environment without oracle."""
    config = golden.configuration(model__embedded=None, train__iterations=1, evaluate__every=1)
    data = config.model_dump(by_alias=True)
    env = {**data["env"], "_target_": "no_oracle.NoOracle"}
    return parse({**data, "env": env, "evaluate": {**data["evaluate"], **changes}})


def test_labels_of_an_oracle_that_is_not_there_are_refused_before_any_work(root):
    expected = r"evaluate\.labels = 'oracle': NoOracle has no oracle .* evaluate\.labels = judge"
    with pytest.raises(ConfigError, match=expected):
        stage.make_models(configured(), root)
    assert (Layout(root).bootstrap).is_file()  # what was there before


def test_embedded_models_need_a_teacher(root):
    config = configured(labels="judge", judges=JUDGES)
    embedded = golden.configuration().model.embedded
    with pytest.raises(ConfigError, match="NoOracle has no teacher"):
        stage.make_models(
            config.model_copy(update={"model": config.model.model_copy(update={"embedded": embedded})}), root
        )


def test_an_environment_that_cannot_be_closed_before_it_was_reset_is_no_obstacle(root, monkeypatch):
    def close(self: object) -> None:
        raise AttributeError("_game")

    monkeypatch.setattr(FastEnvironment, "close", close)
    config = configured(labels="judge", judges=JUDGES)
    model = config.model.model_copy(update={"embedded": golden.configuration().model.embedded})
    with pytest.raises(ConfigError, match="NoOracle has no teacher"):  # the first refusal after that
        stage.make_models(config.model_copy(update={"model": model}), root)


@pytest.mark.long
def test_the_pipeline_runs_on_the_labels_of_a_judge(root):
    config = configured(labels="judge", judges=JUDGES)
    check.check(config, root, engine=False)
    stage.make_models(config, root)
    layout = Layout(root)
    made = list(read_lines(layout.reward_panel("reward_panel"), "bootstrap"))
    assert made
    for line in made:
        steps = len(line["trajectory"]["steps"])
        assert (line["labels"], line["left_out"]) == ([None] * steps, {"no oracle": steps})
    assert set(json.loads(layout.bootstrap.read_text())) == {
        "in_domain", "out_of_domain", "panel_success", "p_plus", "p_minus", "mu",
    }  # fmt: skip

    label.make_labels(config, root)
    ((panel,),) = (found.values() for found in label.final_panels(config, layout).values())
    assert [x["trajectory"] for x in panel] == [x["trajectory"] for x in made]
    assert any(label is not None for x in panel for label in x["labels"])
    assert not any("no oracle" in x.get("left_out", {}) for x in panel)

    train.train_arm(config, root, "policy_reward")
    rows = [
        json.loads(row) for row in (layout.run("policy_reward", 0) / "metrics.jsonl").read_text().splitlines()
    ]
    for row in rows:
        assert 0 <= row["panel/rm_outcome"] <= 1
        assert not {"panel/rm_process", "panel/rm_process_plain"} & set(row)
    evaluate.evaluate_arm(config, root, "policy_reward")
    found = json.loads(layout.evaluation("policy_reward").read_text())["seeds"]["0"]
    assert found["labels"]["same"]["left_out"]["labelled"] == sum(
        total for task in found["rm_process"].values() for _, total in task.values()
    )
