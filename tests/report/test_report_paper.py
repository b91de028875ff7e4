"""The paper's results stand beside those on its own kinds of tasks, and beside no others."""

from __future__ import annotations

import io

import pytest
from report_cases import config, evaluation, judged, project, write_evaluation
from rich.console import Console

from rlanything.report import document, tables
from rlanything.report.contents import contents_of
from rlanything.report.drawn.arms import gains_chart
from rlanything.report.report_data import gather
from rlanything.report.results.metrics import DECLARED, named
from rlanything.report.results.paper import BESIDE, CODING, paper_on

OWN = ("envs.web.family.WebFamily", "envs.desktop.small.family.DesktopFamily", "mine.games.Family")
OSWORLD = "envs.desktop.osworld.family.OSWorldFamily"
ARMS = ("base", "policy", "policy_reward", "full")


def on(environment, **changes):
    return config(env={"_target_": environment}, **changes)


def overview(page):
    """Title of each column of the first table -> its cells, arm by arm; 'paper' has the column's on its left."""
    table = [
        row.strip("| ").split(" | ") for row in page[page.index("| arm | ") :].split("\n\n")[0].splitlines()
    ]
    names = [f"paper: {table[0][i - 1]}" if name == "paper" else name for i, name in enumerate(table[0])]
    return {name: [row[i] for row in table[2:]] for i, name in enumerate(names)}


@pytest.mark.parametrize("environment", OWN)
def test_the_paper_is_not_set_beside_tasks_that_it_does_not_have(environment, tmp_path):
    data = gather(on(environment), project(tmp_path))
    page = document.report_md(data)
    assert "The paper has no results on such tasks." in page
    for word in ("Table 1", "ALFWorld and", "paper vs base", "(paper: +", "| paper", "the paper's order:"):
        assert word not in page.partition("## Settings")[0]
    assert all(name != "paper" for name in overview(page))
    rows = gains_chart(data.cells, data.contents).rows
    assert {of for _, _, of, *_ in rows} == {"above the base"}
    console = Console(width=80, file=io.StringIO())
    console.print(tables.terminal(data.cells, data.contents))
    assert "paper" not in console.file.getvalue()


@pytest.mark.parametrize("environment", OWN)
def test_neither_are_its_tables_of_judges_and_of_another_policys_steps(environment, tmp_path):
    data = evaluation("base", seeds=2)
    for result in data["seeds"].values():
        result["labels"] = {"strong": judged(3, 1)}
    write_evaluation(tmp_path, data)
    judges = {"labels": "judge", "judges": {"strong": {"path": "x/y"}}}
    for others in ({}, {"reward_policy": {"path": "some/model"}}):
        page = document.report_md(gather(on(environment, evaluate={**judges, **others}), tmp_path))
        results = page.partition("## Settings")[0]
        assert "### Process accuracy by judge" in results
        assert "Table 3" not in results
        assert "Table 4" not in results


def test_osworlds_tasks_have_the_papers_results_on_osworld(tmp_path):
    page = document.report_md(gather(on(OSWORLD), project(tmp_path, ARMS)))
    assert "Paper: arXiv 2602.02488 v1, Table 1 (OSWorld); its table has no `outcome`." in page
    columns = overview(page)
    assert columns["paper: Accuracy in-domain"] == ["40.4", "48.3", "49.6", "52.1"]
    assert columns["paper: Accuracy out-of-domain"] == ["16.1", "19.8", "20.0", "21.3"]
    assert columns["paper: RM process accuracy"] == ["86.0", "86.0", "88.7", "91.3"]
    assert columns["paper: RM outcome accuracy"] == ["55.2", "55.2", "57.6", "60.4"]
    assert "ALFWorld" not in page.partition("## Settings")[0]


def test_osworlds_steps_of_another_policy_have_those_of_table_4(tmp_path):
    project(tmp_path, ARMS)
    page = document.report_md(
        gather(on(OSWORLD, evaluate={"reward_policy": {"path": "some/model"}}), tmp_path)
    )
    assert overview(page)["paper: RM process accuracy"] == ["84.7", "84.7", "87.6", "89.6"]
    assert "its Table 4, on steps of OpenCUA-7B." in page


def test_every_value_is_of_a_benchmark_that_some_setting_has():
    metrics = [*DECLARED.values(), *map(named, ("in_domain", "out_of_domain", "LiveBench"))]
    known = {name for paper in BESIDE.values() for name in paper.benchmarks}
    assert {name for metric in metrics for name in metric.paper} == known
    assert all(len(values) == len(ARMS) for metric in metrics for values in metric.paper.values())


def test_programs_have_the_papers_results_on_coding():
    assert paper_on("envs.coding.family.CodingFamily") is CODING
    assert contents_of(on("envs.coding.family.CodingFamily")).paper is CODING
