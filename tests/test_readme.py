"""README.md promises only what is there: every command is real, every file exists, and the cheap commands are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlanything.buffer import TaskBuffer, append_events, write_snapshot
from rlanything.cli import build_parser, main
from rlanything.config import parse
from rlanything.planning import compose
from rlanything.runs.layout import Layout, read_tasks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
INLINE = [x for x in re.findall(r"`([^`\n]+)`", README) if x.split()[0] in ("make", "rlanything", "dvc")]
LINES = [line.strip() for block in BLOCKS for line in block.splitlines() if line.strip()]
COMMANDS = [*dict.fromkeys([*LINES, *INLINE])]
NOT_OURS = (".",)
"""Shell built-ins."""
MADE = (
    "provenance/starts/",
    "report/",
    "data/",
    "models/",
    "runs/",
    "evaluation/",
    "sweeps/",
    ".rla",
    "bench.json",
    "dvc_plots/",
)
"""What running makes."""


def words_of(line: str) -> list[str]:
    """The words of a command, without comment and leading assignments."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    return words


def of(program: str) -> list[str]:
    """The README's commands of one program."""
    return [line for line in COMMANDS if words_of(line)[0] == program]


def stages() -> set[str]:
    """The stages of dvc.yaml, those of a matrix by their full names too."""
    found = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    keys = {f"{name}@{key}" for name, stage in found.items() for key in stage.get("foreach", {})}
    return set(found) | keys


def test_every_line_is_a_command_that_is_checked():
    programs = {words_of(line)[0] for line in COMMANDS}
    assert programs == {"make", "rlanything", "dvc", *NOT_OURS}


def test_it_opens_with_the_two_commands():
    assert [line.split("#")[0].strip() for line in BLOCKS[0].splitlines()] == ["make repro", "make test"]


@pytest.mark.parametrize("line", of("make"))
def test_make_targets_and_variables_exist(line):
    for word in words_of(line)[1:]:
        name, equals, _ = word.partition("=")
        pattern = rf"^{name} \?=" if equals else rf"^{name}:"
        assert re.search(pattern, MAKEFILE, flags=re.MULTILINE), word


@pytest.mark.parametrize("line", of("rlanything"))
def test_the_command_line_takes_it(line):
    words = words_of(line)[1:]
    args = build_parser().parse_args(["buffer", "ls"] if words == ["buffer"] else words)
    assert callable(args.run)


@pytest.mark.parametrize("line", [x for x in COMMANDS if "rlanything config" in x or "-S " in x])
def test_overrides_compose_and_validate(line):
    config = parse(compose.compose([w for w in words_of(line) if "=" in w], ROOT))
    assert {"outcome", "policy", "policy_reward", "full"} <= set(config.arms)


@pytest.mark.parametrize("line", [x for x in COMMANDS if "--arm" in x])
def test_arms_exist(line):
    words = words_of(line)
    assert words[words.index("--arm") + 1] in parse(compose.compose((), ROOT)).arms


@pytest.mark.parametrize("line", of("dvc"))
def test_dvc_takes_it(line):
    from dvc.cli import parse_args

    words = words_of(line)[1:]
    parse_args(words)
    if words[0] == "repro":
        assert set(words[1:]) <= stages()


def test_files_exist():
    linked = re.findall(r"\]\(([^):#]+)\)", README)
    named = re.findall(r"`([\w./-]+(?:/|\.(?:yaml|md|py|json|toml)))`", README)
    rooms = {
        name for name in named if (ROOT / "envs" / name).exists() or (ROOT / "rlanything" / name).exists()
    }
    wanted = [n for n in (*linked, *named) if not n.startswith(MADE) and n not in (*rooms, "summary.json")]
    assert len(wanted) > 10
    assert [name for name in wanted if not (ROOT / name).exists()] == []


def test_the_results_have_a_place():
    assert README.count("<!-- results:begin -->") == README.count("<!-- results:end -->") == 1
    assert README.index("<!-- results:begin -->") < README.index("<!-- results:end -->")


def test_the_results_are_those_of_the_report():
    """Every number of the table, with its interval, is a cell of the report."""
    report = (ROOT / "report" / "report.md").read_text()
    table = README.partition("<!-- results:begin -->")[2].partition("<!-- results:end -->")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows[1:] for cell in row[1:-1]]
    assert len([cell for cell in cells if "[" in cell]) >= 2 * 10
    assert [cell for cell in cells if f"| {cell} |" not in report] == []


def test_the_reward_models_column_has_the_reports_numbers_of_that_name():
    """Plain accuracy and balanced accuracy are two metrics, with two names in the report."""
    report = (ROOT / "report" / "report.md").read_text()
    section = report.partition("### RM process accuracy\n")[2].partition("###")[0]
    table = README.partition("<!-- results:begin -->")[2].partition("<!-- results:end -->")[0]
    head, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("| ")
    ]
    place = head.index("RM process")
    for row in rows:
        for cell in row[place : place + 3]:
            assert cell == "–" or f"| {cell} |" in section, row[0]


