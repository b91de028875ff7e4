"""What DVC shows of a report: few numbers, and a page of plots that needs no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from report_cases import config

from rlanything.planning import dvcfile
from rlanything.stages.declared import PICTURES

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
HEADLINES = {
    "base": ["in_domain", "out_of_domain"],
    "outcome": ["in_domain", "out_of_domain"],
    "policy": ["in_domain", "out_of_domain"],
    "policy_reward": ["in_domain", "out_of_domain", "rm_process", "rm_pairwise"],
    "full": ["in_domain", "out_of_domain", "rm_process", "rm_pairwise", "accepted_tasks"],
}
DRAWN = "document.querySelectorAll('canvas, svg.marks').length"
SEEN = "[...document.images].filter(image => image.naturalWidth > 0).length"


def run(root: Path, *words: str) -> str:
    program = [sys.executable, "-m", "dvc"] if words[0] == "dvc" else [words[0]]
    env = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(
        [*program, *words[1:]], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def moved(reported, tmp_path_factory) -> Path:
    """A git repository with a report that is committed, and afterwards one number of it that moved."""
    root = shutil.copytree(reported, tmp_path_factory.mktemp("moved") / "project")
    (root / "dvc.yaml").write_text(dvcfile.text(config(), ROOT))
    (root / "params.yaml").write_text(yaml.safe_dump(config().model_dump(mode="json", by_alias=True)))
    shutil.copytree(ROOT / ".dvc", root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp", "*.local"))
    for name in (".dvcignore", ".gitignore"):
        shutil.copyfile(ROOT / name, root / name)
    for line in (
        "git init -q",
        "git add -A",
        "git -c user.name=a -c user.email=a@b commit -qm first",
    ):
        run(root, *line.split())
    path = root / "report" / "headline.json"
    numbers = json.loads(path.read_text())
    numbers["full"]["in_domain"] = 0.25
    path.write_text(json.dumps(numbers))
    return root


def test_the_headline_is_the_policys_success_and_what_else_an_arm_changes(reported):
    found, summary = (
        json.loads((reported / "report" / f"{name}.json").read_text()) for name in ("headline", "summary")
    )
    assert {arm: list(row) for arm, row in found.items()} == HEADLINES
    for arm, row in found.items():
        means = {name: summary[arm][name]["mean"] for name in row}
        assert row == pytest.approx(means, abs=0.6e-4), "the headline has fewer digits"


@pytest.mark.integration
def test_dvc_compares_the_headline_alone(moved):
    shown = json.loads(run(moved, "dvc", "metrics", "show", "--json"))
    assert list(shown[""]["data"]) == ["report/headline.json"]
    changed = json.loads(run(moved, "dvc", "metrics", "diff", "--json"))
    assert list(changed["report/headline.json"]) == ["full.in_domain"]


@pytest.mark.integration
def test_plots_are_ignored_by_git(moved):
    run(moved, "dvc", "plots", "diff", "HEAD")
    assert (moved / "dvc_plots" / "index.html").is_file()
    assert run(moved, "git", "status", "--porcelain") == " M report/headline.json\n"


def opened(browser: Any, moved: Path, vega: str | None) -> tuple[str, int, int, list[str]]:
    """The page's text, how many curves and figures it shows, and what went wrong, in a browser without a network."""
    run(moved, "dvc", "plots", "diff", "HEAD")
    library = moved / ".rla" / "vega.js"
    library.unlink(missing_ok=True)
    if vega is not None:
        library.parent.mkdir(exist_ok=True)
        library.write_text(vega)
    context = browser.new_context(offline=True)
    tab = context.new_page()
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto((moved / "dvc_plots" / "index.html").as_uri())
    tab.wait_for_function(f"{DRAWN} > 0 || document.body.innerText.includes('make plots') || window.given")
    found = tab.inner_text("body"), tab.evaluate(DRAWN), tab.evaluate(SEEN), problems
    assert tab.evaluate("typeof window.given") == ("undefined" if vega != STAND_IN else "object")
    context.close()
    return found


STAND_IN = "window.given = []; window.vegaEmbed = (place, spec) => given.push([place, spec]);"


@pytest.mark.integration
def test_without_a_network_the_page_shows_the_figures_and_says_what_draws_the_curves(moved, browser):
    text, drawn, figures, problems = opened(browser, moved, None)
    assert "`make plots` installs what draws it" in text
    assert (drawn, figures, problems) == (0, 2 * len(PICTURES), [])


@pytest.mark.integration
def test_the_library_of_this_machine_is_given_every_plot(moved, browser):
    text, _, figures, problems = opened(browser, moved, STAND_IN)
    assert "make plots" not in text
    assert (figures, problems) == (2 * len(PICTURES), [])


@pytest.mark.integration
def test_with_vega_the_curves_are_drawn_without_a_network(moved, browser):
    pytest.importorskip("vl_convert", reason="needs: pip install 'rlanything[plots]'")
    (line,) = (x for x in (ROOT / "Makefile").read_text().splitlines() if "import vl_convert" in x)
    vega = run(ROOT, sys.executable, "-c", line.split("'")[1])
    text, drawn, figures, problems = opened(browser, moved, vega)
    assert "Learning curves" in text
    assert (drawn, figures, problems) == (1, 2 * len(PICTURES), [])
