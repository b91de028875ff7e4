"""Pooling: which experiments are taken, and what is published of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from stage_cases import ROOT

from rlanything.checks import stages
from rlanything.checks.pooling import command, document
from rlanything.checks.pooling.declare import load_pooling
from rlanything.checks.pooling.experiments import read_all
from rlanything.checks.pooling.figure import _figure, shown_names
from rlanything.checks.pooling.random_effects import pooled
from rlanything.checks.pooling.results import pool
from rlanything.core.errors import ConfigError, UserError
from rlanything.report.formatting import p_text

DECLARED = ROOT / "experiments" / "check" / "pool.yaml"


def declared(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def read(tmp_path: Path, text: str, root: Path = ROOT):
    return read_all(load_pooling(declared(tmp_path, text)), root, ROOT / "params.yaml")


VOTES = "comparisons: [{arm: policy, over: outcome}]\nmetrics: [in_domain]\n"


def test_experiments_of_another_environment_are_left_out(tmp_path):
    names = [
        one.name
        for one in read(tmp_path, "comparisons: [{arm: outcome, over: base}]\nmetrics: [in_domain]\n")
    ]
    assert "checks/table1" in names
    assert "checks/written_tests" not in names


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (VOTES.replace("policy", "polcy"), r"'polcy': unknown; did you mean 'policy'"),
        (VOTES.replace("in_domain", "in_domian"), r"'in_domian': unknown; did you mean 'in_domain'"),
        (VOTES.replace("policy", "outcome"), "'outcome' cannot be compared with itself"),
        (
            VOTES.replace("policy", "outcome_steps"),
            r"outcome_steps over outcome in in_domain was measured by 1 of \d+",
        ),
        (VOTES.replace("[in_domain]", "[in_domain, in_domain]"), "'in_domain' is there twice"),
        (VOTES.replace("}]", "}, {arm: policy, over: outcome, reward_above: 0.5}]"), "is there twice"),
        (VOTES.replace("}]", ", reward_above: 1}]"), "reward_above"),
        (
            VOTES.replace("}]", ", reward_above: 0.99}]"),
            r"by 0 of \d+ .* and a first reward model above 0.99; at least two",
        ),
        (VOTES + "folders: [checks/table1]\n", "folders"),
        (VOTES + "folders: [checks/table1, checks/nothing]\n", r"checks/nothing has no params\.yaml"),
        (VOTES + "folders: [checks/table1, checks/written_tests]\n", "pool each environment on its own"),
        (VOTES + "workers: 2\n", "workers"),
    ],
)
def test_bad_declarations_are_refused_with_what_is_wrong(tmp_path, text, trouble):
    with pytest.raises(ConfigError, match=trouble):
        read(tmp_path, text)


def test_a_project_that_published_no_experiment_is_told_what_publishes_some(tmp_path):
    with pytest.raises(ConfigError, match="no experiment of this environment yet; `rlanything check ladder`"):
        read(tmp_path, VOTES, root=tmp_path)


def test_experiments_with_the_same_tasks_are_refused(tmp_path):
    """The second is the first under another name: it would count twice."""
    for name in ("table1", "again"):
        for part in ("params.yaml", "evaluation"):
            source, target = ROOT / "checks" / "table1" / part, tmp_path / "checks" / name / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
    with pytest.raises(ConfigError, match=r"checks/again and checks/table1 both have seed = 2"):
        read(tmp_path, VOTES, root=tmp_path)


def test_a_configuration_that_cannot_be_read_is_named_if_its_folder_is_an_experiment(tmp_path):
    for name in ("table1", "study"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    broken = tmp_path / "checks" / "other" / "params.yaml"
    broken.parent.mkdir()
    broken.write_text("seed: 1\n")
    assert [one.name for one in read(tmp_path, VOTES, root=tmp_path)] == ["checks/study", "checks/table1"]
    (broken.parent / "evaluation").mkdir()
    with pytest.raises(ConfigError, match=re.escape(f"{broken}: the configuration is not valid")):
        read(tmp_path, VOTES, root=tmp_path)


@pytest.mark.parametrize("left", [".tmp-long", ".tmp-study"])
def test_what_a_killed_check_left_of_its_results_is_no_experiment(tmp_path, left):
    for name in ("table1", "study"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    shutil.copytree(ROOT / "checks" / left.removeprefix(".tmp-"), tmp_path / "checks" / left)
    assert [one.name for one in read(tmp_path, VOTES, root=tmp_path)] == ["checks/study", "checks/table1"]


def test_an_experiment_that_a_killed_check_set_aside_is_missed(tmp_path):
    for name in ("table1", "study"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    place = tmp_path / "checks" / "study"
    aside = place.rename(place.with_name(".old-study"))
    (place.parent / ".old-pool").mkdir()
    with pytest.raises(
        ConfigError, match=rf"{place}: it is missing, .* are in {aside}: run that check again"
    ):
        read(tmp_path, VOTES, root=tmp_path)
    aside.rename(place)
    assert len(read(tmp_path, VOTES, root=tmp_path)) == 2


def test_experiments_can_be_told_apart_in_the_figure():
    assert shown_names([".", "checks/a", "old/b", "new/b", "checks/$c"]) == [
        ".", "a", "old/b", "new/b", r"\$c",
    ]  # fmt: skip


def test_a_damaged_evaluation_stops_it_and_leaves_what_was_published(tmp_path):
    for name in ("table1", "study"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    file = declared(tmp_path, VOTES)
    command.run_pooling(file, tmp_path, ROOT / "params.yaml")
    before = (tmp_path / "checks" / "mine" / "pool.json").read_bytes()
    (tmp_path / "checks" / "study" / "evaluation" / "policy.json").write_text("{")
    with pytest.raises(
        UserError, match=r"checks/study/evaluation/policy\.json: not valid JSON .*take it from git"
    ):
        command.run_pooling(file, tmp_path, ROOT / "params.yaml")
    assert (tmp_path / "checks" / "mine" / "pool.json").read_bytes() == before


def test_a_declaration_that_changes_while_the_check_runs_is_not_published(tmp_path, monkeypatch):
    """Otherwise the file beside the results would declare something else than they are."""
    for name in ("table1", "study"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    file = declared(tmp_path, VOTES)

    def edited(*words: object) -> object:
        file.write_text(VOTES.replace("in_domain", "out_of_domain"))
        return pool(*words)

    monkeypatch.setattr(command.results, "pool", edited)
    with pytest.raises(ConfigError, match=r"mine\.yaml: the declaration was changed while the check ran"):
        command.run_pooling(file, tmp_path, ROOT / "params.yaml")
    assert not (tmp_path / "checks" / "mine").exists()
    file.write_text(VOTES)
    monkeypatch.undo()
    command.run_pooling(file, tmp_path, ROOT / "params.yaml")
    assert (tmp_path / "checks" / "mine" / "pool.yaml").read_text() == VOTES


def test_a_count_is_not_called_points(tmp_path):
    text = "comparisons: [{arm: full, over: outcome}]\nmetrics: [accepted_tasks]\n"
    declaration = load_pooling(declared(tmp_path, text))
    found = pool(declaration, read(tmp_path, text))
    assert "Points, and tasks for counts, with 95 % intervals." in document.to_markdown(found, "mine")
    (figure,) = (_figure([row]) for row in found.rows)
    assert figure.get_supxlabel() == "full over outcome (points; counts: tasks)"


def test_p_is_corrected_over_all_rows():
    declaration = load_pooling(DECLARED)
    found = pool(declaration, read_all(declaration, ROOT, ROOT / "params.yaml"))
    alone = [
        pooled([d.contrast.difference.mean for d in row.differences], [d.error**2 for d in row.differences]).p
        for row in found.rows
    ]
    assert [row.pooled.p for row in found.rows] == pytest.approx(
        [max(min(1, sum(other >= p for other in alone) * p) for p in alone if p <= mine) for mine in alone]
    )


def test_experiments_whose_first_reward_model_is_weaker_than_declared_are_shown_and_not_pooled(tmp_path):
    """The first reward models of weak_reward and weak_reward_spread are right on 65 % of the steps, others on 85."""
    text = VOTES.replace("}]", ", reward_above: 0.7}]")
    everything, strong = (
        pool(load_pooling(declared(tmp_path, each)), read(tmp_path, each)) for each in (VOTES, text)
    )
    weak = {"checks/weak_reward", "checks/weak_reward_spread"}
    assert {one.experiment for one in strong.rows[0].others} >= weak
    assert not {one.experiment for one in strong.rows[0].differences} & weak
    together = {one.experiment for one in (*strong.rows[0].differences, *strong.rows[0].others)}
    assert together == {one.experiment for one in everything.rows[0].differences}
    page = document.to_markdown(strong, "pool")
    assert "right on more than 70 % of the steps (balanced)" in page
    assert "`checks/weak_reward`" in page.split("Not pooled:")[1]
    assert "Not pooled" not in document.to_markdown(everything, "pool")


def test_an_experiment_in_which_nothing_varies_is_named_as_left_out(tmp_path):
    for name in ("table1", "study", "long"):
        shutil.copytree(ROOT / "checks" / name, tmp_path / "checks" / name)
    evaluation = tmp_path / "checks" / "long" / "evaluation"
    alike = json.loads((evaluation / "outcome.json").read_text()) | {"arm": "policy"}
    (evaluation / "policy.json").write_text(json.dumps(alike))
    found = pool(load_pooling(declared(tmp_path, VOTES)), read(tmp_path, VOTES, root=tmp_path))
    assert [one.experiment for one in found.rows[0].differences] == ["checks/study", "checks/table1"]
    page = document.to_markdown(found, "mine")
    assert "or none that both arms have): `checks/long` (in-domain)." in page


def test_a_dry_run_names_what_is_not_pooled(capsys):
    command.print_pooling(DECLARED, ROOT, ROOT / "params.yaml")
    said = capsys.readouterr().out
    assert (
        "policy over outcome: in_domain, out_of_domain (reward_above 0.5; not pooled: checks/below_chance, "
        "checks/paper_start, checks/paper_start_lambda)" in said
    )
    assert "  policy_reward over policy: in_domain, out_of_domain\n" in said


def shape(value: Any) -> Any:
    """A value of JSON with 0 in the place of every fraction."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return 0 if isinstance(value, float) else value


