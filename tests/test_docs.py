"""The pages in docs/ say what is there: the made environment runs, every metric is explained, every path exists."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from copied_project import copy_project, python

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
EXAMPLE = (ROOT / "docs" / "environments.md").read_text().partition("\n## Begin with one that works\n")[2]
COMMANDS = re.search(r"```bash\n(.*?)```", EXAMPLE, flags=re.DOTALL)[1].splitlines()
MADE = re.findall(r"^\| `([a-z_/.A-Z]+)` \|", EXAMPLE.partition("\n## ")[0], flags=re.MULTILINE)
RESULTS = (ROOT / "docs" / "results.md").read_text()
QUICK = [
    "train.iterations=1",
    *(f"tasks.panels.{panel}.tasks=2" for panel in ("in_domain", "out_of_domain", "reward_panel")),
    "rollout.tasks=2",
    "evaluate.curve_tasks=1",
    "bootstrap.min_mu=0",
    *(f"bootstrap.{name}.{key}={value}" for name in ("policy", "reward", "adapter")
      for key, value in (("episodes", 16), ("steps", 4))),
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A copy of the project after the example's commands, the training made quicker."""
    return after_commands(tmp_path_factory.mktemp("example"), QUICK)


def after_commands(root: Path, more: list[str]) -> Path:
    """A copy of the project in which the example's commands were run; `more`: overrides of the training."""
    copy_project(root)
    for line in COMMANDS:
        program, *words = line.split()
        command = {"rlanything": ["-m", "rlanything"], "python": []}[program]
        python(root, *command, *words, *(more if words[0] == "train" else []))
    return root


def metrics(root: Path) -> str:
    """The metrics of the only run in the workspace."""
    (found,) = root.glob(".rla/trial-*/runs/full/seed-0/metrics.jsonl")
    return found.read_text()


@pytest.mark.long
@pytest.mark.integration
def test_the_page_lists_what_is_made(trained):
    made = {path for place in ("envs", "tests/envs") for path in (trained / place / "corridor").iterdir()}
    names = {str(path.relative_to(trained)) for path in made if path.is_file() and path.name != "__init__.py"}
    assert set(MADE) == names | {"experiments/env/corridor.yaml"}


@pytest.mark.long
@pytest.mark.integration
def test_the_example_environment_trains(trained):
    rows = [json.loads(line) for line in metrics(trained).splitlines()]
    assert len(rows) == 2
    assert rows[0]["status/env_error"] == 0
    assert rows[0]["status/ok"] + rows[0]["status/truncated"] > 0


@pytest.mark.slow
def test_the_example_environment_trains_at_the_smoke_scale_as_it_is(tmp_path):
    rows = [json.loads(line) for line in metrics(after_commands(tmp_path, [])).splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1, 2]
    assert max(row["accuracy"] for row in rows if "accuracy" in row) > 0, "no task was ever solved"


@pytest.mark.long
@pytest.mark.integration
def test_every_metric_of_a_run_is_explained(trained):
    text = metrics(trained)
    keys = {key for line in text.splitlines() for key in json.loads(line)}
    assert len(keys) > 30
    assert {key for key in keys if f"`{key}`" not in RESULTS} == set()


@pytest.mark.parametrize("page", DOCS, ids=[page.name for page in DOCS])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_list_of_pages_has_every_page_once():
    listed = re.findall(
        r"^\| \[([^\]]+)\]\(\1\) \|", (ROOT / "docs" / "README.md").read_text(), flags=re.MULTILINE
    )
    pages = [path.name for pattern in ("*.md", "*.ipynb") for path in (ROOT / "docs").glob(pattern)]
    assert sorted(listed) == sorted(set(pages) - {"README.md"})


PAGES = [*DOCS, ROOT / "README.md", ROOT / "docs" / "notebook.ipynb", *sorted(ROOT.glob("envs/*/README.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_a_page_lead_to_one_of_its_headings(page):
    links = re.findall(r"\]\(([^)#:\s]*\.md|)#([^)\s]+)\)", page.read_text())
    places = [((page.parent / name) if name else page, anchor) for name, anchor in links]
    assert [f"{of.name}#{anchor}" for of, anchor in places if anchor not in anchors(of.read_text())] == []


def test_an_anchor_is_made_as_github_makes_it():
    page = (
        "# A `b`: c\n```bash\n# no heading\n```\n## runs/&lt;arm&gt;/x-&lt;n&gt;\n## [Same](x.md)\n## Same\n"
    )
    assert anchors(page) == {"a-b-c", "runsarmx-n", "same", "same-1"}


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: list[str] = []
    for heading in re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE
    ):
        shown = html.unescape(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        found.append(re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-"))
    return {f"{name}-{found[:k].count(name)}" if name in found[:k] else name for k, name in enumerate(found)}


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md"], ids=lambda page: page.name)
def test_no_word_stands_where_something_is_still_to_be_written(page):
    assert placeholders(page.read_text()) == []


def test_a_placeholder_is_found_but_not_in_code():
    assert placeholders("### Speed\n\nBENCH\n\nIt is TBD.\n") == ["BENCH", "It is TBD."]
    assert placeholders("```text\nOK\n```\n\nA GPU, by DDP.\n") == []


def placeholders(text: str) -> list[str]:
    """Lines, outside of code, that are one word in capitals or have a usual mark of unfinished text."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.findall(r"^(?:[A-Z][A-Z_]+[.:]?|.*\b(?:T[O]DO|TBD|FIXME|XXX)\b.*)$", prose, flags=re.MULTILINE)


@pytest.mark.parametrize("page", DOCS, ids=[page.name for page in DOCS])
def test_the_code_of_a_page_uses_no_name_that_it_does_not_have(page):
    """As far as it begins with imports: the others are pieces."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    whole = [block for block in blocks if block.startswith(("import ", "from "))]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--select", "F821", "-"]
    for block in whole:
        result = subprocess.run(command, input=block, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.(?:py|yaml|toml|md))?)`", text)
    results = ("data/", "models/", "runs/", "labels/", "evaluation/", "report/")
    checked = [name for name in named if not name.startswith(results[:5])]
    assert len(checked) > 20
    places = (ROOT, ROOT / "rlanything")
    assert [name for name in checked if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize(("page", "of", "columns"), [("coding.md", "coding", 11), ("gui.md", "web", 4)])
def test_the_results_of_an_environment_are_those_of_its_report(page, of, columns):
    results = (ROOT / "docs" / page).read_text().partition("<!-- results:begin -->")[2]
    report = (ROOT / "report" / of / "report.md").read_text()
    rows = [
        line for line in results.partition("<!-- results:end -->")[0].splitlines() if line.startswith("| ")
    ]
    cells = [cell.strip() for row in rows[1:] for cell in row.strip("|").split("|")[1 : columns + 1]]
    assert len(cells) == 6 * columns
    assert [cell for cell in cells if f"| {cell} |" not in report] == []
