"""A tiny ladder with real parts: run, killed and continued, read, drawn and published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from check_cases import QUICK, project
from stage_cases import contents

from rlanything.checks.ladder import command
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.ladder.results import single_vote
from rlanything.cli import main
from rlanything.files import atomic
from rlanything.files.atomic import write_text
from rlanything.loop.iteration import Loop
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import contrast
from rlanything.runs.layout import Layout
from rlanything.stages import cooling, evaluate

pytestmark = [pytest.mark.long, pytest.mark.integration]

DECLARED = {
    "overrides": QUICK,
    "seeds": 2,
    "accuracies": [1.0],
    "compare": ["policy"],
    "ceiling": {
        "overrides": [
            "bootstrap.policy.noise=0",
            "bootstrap.policy.episodes=24",
            "bootstrap.policy.steps=8",
            "bootstrap.reward.episodes=1",
            "bootstrap.reward.steps=1",
            "bootstrap.adapter.episodes=1",
            "bootstrap.adapter.steps=1",
        ]
    },
    "power": {"seeds": [4], "games": [50]},
}
ARMS = ("outcome", "oracle_100", "policy")
CONTROLS = ("base", "base_cooled", "ceiling", "expert")


def run(root: Path) -> None:
    assert main(["--root", str(root), "check", "ladder", str(root / "tiny.yaml"), "--workers", "1"]) == 0


@pytest.fixture(scope="module")
def finished(tiny_project, tmp_path_factory) -> Path:
    """A project in which the ladder ran to its end."""
    root = project(tiny_project, tmp_path_factory.mktemp("ladder") / "project", DECLARED)
    run(root)
    return root


@pytest.fixture(scope="module")
def published(finished) -> Path:
    return finished / "checks" / "tiny"


def test_it_publishes_every_arm_and_control_with_its_gain_over_the_zero(published):
    found = json.loads((published / "ladder.json").read_text())
    for panel, rows in found["panels"].items():
        assert set(rows) == {*ARMS, *CONTROLS}
        assert rows["outcome"]["gain"] is None
        for arm in (*ARMS[1:], *CONTROLS):
            mine, zero = (
                read_evaluation(published / "evaluation" / f"{a}.json", a)[panel] for a in (arm, "outcome")
            )
            assert rows[arm]["gain"]["mean"] == pytest.approx(contrast(mine, zero).difference.mean)
    assert found["panels"]["in_domain"]["oracle_100"]["judge"] == {"accuracy": 1.0, "systematic": 0.0}
    assert set(found["reward_models"]) == {"base", "policy"}
    assert [(d["seeds"], d["games"]) for d in found["power"]["in_domain"]["smallest"]] == [(2, 2), (4, 50)]


def test_a_measured_reward_model_lies_where_a_single_vote_would(published):
    found = json.loads((published / "ladder.json").read_text())["reward_models"]
    page = (published / "report.md").read_text()
    for mark in found.values():
        assert mark["single_if_independent"] == single_vote(mark["accuracy"], 3)
        assert f"| {100 * mark['accuracy']:.1f} | {100 * mark['plain']:.1f} |" in page
    assert "where the errors are independent" in page


def test_the_verdict_follows_from_the_published_numbers(published):
    found = json.loads((published / "ladder.json").read_text())
    rows = found["panels"]["in_domain"]
    gain, room, errors = found["criteria"]
    assert gain["value"] == pytest.approx(100 * rows["oracle_100"]["gain"]["mean"])
    assert room["value"] == pytest.approx(100 * (rows["ceiling"]["mean"] - rows["base_cooled"]["mean"]))
    error = found["power"]["in_domain"]["smallest"][0]["standard_error"]
    assert errors["value"] == pytest.approx(0.05 / error) if error else errors["value"] is None
    # So few games differ or not by the processor, and without a difference no error is measured.
    met = [None if c["value"] is None else c["value"] >= c["least"] for c in found["criteria"]]
    assert [c["met"] for c in found["criteria"]] == met
    assert found["fit"] is (False if False in met else None if None in met else True)
    assert found["verdict"] in (published / "report.md").read_text()


def test_the_cooled_base_is_measured_at_the_temperature_that_solves_most(published):
    found = json.loads((published / "ladder.json").read_text())["temperatures"]
    for name in ("base_cooled", "ceiling"):
        shares = found[name]["shares"]
        assert set(shares) == {"1.0", "0.5"}
        assert shares[str(found[name]["temperature"])] == max(shares.values())


def test_the_ceiling_comes_from_demonstrations_without_noise_and_the_base_is_the_projects(finished):
    space = command._declared(finished / "tiny.yaml", finished, finished / "params.yaml", 1)[1]
    assert space.inputs.place(space.config) == finished
    place = space.inputs.place(space.ceiling_config())
    assert yaml.safe_load((place / "params.yaml").read_text())["bootstrap"]["policy"]["noise"] == 0
    assert (place / "models" / "policy" / "model.safetensors").is_file()


def test_figures_are_drawn_in_both_formats(published):
    assert (published / "figures" / "ladder.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (published / "figures" / "ladder.svg").read_bytes()


def test_a_second_start_does_nothing_again_and_gives_the_same_bytes(finished, published, monkeypatch):
    before = contents(published)
    monkeypatch.setattr(Loop, "collect", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(cooling, "measure_at", lambda *_: pytest.fail("measured again"))
    monkeypatch.setattr(evaluate, "evaluate_seed", lambda *_: pytest.fail("measured again"))
    run(finished)
    assert contents(published) == before


@pytest.mark.slow
def test_a_ladder_that_is_killed_goes_on_to_the_same_bytes(
    finished, published, tiny_project, tmp_path, monkeypatch
):
    """Killed in the second seed of an arm, then while the ceiling is measured. The other arms were finished before."""
    root = project(tiny_project, tmp_path / "project", DECLARED)
    ours = command._declared(root / "tiny.yaml", root, root / "params.yaml", 1)[1]
    theirs = command._declared(finished / "tiny.yaml", finished, finished / "params.yaml", 1)[1]
    assert ours.root.name == theirs.root.name
    made = ours.inputs.place(ours.ceiling_config())
    made.parent.mkdir(parents=True)
    atomic.copy_tree(theirs.inputs.place(theirs.ceiling_config()), made)
    for arm in ARMS[1:]:
        shutil.copytree(theirs.root / "runs" / arm, ours.root / "runs" / arm)
        write_text(Layout(ours.root).evaluation(arm), Layout(theirs.root).evaluation(arm).read_text())
    words = ["--root", str(root), "check", "ladder", str(root / "tiny.yaml"), "--workers", "1"]
    collect, seen, tried = Loop.collect, [], []

    def killed(loop, state):
        seen.append(loop.arm)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return collect(loop, state)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "collect", killed)
        assert main(words) == 130
    assert not (root / "checks").exists()
    trial = cooling.try_temperature

    def killed_later(*call):
        tried.append(call[3])
        if len(tried) == 2:  # the second temperature of the ceiling; the cooled base is measured by now
            raise KeyboardInterrupt
        return trial(*call)

    with monkeypatch.context() as patch:
        patch.setattr(cooling, "try_temperature", killed_later)
        assert main(words) == 130
    assert tried == [1.0, 0.5]
    assert main(words) == 0
    assert contents(root / "checks" / "tiny") == contents(published)


def test_a_dry_run_says_what_is_left_and_runs_nothing(finished, tmp_path, capsys):
    data = {**DECLARED, "accuracies": [0.7, 1.0]}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(data))
    words = ["--root", str(finished), "check", "ladder", str(tmp_path / "other.yaml"), "--dry-run"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "train oracle_70" in said
    assert "evaluate base_cooled" in said
    assert load_ladder(finished / "tiny.yaml").accuracies == (1.0,)
    assert not (finished / "checks" / "other").exists()
