"""The report of the coding setting: known hits, known numbers; the paper's lower half beside them; nothing of games."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from coding_report_cases import SOLVED, coding_config, coding_evaluation, coding_project
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import config, evaluation, steady, write_evaluation

from rlanything.config import Config
from rlanything.report import document, figures
from rlanything.report.caveats import caveats
from rlanything.report.contents import CONTENTS, contents_of
from rlanything.report.drawn.arms import GAINS
from rlanything.report.report_data import gather
from rlanything.report.results.evaluations import ReportError
from rlanything.report.results.metrics import DECLARED, metrics_for
from rlanything.report.results.paper import ORDER
from rlanything.report.sections.hacking import hacking
from rlanything.stages import report

SHOWN = (contents_of(config()), contents_of(coding_config()))
"""What the reports of both settings show."""
MEASURED = ["in_domain", "out_of_domain", "ut", "detect", "accepted_tasks"]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A coding project with its report."""
    root = coding_project(tmp_path_factory.mktemp("coding"))
    report.write_report(coding_config(), root)
    return root / "report"


@pytest.fixture(scope="module")
def page(made) -> str:
    return (made / "report.md").read_text()


def test_known_hits_give_known_numbers(made):
    found = json.loads((made / "summary.json").read_text())
    assert list(found) == list(SOLVED)
    assert all(list(row) == MEASURED for row in found.values())
    means = {arm: [row[m]["mean"] for m in MEASURED] for arm, row in found.items()}
    assert means == {
        "base": [0.25, 0.0, 0.25, 0.125, 0],
        "outcome": [0.25, 0.0, 0.25, 0.125, 0],
        "policy": [0.5, 0.25, 0.25, 0.125, 0],
        "policy_reward": [0.5, 0.25, 0.625, 0.3125, 0],
        "full": [0.75, 0.5, 0.75, 0.375, 40],
    }
    headline = json.loads((made / "headline.json").read_text())
    assert headline["policy"] == {"in_domain": 0.5, "out_of_domain": 0.25}
    assert headline["full"] == {"in_domain": 0.75, "out_of_domain": 0.5, "ut": 0.75, "accepted_tasks": 40.0}
    assert found["full"]["ut"]["vs_base"] == {"mean": 0.5, "low": None, "high": None, "p": None}
    assert found["full"]["detect"]["vs_base"] == {"mean": 0.25, "low": None, "high": None, "p": None}


@pytest.mark.parametrize(
    "row",
    [
        "| `full` | **75.0** | 43.2 | **50.0** | **75.0** | 78.9 | **37.5** | 48.5 | 40.0 |",
        "| `policy_reward` | 62.5 | +37.5 | – | 73.3 | +45.5 |",
        "| Code in-domain `base` | 25.0 | 31.3 | 26.9 | 21.2 |",
        "| Code in-domain `policy` | 50.0 (+25.0) | 38.8 (+7.5) | 31.4 (+4.5) | 25.8 (+4.6) |",
        "| Code in-domain `policy_reward` | 50.0 (+25.0) | 40.0 (+8.7) | 31.7 (+4.8) | 26.5 (+5.3) |",
        "| Code in-domain `full` | 75.0 (+50.0) | 43.2 (+11.9) | 34.1 (+7.2) | 27.3 (+6.1) |",
        "| UT `policy` | 25.0 (+0.0) | 27.8 (+0.0) | 35.7 (+0.0) | 43.8 (+0.0) |",
        "| UT `full` | 75.0 (+50.0) | 78.9 (+51.1) | 81.6 (+45.9) | 87.1 (+43.3) |",
        "| Detect `policy_reward` | 31.2 (+18.8) | 37.9 (+18.3) | 49.0 (+20.9) | 47.2 (+11.5) |",
        "| Detect `full` | 37.5 (+25.0) | 48.5 (+28.9) | 55.2 (+27.1) | 55.5 (+19.8) |",
        "- `policy` is above `base` out-of-domain, but not clearly: difference +25.0, p –.",
        "- `full` is above `policy_reward` in-domain, but not clearly: difference +25.0, p – (paper: +3.2).",
        "- Code in-domain: not the paper's order: `base` 25.0 < `policy` 50.0 = `policy_reward` 50.0 < `full` 75.0. "
        "Steps that rise clearly: 0 of 3.",
        "- UT: the paper's order: `base` 25.0 = `policy` 25.0 < `policy_reward` 62.5 < `full` 75.0. Steps that rise "
        "clearly: 0 of 2.",
        "| `full` against `base`, in-domain | +50.0 | – | – |",
        "| `full` | 61.0 (12) / 61.0 | 29.0 (12) / 29.0 | 75.0 (12) / 75.0 | 37.5 (12) / 37.5 |",
        "No warnings.",
    ],
)
def test_the_document_says_it(page, row):
    assert row in page.splitlines()