def leaves(value: Any) -> list[float]:
    """The fractions in a value of JSON, in the order of keys and lists."""
    if isinstance(value, dict | list):
        parts = [value[key] for key in sorted(value)] if isinstance(value, dict) else value
        return [leaf for part in parts for leaf in leaves(part)]
    return [value] if isinstance(value, float) else []


def test_the_published_page_is_what_the_published_checks_say():
    """A check that is added, or recorded again, changes it: `rlanything check pool`."""
    declaration = load_pooling(DECLARED)
    found = pool(declaration, read_all(declaration, ROOT, ROOT / "params.yaml"))
    published = ROOT / "checks" / "pool"
    assert document.to_markdown(found, "pool") == (published / "report.md").read_text()
    stored = json.loads((published / "pool.json").read_text())
    computed = json.loads(json.dumps(document.to_json(found)))
    assert shape(stored["comparisons"]) == shape(computed["comparisons"])
    numbers = leaves(computed["comparisons"])
    assert len(numbers) > 100
    # The last digits of a sum are another processor's.
    assert leaves(stored["comparisons"]) == pytest.approx(numbers, rel=1e-9, abs=1e-12)
    assert (published / "pool.yaml").read_bytes() == DECLARED.read_bytes()
    figures = re.findall(r"\((figures/[^)]+)\)", (published / "report.md").read_text())
    assert len(figures) == len(declaration.comparisons)
    assert all((published / figure).is_file() for figure in figures)


