"""The page of a published study, drawn again from its own folder, with the figures of the paper's Fig. 6."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rlanything.checks.declaration import copy_evaluations, published
from rlanything.checks.study import command, figure
from rlanything.checks.study.document import to_json
from rlanything.checks.study.published import read_published
from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.report.results.evaluations import ReportError

RECORDED = Path(__file__).parents[3] / "checks"


@pytest.fixture
def copy(tmp_path) -> Path:
    """A project with the recorded study of all arms."""
    shutil.copytree(RECORDED / "study", tmp_path / "checks" / "study")
    return tmp_path / "checks" / "study"


def draw(folder: Path) -> int:
    root = folder.parents[1]
    return main(["--root", str(root), "check", "study", f"experiments/check/{folder.name}.yaml", "--page"])


@pytest.mark.parametrize("name", ["long", "study", "table1", "transfer"])
def test_the_recorded_page_is_the_one_that_its_own_folder_gives(name, tmp_path):
    folder = tmp_path / "checks" / name
    shutil.copytree(RECORDED / name, folder)
    shutil.rmtree(folder / "figures")
    assert draw(folder) == 0
    files = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
    assert files == {p.relative_to(RECORDED / name) for p in (RECORDED / name).rglob("*") if p.is_file()}
    for path in files:
        if path.suffix not in (".png", ".svg"):  # another version of matplotlib may draw other bytes
            assert (folder / path).read_bytes() == (RECORDED / name / path).read_bytes(), path


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("arms", "policy", "in_domain", "mean"), 0.123),
        (("hypotheses", "votes_alone", "difference", "mean"), -0.777),
        (("hypotheses", "votes_alone", "difference", "p"), 0.001),
        (("hypotheses", "votes_alone", "verdict"), "holds"),
        (("hypotheses", "votes_alone", "difference"), None),
        (("arms", "policy"), {}),
        (("registration", "at"), "2020-01-01T00:00:00+00:00"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_results_that_do_not_follow_from_the_folder_are_refused_and_nothing_is_drawn(
    copy, place, value, capsys
):
    path, page = copy / "study.json", (copy / "report.md").read_bytes()
    results = json.loads(path.read_text())
    section = results
    for key in place[:-1]:
        section = section[key]
    section[place[-1]] = value
    path.write_text(json.dumps(results))
    assert draw(copy) == 2
    said = capsys.readouterr().err
    if place[0] == "registration":
        assert f"published under the registration of {value}, and registration.json is another one" in said
    else:
        shown = "nothing" if value == {} else value
        assert f"{'.'.join(place)}" in said
        assert f" = {shown}, and from evaluation/ follows " in said
    assert (copy / "report.md").read_bytes() == page


def test_an_evaluation_that_the_results_are_not_of_is_refused(copy, capsys):
    shutil.copyfile(copy / "evaluation" / "outcome.json", copy / "evaluation" / "policy.json")
    path = copy / "evaluation" / "policy.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "arm": "policy"}))
    assert draw(copy) == 2
    assert "study.json: hypotheses." in capsys.readouterr().err


def test_a_last_digit_that_another_processor_rounds_otherwise_is_the_same_result(copy):
    path = copy / "study.json"
    results = json.loads(path.read_text())
    results["arms"]["policy"]["in_domain"]["mean"] *= 1 + 1e-13
    path.write_text(json.dumps(results))
    assert draw(copy) == 0


def test_episodes_that_crashed_in_a_measurement_are_said(copy):
    evaluation = copy / "evaluation" / "policy.json"
    results = json.loads(evaluation.read_text())
    for seed in ("0", "1"):
        results["seeds"][seed]["crashed"] = {"out_of_domain": 2}
    evaluation.write_text(json.dumps(results))
    assert draw(copy) == 0
    said = "`policy`: 4 episodes of `out_of_domain` crashed or timed out in the measurement and were left out"
    assert (copy / "report.md").read_text().count(said) == 1
    assert to_json(read_published(copy))["crashed"] == {"policy": {"out_of_domain": 4}}


def test_the_three_arms_of_the_papers_comparison_are_drawn_where_they_were_trained(copy):
    assert draw(copy) == 0
    page = (copy / "report.md").read_text()
    section = page.partition("## Outcomes, votes, or both")[2].partition("\n## ")[0]
    assert "(figures/signals.svg)" in section
    assert [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| `")] == [
        "`outcome`",
        "`policy`",
        "`step_only`",
    ]
    assert b"<svg" in (copy / "figures" / "signals.svg").read_bytes()
    assert read_published(RECORDED / "table1").signals == ()
    assert "figures/signals" not in (RECORDED / "table1" / "report.md").read_text()


def test_final_points_stand_at_the_means_with_their_intervals(copy):
    found = read_published(copy)
    axis = figure._signals(found).axes[0]
    lines = axis.get_lines()
    for place, arm in enumerate(found.signals):
        value = found.values[arm]["in_domain"]
        interval, point = lines[2 * place : 2 * place + 2]
        assert list(interval.get_ydata()) == pytest.approx([100 * value.low, 100 * value.high])
        assert list(point.get_ydata()) == pytest.approx([100 * value.mean])


def test_success_within_so_many_steps_is_that_of_the_evaluation(copy):
    found = read_published(copy)
    stored = json.loads((copy / "evaluation" / "policy.json").read_text())["seeds"]
    assert found.within["policy"]["in_domain"] == [
        seed["success_within"]["in_domain"] for seed in stored.values()
    ]
    names = [name for name, _ in figure.draw(found)]
    assert {"steps.png", "steps.svg"} <= set(names)


def test_without_results_nothing_is_drawn(tmp_path, capsys):
    assert draw(tmp_path / "checks" / "study") == 2
    assert "run the study first" in capsys.readouterr().err
    assert not (tmp_path / "checks").exists()


def test_the_page_is_of_the_results_that_lie_there_when_it_is_drawn(copy, monkeypatch):
    """Another process may publish them again after they were first read."""

    @contextmanager
    def held(name: str, root: Path) -> Iterator[Path]:
        path = copy / "evaluation" / "policy.json"
        results = json.loads(path.read_text())
        results["seeds"]["0"]["crashed"] = {"out_of_domain": 2}
        path.write_text(json.dumps(results))
        with published(name, root) as folder:
            yield folder

    monkeypatch.setattr(command, "published", held)
    assert draw(copy) == 0
    assert "`policy`: 2 episodes of `out_of_domain` crashed" in (copy / "report.md").read_text()


def test_results_of_other_hypotheses_are_refused(copy):
    path = copy / "study.json"
    results = json.loads(path.read_text())
    del results["hypotheses"]["votes_alone"]
    path.write_text(json.dumps(results))
    with pytest.raises(ConfigError, match=r"study\.json: hypotheses .*take both from git"):
        read_published(copy)


@pytest.mark.parametrize("changed", ["study.yaml", "study.json"])
def test_a_declaration_that_is_not_that_of_the_results_is_refused(copy, changed):
    path = copy / changed
    path.write_text(
        path.read_text().replace("Votes on steps add to outcomes (Table 1).", "Votes do wonders.")
    )
    with pytest.raises(ConfigError, match=r"study\.yaml declares another study"):
        read_published(copy)


@pytest.mark.parametrize("other", ["long", "written_tests"])
def test_the_configuration_of_another_study_is_refused(copy, other):
    """One with other numbers of the same setting, and one whose reward model has other metrics."""
    shutil.copyfile(RECORDED / other / "params.yaml", copy / "params.yaml")
    with pytest.raises(
        ConfigError, match=r"params\.yaml: not the configuration that was registered; differs in"
    ):
        read_published(copy)


def test_a_damaged_result_is_named_with_its_folder(copy):
    path = copy / "evaluation" / "policy.json"
    path.write_text('{"seeds": {"0": {"success_within": {"in_domain": [2]}}}}')
    with pytest.raises(
        ReportError, match=r"checks/study/evaluation/policy\.json: seeds.*; take it from git$"
    ):
        read_published(copy)


@pytest.mark.parametrize("other", ["--register", "--page"])
def test_a_dry_run_writes_nothing_whatever_else_is_asked_for(copy, other, capsys):
    words = ["--root", str(copy.parents[1]), "check", "study", "experiments/check/study.yaml"]
    with pytest.raises(SystemExit):
        main([*words, "--dry-run", other])
    assert f"{other}: not allowed with argument --dry-run" in capsys.readouterr().err


def test_the_time_of_a_registration_is_the_one_in_git(copy, capsys):
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "1"],
    ):
        subprocess.run(["git", "-C", str(copy.parents[1]), *words], check=True)
    assert draw(copy) == 0
    for name in ("registration.json", "study.json"):
        results = json.loads((copy / name).read_text())
        results.get("registration", results)["at"] = "2020-01-01T00:00:00+00:00"
        (copy / name).write_text(json.dumps(results))
    assert draw(copy) == 2
    assert "registration.json: it is no registration that git has; differs in at" in capsys.readouterr().err


def test_what_a_killed_process_left_is_not_published(copy, tmp_path):
    left = ".policy.json.4711-0a1b2c3d.tmp"
    (copy / "evaluation" / left).write_text("{")
    (copy / ".study.json.4711-0a1b2c3d.tmp").write_text("{")
    copy_evaluations(copy, tmp_path / "published")
    assert {path.name for path in (tmp_path / "published" / "evaluation").iterdir()} == {
        path.name for path in (RECORDED / "study" / "evaluation").iterdir()
    }
    assert draw(copy) == 0
    assert not [path for path in copy.rglob(".*") if path.is_file()]


def test_git_and_dvc_ignore_what_a_killed_process_left():
    """So it is neither committed nor hashed with the results beside it."""
    places = ("report/.report.md.4711-0a1b2c3d.tmp", ".params.yaml.4711-0a1b2c3d.tmp", "checks/.tmp-study/x")
    root = RECORDED.parent
    words = ["git", "-C", str(root), "check-ignore", *places]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == [*places]
    assert ".*" in (root / ".dvcignore").read_text().split()
