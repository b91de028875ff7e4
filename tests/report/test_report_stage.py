"""The whole stage: golden numbers and text, equal bytes twice, what is missing is said, nothing half-written."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys

import pytest
from report_cases import GOLDEN, config, cooled, evaluation, project, steady, write_evaluation

from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.files import locks
from rlanything.files.records import write_lines
from rlanything.report import document, exports, figures, findings
from rlanything.report.caveats import caveats
from rlanything.report.contents import contents_of
from rlanything.report.drawn.arms import GAINS, STEPS
from rlanything.report.drawn.judging import CALIBRATION, HACKING
from rlanything.report.formatting import interval, p_text
from rlanything.report.report_data import gather
from rlanything.report.results.comparison import Cell
from rlanything.report.results.evaluations import ReportError
from rlanything.report.results.metrics import named
from rlanything.report.results.statistics import Estimate
from rlanything.report.style import KNOWN, looks
from rlanything.stages import report
from rlanything.stages.declared import PICTURES

VOTES = contents_of(config())
FIGURES = (*(drawing.name for drawing in VOTES.drawings), GAINS, STEPS, CALIBRATION, HACKING)


def files(kinds=figures.KINDS):
    """The names of all files of a report."""
    texts = ("buffers.md", "headline.json", "index.html", "report.md", "summary.json", "plots/learning.csv")
    return {*texts, *(f"figures/{name}.{kind}" for name in FIGURES for kind in kinds)}


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def with_tasks(root):
    """A project whose evaluations name the tasks of its panels, which are there. Returns a task of each panel."""
    project(root, ("base", "full"), seeds=2)
    panels = {
        name: [Task("game", f"{name} {number}", {}) for number in range(24)]
        for name in ("in_domain", "out_of_domain")
    }
    for name, tasks in panels.items():
        write_lines(root / "data" / "tasks" / f"{name}.jsonl", [task.to_json() for task in tasks])
    for path in (root / "evaluation").glob("*.json"):
        found = json.loads(path.read_text())
        for results in found["seeds"].values():
            for name, tasks in panels.items():
                results[name] = dict(zip([t.task_id for t in tasks], results[name].values(), strict=True))
        path.write_text(json.dumps(found))
    return {name: tasks[0].task_id for name, tasks in panels.items()}


@pytest.mark.long
def test_the_report_is_whole_and_equal_bytes_twice(reported, tmp_path, capsys):
    report.write_report(config(), project(tmp_path))
    first, said = contents(tmp_path / "report"), capsys.readouterr().out
    assert set(first) == files()
    assert contents(reported / "report") == first
    assert first["figures/learning.png"].startswith(b"\x89PNG")
    assert "Arms beside the paper" in said
    assert "rlanything buffer ls runs/full/seed-0" in said
    assert "Report: report/report.md" in said
    assert {name.removeprefix("report/") for name in PICTURES} <= files()


def test_golden(tmp_path):
    material = gather(config(), project(tmp_path))
    assert exports.summary_json(material.cells) == (GOLDEN / "summary.json").read_text()
    assert steady(document.report_md(material)) == (GOLDEN / "report.md").read_text()


def test_summary_has_every_arm_and_metric_in_order(tmp_path):
    data = json.loads((GOLDEN / "summary.json").read_text())
    assert list(data) == ["base", "outcome", "policy", "policy_reward", "full"]
    for arm, row in data.items():
        assert list(row) == [
            "in_domain", "out_of_domain", "rm_process_plain", "rm_process", "rm_pairwise", "rm_outcome",
            "accepted_tasks",
        ]  # fmt: skip
        for cell in row.values():
            assert list(cell) in (
                ["mean", "low", "high", "vs_base"],
                ["mean", "low", "high", "vs_base", "vs"],
            )
            assert (cell["vs_base"] is None) == (arm == "base")
            assert arm == "base" or list(cell["vs_base"]) == ["mean", "low", "high", "p"]
            assert cell["low"] <= cell["mean"] <= cell["high"]


def test_the_summary_rounds_to_the_numbers_of_the_page(tmp_path):
    """`rlanything compare` shows a revision from it: 34.8512 is 34.9, and 34.85 would be 34.8."""
    material = gather(config(), project(tmp_path))
    cell = Cell(Estimate(0.4133, 0.348512, 0.47809), None)
    cells = {"full": {"in_domain": cell}, **{f"{arm} again": row for arm, row in material.cells.items()}}
    data = json.loads(exports.summary_json(cells))
    for arm, row in cells.items():
        for name, of in row.items():
            stored = Estimate(*(data[arm][name][key] for key in ("mean", "low", "high")))
            assert interval(stored, named(name)) == interval(of.value, named(name))


def test_what_each_part_adds_stands_in_a_table_and_in_the_summary_with_the_ps_of_the_sentences(tmp_path):
    material = cooled(tmp_path)
    page, data = document.report_md(material), json.loads(exports.summary_json(material.cells))
    table = page.partition("### What each part adds\n")[2].partition("\n###")[0]
    for panel in ("in_domain", "out_of_domain"):
        vs = {arm: list(row[panel]["vs"]) for arm, row in data.items() if "vs" in row[panel]}
        assert vs == {
            "outcome": ["base_cooled"],
            "policy": ["outcome"],
            "policy_reward": ["outcome", "policy"],
            "full": ["outcome", "policy_reward"],
        }
    said = [*findings.against_outcome(material.comparison, material.contents.paper)]
    said += findings.ladder(material.comparison, material.contents.paper)
    assert len(said) == 2 * 5
    for arm, other in (("full", "outcome"), ("policy_reward", "policy")):
        for metric in material.comparison.success:
            found = material.cells[arm][metric.name].vs[other]
            difference, p = interval(found.difference, metric, sign=True), p_text(found.p)
            assert f"| {metric.short} | `{arm}` over `{other}` | {difference} | {p} |" in table
            assert any(f"difference {difference}, p {p}" in line for line in said)
    assert table.count("| `outcome` over `base_cooled` |") == 2


def test_what_is_missing_is_said(tmp_path):
    project(tmp_path, ("base", "full"), seeds=1)
    write_evaluation(tmp_path, evaluation("policy", seeds=2))
    material = gather(config(), tmp_path)
    notes = " ".join(caveats(material))
    assert "Not evaluated, so left out: `outcome`, `policy_reward`" in notes
    assert "no curves: `policy`" in notes
    assert "`policy`: the base was not measured with seed 1" in notes
    assert "One seed only" in notes
    data = json.loads(exports.summary_json(material.cells))
    assert data["full"]["accepted_tasks"]["low"] is None
    assert data["full"]["in_domain"]["low"] is not None


def test_arms_with_other_seeds_are_said(tmp_path):
    project(tmp_path, ("base", "outcome", "full"))
    data = evaluation("full")
    del data["seeds"]["0"]
    write_evaluation(tmp_path, data)
    said = [note for note in caveats(gather(config(), tmp_path)) if "have other seeds" in note]
    assert said == [
        "The arms have other seeds (`outcome`: 0, 1, 2; `full`: 1, 2): a difference is over those that both have, a "
        "mean over its own. So means and differences may not agree."
    ]


def test_changed_panels_are_said(tmp_path):
    project(tmp_path, ("base",))
    data = evaluation("full")
    for result in data["seeds"].values():
        result["in_domain"] = {f"new-{task}": outcomes for task, outcomes in result["in_domain"].items()}
    write_evaluation(tmp_path, data)
    material = gather(config(), tmp_path)
    assert "measured on different tasks (Accuracy in-domain)" in " ".join(caveats(material))
    assert json.loads(exports.summary_json(material.cells))["full"]["in_domain"]["vs_base"] is None
    assert "share no seed and task that was measured in-domain" in document.report_md(material)


def test_episodes_that_crashed_are_said(tmp_path):
    project(tmp_path, ("base",))
    data = evaluation("full")
    for seed in ("0", "2"):
        data["seeds"][seed]["crashed"] = {"out_of_domain": 2}
    write_evaluation(tmp_path, data)
    notes = caveats(gather(config(), tmp_path))
    said = "4 episodes of `out_of_domain` crashed or timed out in the measurement and were left out, over all seeds"
    assert [note for note in notes if "crashed" in note] == [f"`full`: {said}."]


@pytest.mark.long
def test_the_base_alone_makes_a_report(tmp_path, drawn_as_svg):
    project(tmp_path, ("base",))
    report.write_report(config(), tmp_path)
    assert set(contents(tmp_path / "report")) == files(drawn_as_svg)
    assert "No arm that adapts its tasks was run" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.long
def test_a_name_that_looks_like_a_formula_can_be_drawn(tmp_path, drawn_as_svg):
    name = "_$\\frac"
    arms = {name: {"step_votes": True, "train_reward": True, "adapt": True}}
    material = gather(config(arms=arms), project(tmp_path, ("base", name), seeds=1))
    assert len(list(figures.draw(figures.charts(material)))) == len(drawn_as_svg) * len(FIGURES)


def test_an_arm_looks_the_same_everywhere():
    assert looks(["full", "mine"])["full"] == looks(["base", "full"])["full"] == KNOWN["full"]
    assert (
        len({(look.colour, look.marker) for look in looks([*KNOWN, "a", "b", "c"]).values()})
        == len(KNOWN) + 3
    )


def test_a_broken_input_leaves_the_old_report_alone(tmp_path, blank):
    project(tmp_path, ("base", "full"), seeds=1)
    report.write_report(config(), tmp_path)
    before = contents(tmp_path / "report")
    (tmp_path / "evaluation" / "full.json").write_text("{")
    with pytest.raises(ReportError, match=r"evaluation/full\.json"):
        report.write_report(config(), tmp_path)
    assert contents(tmp_path / "report") == before


@pytest.mark.parametrize("name", ["runs/full", "evaluation/full.json"])
def test_a_result_that_is_replaced_while_it_is_read_leaves_the_old_report_alone(
    tmp_path, blank, monkeypatch, name
):
    """As a training does that ends meanwhile: the report may have read one seed of each run."""
    project(tmp_path, ("base", "full"), seeds=1)
    report.write_report(config(), tmp_path)
    before = contents(tmp_path / "report")

    def read(*words):
        found = gather(*words)
        place = tmp_path / name
        new = place.with_name(".new")
        shutil.copytree(place, new) if place.is_dir() else shutil.copyfile(place, new)
        place.rename(place.with_name(".old"))
        new.rename(place)
        return found

    with monkeypatch.context() as beside:
        beside.setattr(report, "gather", read)
        with pytest.raises(ConfigError, match=f"{name}: replaced while the report was made"):
            report.write_report(config(), tmp_path)
    assert contents(tmp_path / "report") == before
    report.write_report(config(), tmp_path)


def test_an_evaluation_has_the_tasks_of_its_panels_and_no_more_tries(tmp_path, blank):
    first = with_tasks(tmp_path)
    tries = config(evaluate={"repeats": 3})
    report.write_report(tries, tmp_path)
    with pytest.raises(
        ReportError, match=r"evaluation/base\.json: seeds.0.in_domain: .* has 3 tries; .*repeats = 2"
    ):
        report.write_report(config(evaluate={"repeats": 2}), tmp_path)
    path = tmp_path / "evaluation" / "full.json"
    whole = path.read_text()
    for harm, words in (
        (
            lambda results: results.update({"f" * 64: [1, 1, 1]}),
            "1 task that .* f{12} is no task of the panel",
        ),
        (
            lambda results: results.pop(first["out_of_domain"]),
            f"{first['out_of_domain'][:12]} was not measured",
        ),
    ):
        found = json.loads(whole)
        for results in found["seeds"].values():
            harm(results["out_of_domain"])
        path.write_text(json.dumps(found))
        with pytest.raises(ReportError, match=f"evaluation/full.json: seeds.0.out_of_domain: .*{words}"):
            report.write_report(tries, tmp_path)


def test_a_full_disk_leaves_the_old_files_alone(tmp_path, blank, monkeypatch):
    project(tmp_path, ("base",))
    report.write_report(config(), tmp_path)
    before = contents(tmp_path / "report")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    project(tmp_path, ("base", "full"))
    monkeypatch.setattr("rlanything.files.atomic.Path.replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        report.write_report(config(), tmp_path)
    assert contents(tmp_path / "report") == before


def test_what_a_killed_report_left_goes_with_the_next_and_a_user_s_own_files_stay(tmp_path, blank):
    project(tmp_path, ("base",))
    report.write_report(config(), tmp_path)
    whole = contents(tmp_path / "report")
    for name in whole:
        place = tmp_path / "report" / name
        place.with_name(f".{place.name}.4711-0a1b2c3d.tmp").write_text("half")
    own = (".report.md.draft.tmp", ".notes.md.4711-0a1b2c3d.tmp", "figures/.mine.tmp", "report.md.tmp")
    for name in own:
        (tmp_path / "report" / name).write_text("mine")
    report.write_report(config(), tmp_path)
    assert contents(tmp_path / "report") == whole | dict.fromkeys(own, b"mine")


def test_a_report_is_refused_beside_another_whose_files_it_would_clear(tmp_path, blank):
    project(tmp_path, ("base",))
    with (
        locks.stage(tmp_path, "report"),
        pytest.raises(ConfigError, match="`rlanything report` runs here already"),
    ):
        report.write_report(config(), tmp_path)


def test_everybody_may_read_the_report(tmp_path, blank):
    project(tmp_path, ("base",))
    report.write_report(config(), tmp_path)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "report").rglob("*") if path.is_file()}
    umask = os.umask(0)
    os.umask(umask)
    assert modes == {0o666 & ~umask}


def test_learning_csv_is_long_and_finite(tmp_path):
    curves = {
        "full": {0: {"panel/in_domain": {0: 0.4, 5: 0.5}, "mu": {0: float("inf"), 1: 1.2}, "other": {0: 1.0}}}
    }
    rows = list(csv.reader(exports.learning_csv(curves, VOTES.metrics).splitlines()))
    assert rows[0] == ["arm", "seed", "iteration", "metric", "value"]
    assert rows[1:] == [
        ["full", "0", "0", "in_domain", "0.4"],
        ["full", "0", "5", "in_domain", "0.5"],
        ["full", "0", "1", "mu", "1.2"],
    ]


@pytest.mark.long
def test_the_stage_needs_no_torch():
    code = (
        "import sys, rlanything.stages.report; "
        "print([m for m in ('torch', 'lightning', 'transformers', 'matplotlib.pyplot') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
