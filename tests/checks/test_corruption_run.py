"""The corruption check on a tiny finished run with real models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_cases import here
from stage_cases import SMALL, contents

from rlanything.checks import finished_runs
from rlanything.checks.corruption.declare import Corruption
from rlanything.checks.corruption.measure import asked as reward_models
from rlanything.cli import main
from rlanything.config import load
from rlanything.files.hashes import digest
from rlanything.planning import compose
from rlanything.rewards.step_votes import evaluation
from rlanything.runs import imports

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
DECLARED = {"arms": ["full"], "seeds": 1}


def project(undisturbed: Path, root: Path) -> Path:
    """A project of one's own with the finished run, and a declaration."""
    root.mkdir()
    for name in ("data", "models", "runs", "experiments"):
        (root / name).symlink_to(undisturbed.parents[2] / name)
    for name in ("envs", "rlanything"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", [*SMALL, "train.seeds=1"], root)
    (root / "tiny.yaml").write_text(yaml.safe_dump(DECLARED))
    return root


def words(root: Path, *more: str) -> list[str]:
    return ["--root", str(root), "check", "corruption", str(root / "tiny.yaml"), *more]


@pytest.fixture(scope="module")
def finished(undisturbed, tmp_path_factory) -> Path:
    root = project(undisturbed, tmp_path_factory.mktemp("corruption") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished_runs, "run_all", here)
        assert main(words(root)) == 0
    return root


def test_the_numbers_follow_from_the_published_answers(finished):
    published = finished / "checks" / "tiny"
    found = json.loads((published / "corruption.json").read_text())
    assert set(found["kinds"]) == {"swapped", "observation", "action"}
    for kind, rows in found["kinds"].items():
        assert set(rows) == {"base", "full"}
        for arm, row in rows.items():
            answers = json.loads((published / "answers" / arm / "seed-0.json").read_text())["kinds"][kind]
            for count in ("noticed", "before", "later", "undisturbed"):
                hits, total = (sum(task[count][k] for task in answers.values()) for k in (0, 1))
                assert row[count]["mean"] == pytest.approx(hits / total)
            assert row["alarm"]["difference"]["mean"] == pytest.approx(
                row["noticed"]["mean"] - row["before"]["mean"]
            )
        assert rows["base"]["alarm_over_base"] is None
        assert rows["full"]["alarm_over_base"]["difference"]["mean"] == pytest.approx(
            rows["full"]["alarm"]["difference"]["mean"] - rows["base"]["alarm"]["difference"]["mean"]
        )


def test_every_reward_model_is_asked_about_the_same_damage(undisturbed, tmp_path, monkeypatch):
    asked: list[list[Any]] = []
    ask = evaluation.ask

    def seen(judge, panel, run_seed):
        asked.append([item.trajectory for item in panel])
        return ask(judge, panel, run_seed)

    monkeypatch.setattr(evaluation, "ask", seen)
    monkeypatch.setattr(finished_runs, "run_all", here)
    assert main(words(project(undisturbed, tmp_path / "project"))) == 0
    assert len(asked) == 2 * (1 + 3)  # of two reward models: undamaged, and three kinds of damage
    assert asked[:4] == asked[4:]
    assert all(damaged != asked[0] for damaged in asked[1:4])


def test_a_second_start_asks_nothing_again_and_gives_the_same_bytes(finished, monkeypatch):
    before = contents(finished / "checks" / "tiny")
    monkeypatch.setattr(
        finished_runs, "run_all", lambda _, calls, __: calls == [] or pytest.fail("asked again")
    )
    assert main(words(finished)) == 0
    assert contents(finished / "checks" / "tiny") == before


@pytest.mark.parametrize("name", ["engines/native.py", "checks/corruption/damage.py"])
def test_answers_of_other_code_are_not_kept_also_of_the_engine_that_the_configuration_names(
    finished, monkeypatch, name
):
    config, declared = load(finished / "params.yaml"), Corruption.model_validate(DECLARED)
    before = [one.key for one in reward_models(config, finished, declared)]
    edited = finished / "rlanything" / name
    monkeypatch.setattr(imports, "digest", lambda path: "edited" if path.samefile(edited) else digest(path))
    assert not {*before} & {one.key for one in reward_models(config, finished, declared)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"swapped"', '"swapt"', "expected swapped, observation, action"),
        ('"noticed": [\n', '"noticed": [\n"x",', "noticed"),
        ('"noticed": [\n', '"noticed": [\n-1,', "noticed"),
    ],
)
def test_answers_that_were_edited_are_refused_with_the_file(finished, tmp_path, capsys, old, new, expected):
    root = tmp_path / "project"
    shutil.copytree(finished, root, symlinks=True)
    file = sorted((root / ".rla" / "checks" / "corruption").glob("*.json"))[0]
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert main(words(root)) == 2
    said = capsys.readouterr().err
    assert file.name in said
    assert expected in said


def test_a_dry_run_names_the_reward_models_and_asks_nothing(undisturbed, tmp_path, capsys):
    root = project(undisturbed, tmp_path / "project")
    assert main(words(root, "--dry-run")) == 0
    assert "full, seed 0" in capsys.readouterr().out
    assert not (root / "checks").exists()
