"""`rlanything compare`: what differs, tested where it pairs; what cannot be compared is said; revisions from git."""

from __future__ import annotations

import json
import shutil

import pytest
from compare_cases import commit, compared, declare, experiment, keep_experiment, provenance, recorded
from page_cases import every_look
from report_cases import config, evaluation, write_evaluation

from rlanything.cli import main
from rlanything.compare.comparison import headline, notes
from rlanything.compare.origins import buffers
from rlanything.compare.page import comparison_md
from rlanything.compare.results import Group, Pairing, Why
from rlanything.compare.sides import sides
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.files.project import SWEEP_EMAIL, SWEEP_NAME
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import contrast, corrected

EVIL = "<img src=x onerror=\"document.title='pwned'\">"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = experiment(tmp_path_factory.mktemp("experiment"))
    recorded(made, "first")
    return made


def test_arms_are_paired_by_seed_and_task_and_corrected_together(root):
    found = compared(root, "outcome", "full")
    panels = [read_evaluation(root / f"evaluation/{arm}.json", arm) for arm in ("full", "outcome")]
    wanted = corrected({m: contrast(panels[0][m], panels[1][m]) for m in panels[0]})
    assert {row.metric.name: row.found for row in found.differences} == wanted
    assert str(found.differences[0].paired_on) == "2 seeds, 24 tasks"
    assert {row.key: row.values for row in found.settings} == {
        "arm.step_votes": ("false", "true"), "arm.train_reward": ("false", "true"), "arm.adapt": ("false", "true"),
    }  # fmt: skip
    assert headline(found).startswith("`B full` is above `A outcome`, Accuracy in-domain: difference +")


def test_one_frozen_model_on_both_sides_is_no_comparison(root):
    rows = {row.metric.name: row for row in compared(root, "outcome", "policy").differences}
    assert str(rows["rm_process"].paired_on) == "the same results"
    assert rows["rm_process"].found.p is None
    assert rows["in_domain"].found.p is not None


def test_two_seeds_are_compared_task_by_task(root):
    found = compared(root, "full/seed-0", "full/seed-1")
    assert str(found.differences[0].paired_on) == "1 seed, 24 tasks"
    assert found.settings == []
    text = comparison_md(found)
    assert "one seed each, and not the same one" in text
    assert "Where a side has one seed, its intervals come from the tasks alone" in text
    assert "4 slots: 2 unchanged" in text
    assert "rlanything buffer diff full/seed-0 full/seed-1" in text


def test_the_command_for_a_revisions_buffers_names_the_runs_of_both_sides(root, tmp_path):
    other = experiment(tmp_path / "other", ("base", "full"))
    run = other / "runs/full/seed-0"
    for names, said in (
        (("HEAD", "."), "HEAD:full/seed-0 full/seed-0"),
        ((".", "HEAD"), "full/seed-0 HEAD:full/seed-0"),
        (("HEAD", str(other)), f"HEAD:full/seed-0 {run}"),
        (("HEAD", "HEAD~0"), "HEAD:full/seed-0 HEAD~0:full/seed-0"),
    ):
        found = compared(root, *names)
        group = next(group for group in found.groups if group.arm == "full")
        (line,) = buffers(found.sides, group, root)
        assert line == f"As far as DVC has the runs: `rlanything buffer diff {said}`"
    (line,) = buffers(
        found.sides, Group("", (found.sides[0].arms["full"], found.sides[1].arms["policy"])), root
    )
    assert "diff HEAD:full/seed-0 HEAD~0:policy/seed-0`" in line


@pytest.mark.parametrize("damaged", [False, True])
def test_a_page_has_no_path_of_this_machine_for_a_run_of_the_project(tmp_path, damaged):
    """A page is passed on; in the project it is named from the project's root, as `rlanything buffer` finds it."""
    project = experiment(tmp_path / "project", ("base", "full"))
    trial = project / "sweeps" / "case" / "trials" / "0001"
    shutil.copytree(project, tmp_path / "copy")
    shutil.move(tmp_path / "copy", trial)
    for place in (trial / "runs/full").glob("seed-*/buffer/events.jsonl") if damaged else ():
        place.write_text('{"event": "none"}\n')
    text = comparison_md(compared(project, ".", "sweeps/case/trials/0001"))
    assert str(tmp_path) not in text
    said = (
        "buffers cannot be compared"
        if damaged
        else "buffer diff full/seed-0 sweeps/case/trials/0001/runs/full/seed-0"
    )
    assert said in text


