"""The search for the best temperature of the untrained policy: its figure and its table."""

from __future__ import annotations

import csv
import io

import pytest
from report_cases import config, cooled, evaluation, project, write_evaluation

from rlanything.report import document, figures, findings
from rlanything.report.drawn.cooling import COOLING, cooling_chart
from rlanything.report.formatting import interval
from rlanything.report.report_data import gather, gathered
from rlanything.report.results.evaluations import Cooled, read_evaluations
from rlanything.report.sections.limits import limits


def test_the_search_is_drawn_in_every_form_and_shown_above_its_table(tmp_path):
    material = cooled(tmp_path, ("base", "full"))
    (chart,) = (chart for chart in figures.charts(material) if chart.name == COOLING)
    drawn = dict(figures.draw([chart]))
    assert set(drawn) == {f"{COOLING}.{kind}" for kind in figures.KINDS}
    rows = list(csv.DictReader(io.StringIO(drawn[f"{COOLING}.csv"].decode())))
    assert [(float(row["x"]), float(row["value"]), row["of"]) for row in rows] == [
        (0.2, 0.3, "tried"),
        (0.5, 0.4, "chosen"),
        (1.0, 0.2, "tried"),
    ]
    section = document.report_md(material).partition("## Temperature\n")[2].partition("\n## ")[0]
    assert section.index(f"(figures/{COOLING}.png)") < section.index("| temperature |")


def test_the_line_goes_through_every_temperature_in_order_and_the_chosen_one_is_marked():
    chart = cooling_chart(Cooled(temperature=0.5, shares={1.0: 0.2, 0.5: 0.4, 0.2: 0.3}))
    line, chosen = chart.draw().axes[0].get_lines()
    assert list(line.get_xdata()) == [0.2, 0.5, 1.0]
    assert list(line.get_ydata()) == pytest.approx([30.0, 40.0, 20.0])
    assert (list(chosen.get_xdata()), list(chosen.get_ydata())) == ([0.5], pytest.approx([40.0]))


def test_a_file_that_does_not_say_what_was_tried_has_no_figure(tmp_path):
    project(tmp_path, ("base", "full"), seeds=1)
    write_evaluation(tmp_path, {**evaluation("base_cooled"), "temperature": 0.5})
    material = gathered(config(), tmp_path, read_evaluations(tmp_path, ("base_cooled", "full")))
    assert COOLING not in {chart.name for chart in figures.charts(material)}
    assert f"figures/{COOLING}" not in document.report_md(material)


def test_open_comparisons_with_the_cooled_base_and_of_it_are_listed(tmp_path):
    said = limits(cooled(tmp_path, ("base", "full")))
    for metric in ("in-domain", "out-of-domain"):
        assert f"| `full` against `base_cooled`, {metric} |" in said
        assert f"| `base_cooled` against `base`, {metric} |" in said
    project(tmp_path / "other", ("base", "full"))
    assert "cooled`" not in limits(gather(config(), tmp_path / "other"))


@pytest.mark.parametrize(
    ("solved", "said"),
    [
        (0, ", of which a temperature of 0.5 explains none: it is worse than the base's own (-"),
        (1, ". A temperature of 0.5 alone adds +"),
    ],
)
def test_a_temperature_that_is_worse_on_the_panel_or_adds_more_than_the_arm_explains_no_part(
    tmp_path, solved, said
):
    worse_or_better = evaluation("base_cooled", seeds=1)
    for seed in worse_or_better["seeds"].values():
        seed["in_domain"] = {task: [solved] * len(tries) for task, tries in seed["in_domain"].items()}
    project(tmp_path, ("base", "full"), seeds=1)
    write_evaluation(tmp_path, {**worse_or_better, "temperature": 0.5})
    found = gathered(config(), tmp_path, read_evaluations(tmp_path, ("base", "base_cooled", "full")))
    (line,) = (
        line for line in findings.against_cooled(found.comparison, 0.5) if line.startswith("`full` in-domain")
    )
    assert f" points over the base{said}" in line
    assert "Beyond the cooled base" in line


@pytest.mark.parametrize("solved", [0, 1])
def test_a_control_that_is_below_the_base_is_named_below_what_each_part_adds(tmp_path, solved):
    control = evaluation("base_cooled")
    for seed in control["seeds"].values():
        seed["in_domain"] = {task: [solved] * len(tries) for task, tries in seed["in_domain"].items()}
    project(tmp_path, ("base", "outcome"))
    write_evaluation(tmp_path, {**control, "temperature": 0.5})
    found = gathered(config(), tmp_path, read_evaluations(tmp_path, ("base_cooled", "outcome")))
    parts = document.report_md(found).partition("### What each part adds\n")[2].partition("\n### ")[0]
    assert "| in-domain | `outcome` over `base_cooled` |" in parts
    assert ("`base_cooled` is below `base` in-domain (-" in parts) is (solved == 0)


def test_an_effect_of_the_temperature_that_is_not_clear_explains_nothing(tmp_path):
    found = cooled(tmp_path, ("base", "full")).comparison
    for line, metric in zip(findings.against_cooled(found, 0.5), found.success, strict=True):
        alone = found.contrasts([("base_cooled", "base")], metric)["base_cooled", "base"]
        assert alone.clear == ("explains" in line)
        if not alone.clear:
            ends = interval(alone.difference, metric, sign=True)
            assert f". A temperature of 0.5 alone makes a difference of {ends}, which is not clear. " in line
    assert "not clear. " in line
