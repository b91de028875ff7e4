"""`rlanything report --run`: one run as a page, with its seeds only, also in training and without an evaluation."""

from __future__ import annotations

import json
import shutil

import pytest
from compare_cases import experiment, figures_made
from page_cases import every_look
from report_cases import config, evaluation, metrics

from rlanything.buffer import TaskBuffer, write_snapshot
from rlanything.cli import main
from rlanything.compare.figures import folder_of, free, free_folder
from rlanything.compare.run.page import single_md
from rlanything.compare.run.single import single
from rlanything.core.errors import ConfigError
from rlanything.files.reader import FileError
from rlanything.report.drawn.canvas import Chart, empty
from rlanything.report.figures import KINDS
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import contrast, estimate

CHART = Chart("learning", (), lambda: empty(2, 1, 1)[0])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return experiment(tmp_path_factory.mktemp("experiment"))


def test_a_run_has_the_numbers_of_its_seed_alone(root):
    found = single("full/seed-1", root)
    panels = [read_evaluation(root / f"evaluation/{arm}.json", arm)["in_domain"] for arm in ("full", "base")]
    mine, base = (panel.at([1], panel.tasks) for panel in panels)
    cell = found.data.cells["full"]["in_domain"]
    assert cell.value == estimate(mine)
    assert cell.difference == contrast(mine, base).difference
    assert list(found.data.curves["full"]) == [1]
    assert list(found.data.votes["full"]) == [1]
    assert len(found.data.extras.within["full"]["in_domain"]) == 1


def test_an_arm_has_all_of_its_seeds(root):
    found = single("full", root)
    assert (found.name, found.seeds) == ("full", [0, 1])
    text = single_md(found)
    assert "Arm `full`, seed 0, 1." in text
    assert "About a single new run: an interval over 2 seeds is for their mean." in text


def test_the_page_says_what_became_of_tasks_and_what_it_was_made_from(root):
    text = single_md(single("full/seed-0", root))
    assert "| 0 | 72 | 0 | 0 | 0 | 0 |" in text
    assert "Seed 0: its draws derive from 41; its folder is `0000000000000000`." in text
    assert "Seed 1" not in text
    assert "About other trainings: this is one seed." in text


def test_the_papers_values_stand_beside_those_of_a_run_of_its_arms(root):
    lines = single_md(single("full", root)).split("\n")
    (values,) = [line for line in lines if line.startswith("| Accuracy out-of-domain | ") and "[" in line]
    assert values.endswith("| 63.6 | +18.7 |")
    assert any(line.startswith("Paper: arXiv 2602.02488 v1, Table 1") for line in lines)
    assert "Paper: arXiv" not in single_md(single("outcome", root)).partition("## What may not")[0]


def test_seconds_by_phase_are_shown_where_this_machine_has_them(root, tmp_path):
    timed = tmp_path / "timed"
    shutil.copytree(root, timed, symlinks=True)
    place = timed / ".rla/timings/full/seed-0.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    laps = [
        {"iteration": k, "phases": {"learn": {"seconds": 2.0 + k}, "rollout": {"seconds": 4.0},
                                    "rollout/generate": {"seconds": 3.0}}} for k in range(2)
    ]  # fmt: skip
    place.write_text("".join(json.dumps(lap) + "\n" for lap in laps))
    text = single_md(single("full", timed))
    assert "| seed | `rollout` | `learn` |" in text
    assert "| 0 | 4.0 | 2.5 |" in text
    assert "| 1 | – | – |" in text
    place.write_text('{"iteration": 0, "phases": {"learn": 3, "rollout": {"seconds": null}}}\n')
    assert "Seconds by phase" not in single_md(single("full", timed))
    assert "Seconds by phase" not in single_md(single("full", root))


def test_without_an_evaluation_there_are_curves_and_no_claim(root, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(root, bare, symlinks=True)
    shutil.rmtree(bare / "evaluation")
    text = single_md(single("policy/seed-0", bare))
    assert "no final checkpoint was measured" in text
    assert "## Result" not in text
    assert "untrained base (p" not in text


def test_a_run_in_training_shows_what_is_published(tmp_path):
    of = config()
    experiment(tmp_path, ("base",))
    place = tmp_path / ".rla/live/1f/full"
    start = TaskBuffer.start([])
    own = of.model_dump(mode="json", by_alias=True, include={"arms", "judge", "model", "env"})
    own["signals"] = of.signals.model_dump(mode="json", by_alias=True) | {"lambda": 0.75}
    for i, row in enumerate(metrics("full", 0)[:3]):
        folder = place / f"seed-0/iterations/{i:04d}"
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps(row))
        write_snapshot(start, folder / "buffer.jsonl")
        (folder / "events.jsonl").write_text("")
    write_snapshot(start, place / "seed-0/iter_0000.jsonl")
    (place / "origin.json").write_text(json.dumps({"config": own, "code": {}, "inputs": {}, "packages": {}}))
    found = single("full", tmp_path)
    assert (found.finished, found.iterations, found.evaluated) == (False, 3, False)
    assert found.data.config.signals.lambda_ == 0.75, "as the run keeps it, not as params.yaml has it now"
    text = single_md(found)
    assert "In training: 3 of 24 iterations are published and shown." in text
    assert str(tmp_path) not in text
    assert "How it ends: the run is in training." in text
    (folder / "metrics.json").write_text('{"iteration": 2, "accepted": Infinity}')
    with pytest.raises(FileError, match=r"0002/metrics\.json: iteration 2: 'accepted' is Infinity"):
        single("full", tmp_path)


