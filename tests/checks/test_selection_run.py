"""A selection on a tiny finished run with real models and the real sandbox: measured, killed, resumed, refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from stage_cases import SMALL, SMALL_CODING, contents, small, small_coding

from rlanything.checks import finished_runs
from rlanything.checks.selection import command, measure
from rlanything.checks.selection.declare import Selection, load_selection
from rlanything.checks.selection.methods import METHODS, Trials, chosen
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.core.types import Status, Step, Trajectory
from rlanything.files.records import read_lines
from rlanything.planning import check, compose
from rlanything.runs import build

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
DECLARED = {"programs": 3, "tests": 4, "arms": ["full"], "seeds": 1}


def project(coding_project: Path, root: Path) -> Path:
    """A project of one's own with the finished run, and a selection's file."""
    root.mkdir()
    for name in ("data", "models", "runs", "experiments"):
        (root / name).symlink_to(coding_project / name)
    for name in ("envs", "rlanything"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", [*SMALL_CODING, "train.seeds=1"], root)
    (root / "tiny.yaml").write_text(yaml.safe_dump(DECLARED))
    return root


def words(root: Path, *more: str) -> list[str]:
    return ["--root", str(root), "check", "selection", str(root / "tiny.yaml"), *more]


@pytest.fixture(scope="module")
def finished(coding_project, tmp_path_factory) -> Path:
    """Measured in this process. The test that continues a killed start has workers and must end with the same bytes."""
    root = project(coding_project, tmp_path_factory.mktemp("selection") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished_runs, "run_all", here)
        assert main(words(root)) == 0
    return root


def here(function: Callable[..., Any], calls: Sequence[Sequence[Any]], _workers: int) -> list[Any]:
    return [function(*call) for call in calls]


@pytest.fixture(scope="module")
def published(finished) -> Path:
    return finished / "checks" / "tiny"


def trials(published: Path, arm: str) -> list[Trials]:
    lines = read_lines(published / "trials" / arm / "seed-0.jsonl.gz", "")
    return [Trials.from_json(line["trials"]) for line in lines]


def test_it_publishes_what_every_program_did_on_every_test(published):
    for arm in ("base", "full"):
        for found in trials(published, arm):
            assert [len(row) for row in found.passed] == [4] * 3
            assert [len(row) for row in found.written] == [4] * 3
            for k, readable in enumerate(found.readable):
                assert (found.inputs[k] is None) is not readable
                groups = [row[k] for row in found.written]
                assert all(g is None or (g <= i and groups[g] == g) for i, g in enumerate(groups))
                for i, group in enumerate(groups):  # equal outputs pass the same tests
                    assert group is None or found.passed[i][k] == found.passed[group][k]
                    assert group is not None or not found.passed[i][k]


def test_the_numbers_follow_from_the_published_trials(published):
    found = json.loads((published / "selection.json").read_text())
    assert found["problems"] == 2
    for arm in ("base", "full"):
        rights = [t.right for t in trials(published, arm)]
        rows = found["pairs"][arm]
        assert rows["single"]["mean"] == pytest.approx(sum(sum(r) / 3 for r in rights) / 2)
        assert rows["oracle"]["mean"] == pytest.approx(sum(any(r) for r in rights) / 2)
        for name, method in METHODS.items():
            picked = [t.right[chosen(method, t)] for t in trials(published, arm)]
            assert rows[name]["mean"] == pytest.approx(sum(picked) / 2)
            gain = rows[name]["mean"] - rows["single"]["mean"]
            assert rows[name]["over_single"]["mean"] == pytest.approx(gain)
            base = found["pairs"]["base"][name]["mean"]
            assert arm == "base" or rows[name]["over_base"]["mean"] == pytest.approx(
                rows[name]["mean"] - base
            )
        assert found["counts"][arm]["programs"] == 6
    page = (published / "report.md").read_text()
    assert "The base's pair" in page
    assert "The pair of `full`" in page
    assert (published / "figures" / "selection.png").read_bytes().startswith(b"\x89PNG")


def test_killed_between_two_pairs_it_goes_on_to_the_same_bytes_with_other_workers(
    coding_project, published, tmp_path, monkeypatch
):
    root = project(coding_project, tmp_path / "project")

    def killed(function, calls, workers):
        assert len(calls) == 2
        here(function, calls[:1], workers)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finished_runs, "run_all", killed)
        assert main(words(root)) == 130
    assert not (root / "checks").exists()
    (kept,) = (root / measure.FOLDER).glob("*.gz")
    before = kept.stat().st_mtime_ns
    assert main(words(root, "--workers", "2")) == 0
    assert kept.stat().st_mtime_ns == before
    assert contents(root / "checks" / "tiny") == contents(published)


def test_a_second_start_measures_nothing_and_other_methods_need_no_sample(finished, published, monkeypatch):
    before = contents(published)
    monkeypatch.setattr(
        finished_runs, "run_all", lambda _, calls, __: calls == [] or pytest.fail("measured again")
    )
    assert main(words(finished)) == 0
    assert contents(published) == before
    other = finished / "other.yaml"
    other.write_text(yaml.safe_dump({**DECLARED, "methods": ["s_star"]}))
    assert main(["--root", str(finished), "check", "selection", str(other)]) == 0
    rows = json.loads((finished / "checks" / "other" / "selection.json").read_text())["pairs"]["full"]
    assert set(rows) == {"single", "s_star", "oracle"}


def test_a_dry_run_says_what_is_left(finished, capsys):
    assert main(words(finished, "--dry-run")) == 0
    assert "full, seed 0: measured" in capsys.readouterr().out


def test_a_changed_model_is_measured_anew(coding_project, tmp_path):
    root = project(coding_project, tmp_path / "project")
    (root / "runs").unlink()
    shutil.copytree(coding_project / "runs", root / "runs")
    before = _keys(root)
    (root / "runs/full/seed-0/checkpoints/reward/more.txt").write_text("x")
    after = _keys(root)
    assert before["base"] == after["base"]
    assert before["full"] != after["full"]


def _keys(root: Path) -> dict[str, str]:
    config = check.read(root / "params.yaml", root)
    return {p.arm: p.key for p in measure.pairs(config, root, load_selection(root / "tiny.yaml"))}


def test_a_missing_run_is_refused_before_any_work(coding_project, tmp_path, capsys):
    root = project(coding_project, tmp_path / "project")
    (root / "tiny.yaml").write_text(yaml.safe_dump({**DECLARED, "arms": ["policy"]}))
    assert main(words(root)) == 2
    assert "train first with `rlanything train --arm policy`" in capsys.readouterr().err
    assert not (root / measure.FOLDER).exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metods": ["mpsc"]}, "metods: unknown; did you mean 'methods'?"),
        ({"methods": ["mpcs"]}, "'mpcs': unknown; did you mean 'mpsc'?"),
        ({"methods": ["mpsc", "mpsc"]}, "'mpsc' is there twice"),
        ({"methods": []}, "methods"),
        ({"programs": 1}, "programs = 1"),
        ({"tests": 0}, "tests = 0"),
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"arms": ["fulll"]}, "arm 'fulll': unknown; did you mean 'full'?"),
        ({"arms": ["base"]}, "'base' is a control and no arm"),
        ({"panel": "indomain"}, "panel = 'indomain': unknown; did you mean 'in_domain'?"),
        ({"seeds": 2}, "seeds = 2: train.seeds = 1 were trained"),
    ],
)
def test_a_bad_declaration_is_refused_with_the_key_and_what_is_allowed(tmp_path, capsys, changes, expected):
    for name in ("experiments", "envs", "rlanything"):
        (tmp_path / name).symlink_to(ROOT / name)
    compose.write(tmp_path / "params.yaml", [*SMALL_CODING, "train.seeds=1"], tmp_path)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**DECLARED, **changes}))
    assert main(words(tmp_path)) == 2
    assert expected in capsys.readouterr().err


def test_a_project_whose_reward_model_votes_is_refused(tmp_path, capsys):
    for name in ("experiments", "envs", "rlanything"):
        (tmp_path / name).symlink_to(ROOT / name)
    compose.write(tmp_path / "params.yaml", SMALL, tmp_path)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(DECLARED))
    assert main(words(tmp_path)) == 2
    assert (
        "judge.writes = 'votes': a selection needs a reward model that writes tests"
        in capsys.readouterr().err
    )


def test_every_key_of_a_selection_stands_in_the_projects_own_with_its_explanation():
    own = ROOT / command.SELECTION
    assert set(yaml.safe_load(own.read_text())) == set(Selection.model_fields)
    assert load_selection(own) == Selection()


def test_a_file_that_is_not_there_is_refused(tmp_path, capsys):
    compose.write(tmp_path / "params.yaml", SMALL_CODING, ROOT)
    params = ["--params", str(tmp_path / "params.yaml")]
    assert main(["--root", str(ROOT), *params, "check", "selection", str(tmp_path / "none.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_an_arm_that_the_oracle_judged_has_no_pair():
    judge = "arms.told.judge={source: oracle, accuracy: 1.0, systematic: 0.0}"
    config = small_coding("+arm@arms.told=policy", judge)
    assert "told" not in Selection().trained(config)
    assert "full" in Selection().trained(config)
    with pytest.raises(ConfigError, match="the oracle judged 'told'"):
        Selection(arms=("full", "told")).trained(config)


def test_a_family_that_compares_no_outputs_is_refused():
    with pytest.raises(ConfigError, match="AlfworldFamily does not say which programs write the same"):
        measure.comparing(build.family(small()))


def test_a_crashed_episode_is_left_out_and_one_without_an_answer_is_an_empty_program():
    def played(slot: int, status: Status, *actions: str) -> Trajectory:
        steps = tuple(Step((), (), (), (), action, True, "") for action in actions)
        return Trajectory("t", slot, 0, 0, "", steps, -1, status)

    found = [
        played(1, Status.OK, "a"),
        played(0, Status.OK, "b"),
        played(1, Status.ENV_ERROR),
        played(1, Status.TIMEOUT),
        played(1, Status.TRUNCATED),
    ]
    assert measure.programs_of(found, 1) == ("a", "")