def test_panels_and_environments_that_differ_are_said(root, tmp_path):
    other = tmp_path / "other"
    of = config(env={"_target_": "envs.coding.family.CodingFamily", "_code_": "envs/coding"})
    experiment(other, ("base", "full"), of=of)
    data = evaluation("full", 2)
    for seed in data["seeds"].values():
        seed["in_domain"] = {f"new-{name}": tries for name, tries in seed["in_domain"].items()}
    write_evaluation(other, data)
    found = compared(root, ".", str(other))
    rows = {(row.group.arm, row.metric.name): row for row in found.differences}
    assert rows["full", "in_domain"].why is Why.OTHER_TASKS
    assert rows["full", "out_of_domain"].found is not None
    said = " ".join(notes(found))
    assert "The environments differ" in said
    assert "`A .` alone has `outcome`, `policy`." in said
    shown = {row.key: row.values for row in found.settings}
    assert shown["env.secret"] == ("(not shown)", "–"), "a text of the environment may be private"
    assert "do not print" not in comparison_md(found)


def test_a_panel_that_only_one_side_has_is_said_whichever_side_it_is(root, tmp_path):
    declared = config().model_dump(mode="json", by_alias=True)
    declared["tasks"]["panels"]["mine"] = {"split": "in_domain", "tasks": 24, "measures": ["policy"]}
    others = [tmp_path / "one", tmp_path / "two"]
    for other in others:
        experiment(other, ("base", "full"), of=parse(declared))
        data = evaluation("full", 2)
        for seed in data["seeds"].values():
            seed["mine"] = seed["in_domain"]
        write_evaluation(other, data)
    for names in ((".", str(others[0])), (str(others[0]), ".")):
        found = compared(root, *names)
        assert [row.why for row in found.differences if row.metric.name == "mine"] == [Why.ONE_SIDE]
        assert [metric.is_success for metric in found.metrics[:3]] == [True, True, True]
        assert "mine" in comparison_md(found)
    rows = [row for row in compared(root, ".", *map(str, others)).differences if row.metric.name == "mine"]
    assert {row.side for row in rows} == {1, 2}


def test_a_revision_is_read_from_git_and_nothing_is_claimed_without_its_tasks(root, capsys):
    found = compared(root, ".", revisions=["HEAD"])
    assert {row.why for row in found.differences} == {Why.ONLY_SUMMARY}
    first = found.sides[0]
    assert first.arms["full"].recorded["in_domain"].mean == pytest.approx(0.6, abs=0.1)
    assert first.arms["full"].curves[1]["panel/in_domain"].keys() == {0, 6, 12, 18, 24}
    assert main(["--root", str(root), "compare", "--rev", "HEAD", "."]) == 0
    said = capsys.readouterr().out
    assert "not tested: only a summary is recorded" in said
    assert "no setting differs" in said