def test_nothing_is_said_of_games(page):
    said = steady(page).lower()
    strangers = r"\b(alfworld|games?|votes?|verdicts?|oracle|mu|episodes?|step accuracy|on steps)\b"
    assert re.findall(strangers, said) == []
    assert "version 1's" in said
    assert "+12.1" in said


def test_every_figure_that_is_named_is_there_and_none_is_left_over(made, page):
    named = set(re.findall(r"\(figures/(\w+)\.png\)", page))
    assert named == {*(drawing.name for drawing in contents_of(coding_config()).drawings), GAINS}
    assert {p.name for p in (made / "figures").iterdir()} == {
        f"{n}.{kind}" for n in named for kind in figures.KINDS
    }


def test_the_curves_for_programs_have_the_tests(made):
    rows = list(csv.DictReader((made / "plots" / "learning.csv").read_text().splitlines()))
    last = {(r["arm"], r["metric"]): float(r["value"]) for r in rows}  # rows are in the order of iterations
    assert last["full", "ut"] == 0.75
    assert last["full", "detect"] == 0.375
    assert last["policy", "train_ut"] == pytest.approx(0.23)
    assert last["full", "invalid_tests"] == 0.05
    assert ("full", "mu") not in last


def test_an_evaluation_of_the_other_setting_is_refused(tmp_path):
    write_evaluation(tmp_path, evaluation("base"))
    with pytest.raises(
        ReportError,
        match=r"evaluation/base\.json: holds rm_process, rm_pairwise, rm_outcome, .*judge\.writes is tests",
    ):
        gather(coding_config(), tmp_path)
    write_evaluation(tmp_path, coding_evaluation("base"))
    with pytest.raises(
        ReportError, match=r"evaluation/base\.json: holds ut, detect, .*judge\.writes is votes.*evaluate`"
    ):
        gather(config(), tmp_path)


def test_what_was_not_measured_is_said_in_the_papers_words(tmp_path):
    data = coding_evaluation("full")
    for result in data["seeds"].values():
        del result["detect"]
    coding_project(tmp_path, ("base",))
    write_evaluation(tmp_path, data)
    material = gather(coding_config(), tmp_path)
    assert "`full` was not measured on: Detect." in caveats(material)
    assert "| Detect `full` | – | 48.5 (+28.9) | 55.2 (+27.1) | 55.5 (+19.8) |" in document.report_md(
        material
    )


def test_the_papers_tables_have_one_order_of_arms_and_one_reward_model_until_it_trains():
    for contents in SHOWN:
        paper = contents.paper
        for name in paper.benchmarks:
            for metric in contents.compared:
                steps = [paper.gain(b, metric, a, name) for a, b in pairwise(ORDER)]
                assert all(step > 0 for step in steps[1:])
                assert (steps[0] == 0) is not metric.is_success


def test_every_setting_names_what_it_shows():
    for contents in SHOWN:
        assert contents.compared
        assert all(metric in contents.shares for metric in contents.compared)
        plots = [plot for drawing in contents.drawings if not drawing.arms for plot in drawing.plots]
        finals = [plot.final.name for plot in plots if plot.final]
        assert sorted(finals) == sorted(metric.name for metric in contents.metrics)
    assert {writes for metric in DECLARED.values() for writes in metric.titles} == set(CONTENTS)


def test_the_paper_has_a_value_for_every_arm_of_its_order():
    metrics = [*metrics_for(config()), *metrics_for(coding_config())]
    assert all(len(values) == len(ORDER) for m in metrics for values in m.paper.values())


@st.composite
def panels(draw) -> list[dict[str, list[int]]]:
    """Two seeds of [hits, total] for the same problems; nothing could count in some of them."""
    tasks = [f"t{i}" for i in range(draw(st.integers(2, 6)))]
    totals = st.integers(0, 5)
    tally = totals.flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)).map(list))
    return [{task: draw(tally) for task in tasks} for _ in range(2)]


@given(panels(), panels())
@settings(max_examples=40, deadline=None)
def test_ut_pools_the_tests_of_a_seed_and_averages_seeds(base, full):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for arm, seeds in (("base", base), ("full", full)):
            write_evaluation(
                root, {"arm": arm, "seeds": {str(i): {"ut": tallies} for i, tallies in enumerate(seeds)}}
            )
        cells = gather(coding_config(), root).cells
    for arm, seeds in (("base", base), ("full", full)):
        shares = _shares(seeds)
        if not shares:
            assert "ut" not in cells[arm]
            continue
        found = cells[arm]["ut"].value
        assert found.mean == pytest.approx(np.mean(shares))
        if found.low is not None:  # something varies, or all is 0
            assert 0.0 <= found.low <= found.mean <= found.high <= 1.0