def test_its_stage_depends_on_what_it_reads():
    found = stages.dependencies(Path("experiments/check/pool.yaml"), ROOT)
    assert {"params.yaml", "experiments/check/pool.yaml", "checks/table1/evaluation"} <= set(found)
    assert not {"data/tasks", "models"} & set(found)


def test_its_stage_may_read_a_folder_outside_of_the_project(tmp_path):
    shutil.copytree(ROOT / "checks" / "study", tmp_path / "study")
    file = declared(tmp_path, f"{VOTES}folders: [checks/table1, {tmp_path / 'study'}]\n")
    found = stages.dependencies(file, ROOT)
    assert {"checks/table1/evaluation", f"{tmp_path}/study/evaluation"} <= set(found)


@pytest.mark.parametrize("page", ["README.md", "docs/check_results.md"])
def test_the_table_of_a_page_has_the_published_numbers(page):
    text = (ROOT / page).read_text()
    table = re.findall(
        r"^\| [^|]+ \| `(\w+)`, `(\w+)` \| (\d+) and (\d+) \| ([^|]+) \| ([^|]+) \|$", text, re.M
    )
    stored = json.loads((ROOT / "checks" / "pool" / "pool.json").read_text())["comparisons"]
    pairs = [stored[place : place + 2] for place in range(0, len(stored), 2)]
    expected = [
        (row["arm"], row["over"], *(str(len(r["differences"])) for r in (row, other)), cell(row), cell(other))
        for row, other in pairs
    ]
    assert table == expected
    votes = next(row for row in stored if (row["arm"], row["over"]) == ("policy", "outcome"))
    if page == "README.md":
        left_out = list(map(arms, ("below_chance", "paper_start", "paper_start_lambda")))
        right = [100 * found["policy"]["rm_process"]["mean"] for found in left_out]
        cost = [
            100 * (found["outcome"]["in_domain"]["mean"] - found["policy"]["in_domain"]["mean"])
            for found in left_out
        ]
        assert (
            f"Votes on steps of games, right more often than wrong, add {100 * votes['pooled']['mean']:.1f}; those "
            f"right on {min(right):.0f} to {max(right):.0f} % of the steps cost {min(cost):.0f} to {max(cost):.0f}."
        ) in text
        rights, costs = (", ".join(f"{x:.1f}" for x in of).rsplit(", ", 1) for of in (right, cost))
        assert f"are right on {' and '.join(rights)} % of the steps (balanced)" in text
        assert f"`policy` is {' and '.join(costs)} below `outcome` there" in text


def arms(name: str) -> dict:
    """What a published study measured: arm -> metric -> mean and interval."""
    return json.loads((ROOT / "checks" / name / "study.json").read_text())["arms"]


def cell(row: dict) -> str:
    mean, low, high = (100 * row["pooled"][key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}], p {p_text(row['pooled']['p'])}"