def test_a_dvc_experiment_is_a_revision(root, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    declare(other, config(signals={"lambda": 0.25}))
    commit(other, "bolder")
    keep_experiment(other, "bolder")
    found = compared(other, revisions=["HEAD", "bolder"])
    assert {row.key: row.values for row in found.settings} == {"signals.lambda": ("0.5", "0.25")}
    assert [side.kind[:18] for side in compared(other, "HEAD", "bolder").sides] == ["recorded in commit"] * 2
    assert main(["--root", str(other), "compare", "--rev", "HEAD", "--rev", "boldr"]) == 2
    assert "no revision 'boldr'; nearest: bolder" in capsys.readouterr().err


def test_an_arm_of_a_revision_is_compared_with_a_run(root, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    commands = (
        ("HEAD:full", "HEAD:full/seed-0"),
        ("bolder:full", "bolder:full/seed-0"),
    )
    declare(other, config(signals={"lambda": 0.25}))
    commit(other, "bolder")
    keep_experiment(other, "bolder")
    for name, run in commands:
        found = compared(other, "outcome", name)
        assert found.single
        side = found.sides[1]
        assert (side.name, list(side.arms)) == (name, ["full"])
        assert side.kind.startswith("arm full, recorded in commit ")
        assert {"arm.adapt", "arm.step_votes"} < {row.key for row in found.settings}
        assert f"`rlanything buffer diff outcome/seed-0 {run}`" in comparison_md(found)
    assert "`B bolder:full`: params.yaml is not what `full` was trained with" in " ".join(notes(found))
    assert main(["--root", str(other), "compare", "full", "bolder:ful"]) == 2
    assert "bolder:ful: no arm 'ful' there; nearest: full" in capsys.readouterr().err


def test_of_a_trial_that_a_sweep_recorded_only_what_is_its_own_is_read(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    declare(other, config(signals={"lambda": 0.25}))
    commit(other, "sweep: case-0003", author=(SWEEP_NAME, SWEEP_EMAIL))
    keep_experiment(other, "case-0003")
    found = compared(other, revisions=["HEAD", "case-0003"])
    trial = found.sides[1]
    assert trial.kind.startswith("a trial of a sweep, recorded in commit ")
    assert trial.arms["full"].recorded
    assert all(arm.record is None and not arm.curves for arm in trial.arms.values())
    assert "is not what" not in " ".join(notes(found))


def test_no_seeds_are_claimed_of_a_side_whose_evaluations_are_not_there(root):
    for found in (compared(root, ".", revisions=["HEAD"]), compared(root, ".", "HEAD")):
        assert not [note for note in notes(found) if "seed" in note]


def test_an_arm_comes_before_a_workspace_of_its_name_and_a_path_before_both(tmp_path):
    own = experiment(tmp_path / "own")
    for place in (".rla/full", ".rla/bold", "policy"):
        experiment(own / place, ("base", "outcome"))
    found = sides([], ["full", ".rla/full", "bold", "policy"], own)
    assert [side.kind for side in found] == ["arm full, seed 0, 1", *["a whole experiment"] * 3]


def test_the_origin_of_both_is_compared(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    of = config(signals={"lambda": 0.25})
    declare(other, of)
    provenance(other, "full", 2, of, code="1" * 64)
    record = json.loads((other / "provenance/full.json").read_text())
    (other / "provenance/full.json").write_text(json.dumps({**record, "fingerprint": "f" * 64}))
    text = comparison_md(compared(root, ".", str(other)))
    assert "1 source files differ, first `rlanything/a.py: 000000000000 -> 111111111111`" in text
    assert "| `signals.lambda` | `0.5` | `0.25` |" in text
    assert (
        "A and B, `policy`: made from the same configuration, code and inputs; with the same bytes." in text
    )


def test_a_configuration_that_was_written_since_the_training_is_said(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    workers = {**config().train.model_dump(mode="json", by_alias=True), "workers": 3}
    declare(other, config(signals={"lambda": 0.25}, train=workers))
    found = compared(other, str(root), ".")
    every = "`outcome`, `policy`, `full` were trained with (`signals.lambda`)"
    shown = "the settings shown are those of params.yaml"
    assert list(notes(found)) == [f"`B .`: params.yaml is not what {every}; {shown}."]
    declared = config().model_dump(mode="json", by_alias=True)
    declared["arms"]["full"]["adapt"] = False
    provenance(other, "outcome", 2, config(signals={"lambda": 0.25}))
    provenance(other, "policy", 2, config(signals={"lambda": 0.25}))
    provenance(other, "full", 2, parse(declared))
    one = "`full` was trained with (`signals.lambda`, `arms.full.adapt`)"
    assert list(notes(compared(other, str(root), "."))) == [f"`B .`: params.yaml is not what {one}; {shown}."]


def test_a_record_of_another_version_says_nothing_of_the_configuration(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    for path in (other / "provenance").iterdir():
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "config": {**record["config"], "signals": {"gone": 1}}}))
    assert list(notes(compared(other, str(root), "."))) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["full"], "compare takes 2 to 8 names, not 1"),
        (["ful", "policy"], "did you mean 'full'?"),
        (["--rev", "HAED", "full"], "no revision 'HAED'; nearest: HEAD"),
        (["--rev=--all", "full"], "no revision '--all'"),
        (["--rev", "before", "."], "has no report/summary.json: no report was recorded there"),
        (["full", "base"], "no run 'base'"),
        (["no run", "none", "--output", "ROOT"], "is a folder, not a file"),
        (["no run", "none", "--output", "ROOT/params.yaml"], "exists and is no page of a run or"),
    ],
)
def test_names_that_mean_nothing_are_refused(root, capsys, words, said):
    if "before" in words:
        root = root.parent / "empty"
        experiment(root, ("base", "full"))
        (root / "report").mkdir(exist_ok=True)
        (root / "report/note").write_text("")
        commit(root, "nothing")
        words = ["--rev", "HEAD", "."]
    words = [word.replace("ROOT", str(root)) for word in words]
    assert main(["--root", str(root), "compare", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({"full": {"in_domain": {"mean": float("nan")}}}, "full.in_domain.mean"),
        ({"full": {"in_domain": {"mean": "much"}}}, "full.in_domain.mean"),
        ([], "report/summary.json"),
        ({str(arm): {} for arm in range(101)}, "at most 100 items"),
    ],
)
def test_a_summary_that_is_none_is_refused_by_its_field(root, tmp_path, capsys, summary, said):
    strange = experiment(tmp_path / "strange", ("base",))
    (strange / "report").mkdir()
    (strange / "report/summary.json").write_text(json.dumps(summary))
    commit(strange, "x")
    assert main(["--root", str(strange), "compare", "--rev", "HEAD", "."]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.integration
def test_a_strangers_words_stay_words_in_the_page(tmp_path, tab, capsys):
    root, file = experiment(tmp_path / "hostile", ("base",)), tmp_path / "page.html"
    arms = (EVIL, "../../../tmp/x", "a`b|c\x1b[2J", "full")
    cell = {"in_domain": {"mean": 0.5, "low": 0.4, "high": 0.6}}
    (root / "report/plots").mkdir(parents=True)
    (root / "report/summary.json").write_text(json.dumps(dict.fromkeys(arms, cell)))
    (root / "report/plots/learning.csv").write_text(
        "arm,seed,iteration,metric,value\nfull,0,0,in_domain,0.5\n"
    )
    commit(root, "x")
    words = ["compare", "--rev", "HEAD", "--rev", "HEAD", "--output", str(file)]
    for _ in range(2):
        assert main(["--root", str(root), *words]) == 0, "a page may be made again"
    assert "\x1b" not in capsys.readouterr().out
    for width, scheme in ((390, "dark"), (1400, "light")):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(file.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert EVIL in tab.inner_text("body")
    assert tab.query_selector_all("script, iframe, img:not([src^='data:image/svg+xml;base64,'])") == []
    assert tab.title() == "Comparison"
    assert tab.problems == []
    assert {url for url in tab.requests if not url.startswith("data:")} == {file.as_uri()}


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize(
    "names", [("policy", "full"), pytest.param((".", "--rev", "HEAD"), marks=pytest.mark.slow)]
)
def test_the_page_fits_every_screen_and_axe_finds_nothing_serious(root, tmp_path, tab, names):
    file = tmp_path / "page.html"
    assert main(["--root", str(root), "compare", *names, "--output", str(file)]) == 0
    tab.goto(file.as_uri())
    assert len(list(every_look(tab))) == 6
    assert tab.problems == []


def test_a_project_beside_itself_has_the_same_results(root, capsys):
    found = compared(root, ".", str(root))
    assert headline(found).endswith("have the same results.")
    assert found.settings == []
    assert main(["--root", str(root), "compare", ".", str(root)]) == 0
    assert f"the same results on both sides: {len(found.differences)} more" in capsys.readouterr().out
    page = comparison_md(found)
    assert "are not clear" not in page
    assert "| no |" not in page


def test_what_is_said_follows_values_and_no_words(root, tmp_path):
    """A message that begins as another, or the same results on a part of the tasks, misleads nobody."""
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    data = evaluation("full", 2)
    for seed in data["seeds"].values():
        seed["in_domain"] = dict(list(seed["in_domain"].items())[:8])
    write_evaluation(other, data)
    found = compared(root, ".", str(other))
    partly = [row for row in found.differences if row.paired_on is not None and row.paired_on.partly]
    assert [(row.group.arm, row.metric.name, row.paired_on) for row in partly] == [
        ("full", "in_domain", Pairing(2, 8, 24, same=True))
    ]
    assert str(Pairing(2, 8, 24, same=False)) == "2 seeds, 8 of 24 tasks"
    assert "Some panels share a part of their tasks only" in " ".join(notes(found))
    (other / "no run here").symlink_to(other / "runs")
    with pytest.raises(ConfigError, match=r"^no run here: holds runs of several arms .*; name one of them$"):
        compared(other, "no run here", "full")