def _shares(seeds: list[dict[str, list[int]]]) -> list[float]:
    """UT of each seed in which a test could count."""
    sums = [np.sum(list(tallies.values()), axis=0) for tallies in seeds]
    return [hits / total for hits, total in sums if total]


BENCHMARKS = ("LiveBench", "LiveCodeBench-V2", "CodeContests")


def on_benchmarks(root: Path) -> Config:
    """The coding project with the paper's three benchmarks as panels, each with the same hits."""
    panels = {name: {"tasks": 10, "measures": ["policy", "reward"]} for name in BENCHMARKS}
    for arm in SOLVED:
        data = coding_evaluation(arm)
        for seed, found in data["seeds"].items():
            data["seeds"][seed] = {"accepted_tasks": found["accepted_tasks"]} | {
                f"{key}{name}": found[measure]
                for name in BENCHMARKS
                for key, measure in (("", "in_domain"), ("ut/", "ut"), ("detect/", "detect"))
            }
        write_evaluation(root, data)
    return coding_config(tasks={"train": 16, "panels": panels})


def test_the_papers_benchmarks_stand_beside_its_table_one(tmp_path):
    material = gather(on_benchmarks(tmp_path), tmp_path)
    page = document.report_md(material)
    rows = page.splitlines()
    assert "| benchmark, arm | Code | paper | UT | paper | Detect | paper |" in rows
    assert (
        "| LiveBench `full` | 75.0 (+50.0) | 43.2 (+11.9) | 75.0 (+50.0) | 78.9 (+51.1) | 37.5 (+25.0) | 48.5 (+28.9) |"
        in rows
    )
    assert "| CodeContests `base` | 25.0 | 21.2 | 25.0 | 43.8 | 12.5 | 35.7 |" in rows
    assert (
        "- UT on LiveCodeBench-V2: the paper's order: `base` 25.0 = `policy` 25.0 < `policy_reward` 62.5 < "
        in page
    )
    assert (
        "is above `policy_reward` LiveCodeBench-V2, but not clearly: difference +25.0, p – (paper: +2.4)."
        in page
    )
    assert list(material.cells["full"]) == [
        *BENCHMARKS, *(f"{name}/{panel}" for panel in BENCHMARKS for name in ("ut", "detect")), "accepted_tasks",
    ]  # fmt: skip
    assert page.count("share of the written tests that every right program passes") == 1


def test_beside_a_panel_of_another_name_the_paper_has_nothing(tmp_path):
    panels = {name: {"tasks": 10, "measures": ["policy", "reward"]} for name in ("in_domain", "mine")}
    contents = contents_of(coding_config(tasks={"train": 16, "panels": panels}))
    assert [metric.name for metric in contents.compared] == ["in_domain"]
    alone = contents_of(coding_config(tasks={"train": 16, "panels": {"CodeContests": panels["mine"]}}))
    assert [alone.paper.value("base", metric) for metric in alone.compared] == [0.212, 0.438, 0.357]


def test_success_stands_beside_what_the_written_tests_are_worth(page):
    section = page.partition("## Reward hacking\n")[2].partition("\n## ")[0]
    assert "Here the weight is " in section
    assert "| arm | success (%) | UT (%) | Detect (%) |" in section
    assert re.search(r"\| `policy` \| .* \| 23\.0 → 23\.0 \|", section)


def test_an_arm_with_a_weight_of_its_own_is_named():
    config = coding_config()
    arm = config.arms["policy"].model_copy(update={"vote_weight": 0.4})
    own = config.model_copy(update={"arms": {**config.arms, "policy": arm}})
    data = SimpleNamespace(config=own, curves={}, contents=SimpleNamespace(acts=False))
    assert f"the weight is {config.signals.lambda_:g}, in `policy` 0.4." in hacking(data)


def test_a_seed_without_a_value_is_named(tmp_path):
    """Where no program is wrong, nothing can be detected: the seed has no share, and the mean is over the others."""
    data = coding_evaluation("full")
    data["seeds"]["1"]["detect"] = {task: [0, 0] for task in data["seeds"]["1"]["detect"]}
    del data["seeds"]["2"]["ut"]
    coding_project(tmp_path, ("base",))
    write_evaluation(tmp_path, data)
    notes = caveats(gather(coding_config(), tmp_path))
    assert "`full` has no Detect with seed 1, so its mean is over the others." in notes
    assert "`full` has no UT with seed 2, so its mean is over the others." in notes