def test_the_task_buffer_that_it_shows_is_the_recorded_one():
    """Each line of the excerpt is in report/buffers.md, which writes words as ~~old~~**new** and escapes some signs."""
    excerpt = README.partition("```console\n$ rlanything buffer diff full/seed-0\n")[2].partition("```")[0]
    counts, slot, words, why = [
        line.strip() for line in excerpt.splitlines() if line.strip() not in ("", "...")
    ]
    report = (ROOT / "report" / "buffers.md").read_text().replace("&#64;", "@")
    assert f"**{counts}**" in report
    number, path, way, old, new = re.fullmatch(
        r"slot (\d+)  (v0 -> v\d)  (\w+)  accuracy (\S+) -> (\S+)", slot
    ).groups()
    task = re.sub(r"\{\+(.*?)\+\}", r"**\1**", re.sub(r"\[-(.*?)-\]", r"~~\1~~", words))
    (row,) = [
        x
        for x in report.splitlines()
        if x.startswith(f"| {number} | {path} | {way} | {old} → {new} | {task}<br>")
    ]
    assert row.endswith(f"| {why} |")


def test_it_can_be_read_in_a_minute_before_the_details():
    """What it is, the commands, what one gets, and when to take another library: before the first table of results."""
    opening = README.partition("\n## Result\n")[0]
    assert len(re.findall(r"\w+", re.sub(r"```.*?```|\(\S+\)", "", opening, flags=re.DOTALL))) < 600
    assert opening.index("](docs/view/steps.png)") < opening.index("| you want | take |")
    assert all(f"[{name}](https://" in opening for name in ("TRL", "verl", "prime-rl"))


def test_the_iteration_has_the_numbers_that_the_default_scale_has():
    config = parse(compose.compose((), ROOT))
    assert f"next {config.rollout.tasks} slots" in README
    assert f"each task {config.rollout.rollouts} times" in README
    assert f"votes {config.judge.m} times" in README


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project under git, with tasks and two runs in which nothing has happened yet."""
    root = tmp_path_factory.mktemp("readme")
    for name in ("envs", "experiments", "rlanything", ".dvc"):
        ignored = shutil.ignore_patterns("__pycache__", "cache", "tmp", "*.local")
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("Makefile", "dvc.yaml", "pyproject.toml", ".gitignore", ".dvcignore"):
        shutil.copyfile(ROOT / name, root / name)
    assert run(root, "rlanything config write scale=smoke").returncode == 0
    assert run(root, "rlanything tasks").returncode == 0
    start = TaskBuffer.start(read_tasks(Layout(root).tasks("train")))
    for seed in (0, 1):
        folder = Layout(root).run("full", seed) / "buffer"
        write_snapshot(start, folder / "iter_0000.jsonl")
        append_events(folder / "events.jsonl", [], start.digest)
    for line in ("git init -q", "git add -A", "git -c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(line.split(), cwd=root, check=True)
    return root


def run(root: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A line of the README in `root`, with its sources and this interpreter."""
    words = words_of(line)
    if words[0] in ("rlanything", "dvc"):
        words = [sys.executable, "-m", *words]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(root),
        "OMP_NUM_THREADS": "1",
        "DVC_NO_ANALYTICS": "1",
    }
    return subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=False)


CHEAP = [
    *(x for x in of("rlanything") if words_of(x)[1] in ("config", "plan") and "env=" not in x),
    *(x for x in of("rlanything") if words_of(x)[1] == "buffer" and "HEAD" not in x and len(words_of(x)) > 2),
    *(x for x in of("rlanything") if "--dry-run" in x),
    *(
        x
        for x in of("dvc")
        if words_of(x)[1:] in (["metrics", "diff"], ["exp", "show", "--only-changed"], ["plots", "diff"])
    ),
    *(x for x in of("make") if words_of(x) == ["make", "help"]),
]


@pytest.mark.integration
@pytest.mark.parametrize("line", [line for line in CHEAP if words_of(line)[0] == "rlanything"])
def test_cheap_commands_of_ours_run(project, line, monkeypatch, capsys):
    """In this process: each of its own takes seconds to start. The fixture has two such processes."""
    monkeypatch.chdir(project)
    if "--params trial.yaml" in line:
        assert main(words_of(next(x for x in CHEAP if "--output trial.yaml" in x))[1:]) == 0
    code, said = main(words_of(line)[1:]), capsys.readouterr()
    assert code == 0, said.out + said.err
    assert said.out


@pytest.mark.integration
@pytest.mark.parametrize("line", [line for line in CHEAP if words_of(line)[0] != "rlanything"])
def test_cheap_commands_of_others_run(project, line):
    result = run(project, line)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout or words_of(line)[0] == "dvc"


@pytest.mark.integration
def test_smoke_and_default_repro_are_what_the_readme_says(project):
    for line, expected in (("make repro", "dvc repro"), ("make repro SCALE=smoke", ".rla/smoke")):
        result = run(project, f"{line} --dry-run")
        assert expected in result.stdout