@pytest.mark.slow
def test_a_folder_has_the_figures_as_files_with_their_numbers(root, tmp_path, monkeypatch):
    words = ["--root", str(root), "report", "--run", "full", "--output", f"{tmp_path}/run/"]
    made = figures_made(monkeypatch)
    assert main(words) == 0
    assert free_folder(tmp_path / "run").problem(tmp_path / "run") == "", "a folder may be made again"
    page = (tmp_path / "run/index.html").read_text()
    files = {path.name for path in (tmp_path / "run/figures").iterdir()}
    names = {name.partition(".")[0] for name in files}
    assert {"learning", "reward_model", "theorem_1", "calibration", "votes_and_outcomes", "steps"} <= names
    assert "gains" not in names, "the page does not show it"
    assert len(made) == len(names), "what no page shows is not drawn"
    assert files == {f"{name}.{kind}" for name in names for kind in KINDS}
    assert all(f'href="figures/{name}"' in page for name in files)
    assert (tmp_path / "run/figures/learning.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "run/figures/learning.csv").read_text().startswith("panel,arm,of,x,value,low,high\n")


@pytest.mark.parametrize("mine", ["mine.txt", "figures/mine.png", "figures/more/learning.csv"])
def test_a_folder_with_a_file_of_mine_in_it_stays(tmp_path, mine):
    made = folder_of("Run full", "# Run\n\n![Learning](figures/learning.png)\n\n", [CHART])
    for name, content in made.items():
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(content)
    assert free_folder(tmp_path / "run").problem(tmp_path / "run") == "", "a folder may be made again"
    (tmp_path / "run" / mine).parent.mkdir(exist_ok=True)
    (tmp_path / "run" / mine).write_text("mine")
    with pytest.raises(ConfigError, match="holds other files than a page of a run or of a comparison"):
        free_folder(tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "ful"], "did you mean 'full'?"),
        (["--run", "runs"], "holds runs of several arms (full, outcome, policy); name one of them"),
        (["full/seed-0"], "the page of one run: report --run full/seed-0"),
        (["--run", "full", "signals.lambda=1"], "it takes no 'signals.lambda=1'"),
        (["--output", "x.html"], "only with --run"),
        (["--run", "no run", "--output", "."], "--output .: is a folder, not a file"),
        (["--run", "no run", "--output", "params.yaml/"], "is a file, not a folder"),
        (["--run", "no run", "--output", "params.yaml"], "exists and is no page of a run or of a comparison"),
        (["--run", "no run", "--output", "params.yaml/x"], "cannot be written to"),
    ],
)
def test_what_cannot_be_shown_is_said(root, capsys, monkeypatch, words, said):
    monkeypatch.chdir(root)
    assert main(["--root", str(root), "report", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_damaged_evaluation_is_named(root, tmp_path, capsys):
    bad = tmp_path / "bad"
    shutil.copytree(root, bad, symlinks=True)
    (bad / "evaluation/full.json").write_text(json.dumps({**evaluation("full", 2), "arm": "other"}))
    assert main(["--root", str(bad), "report", "--run", "full"]) == 2
    assert "evaluation/full.json: holds arm 'other', not 'full'" in capsys.readouterr().err


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300, 10**400])
def test_a_number_that_no_run_has_is_one_clear_line(root, tmp_path, capsys, value):
    bad = tmp_path / "bad"
    shutil.copytree(root, bad, symlinks=True)
    path = bad / "runs/full/seed-1/metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[5]["accepted"] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["--root", str(bad), "report", "--run", "full"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "runs/full/seed-1/metrics.jsonl, line 6: iteration 5: 'accepted' is " in said


@pytest.mark.slow
@pytest.mark.integration
def test_the_page_in_a_browser(root, tmp_path, tab, capsys):
    file = tmp_path / "run.html"
    assert main(["--root", str(root), "report", "--run", "full/seed-0", "--output", str(file)]) == 0
    assert f"wrote {file}" in capsys.readouterr().out
    assert free(file).problem(file) == "", "a page may be made again"
    tab.goto(file.as_uri())
    assert tab.title() == "Run full/seed-0"
    assert tab.inner_text("h1 + p").startswith("full/seed-0: Accuracy in-domain")
    assert tab.evaluate(
        "[...document.images].every(image => image.naturalWidth > 0) && document.images.length > 8"
    )
    links = tab.evaluate("[...document.querySelectorAll('a')].map(link => link.getAttribute('href'))")
    assert all(link.startswith("#") and tab.query_selector(f"[id='{link[1:]}']") for link in links)
    assert len(list(every_look(tab))) == 6
    assert {url for url in tab.requests if not url.startswith("data:")} == {file.as_uri()}
    assert tab.problems == []
