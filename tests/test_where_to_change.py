"""A metric, a sampler and a stage are added to a copy of the project, two files each at most, and appear everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PARTS = ("rlanything", "envs", "experiments", "params.yaml", "dvc.yaml")

REPORT = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from report_cases import config, evaluation, project, write_evaluation
from rlanything.report import figures
from rlanything.rewards.step_votes import evaluation as evaluation_module
from rlanything.stages.report import write_report

evaluation_module.ask = lambda judge, panel, run_seed: []
evaluation_module.score = lambda panel, said: {
    f"rm-{t}": evaluation_module.RewardScore((3, 4), (1, 4), (4, 8)) for t in range(4)
}

figures.PAPER.clear()  # to draw every figure in every form takes most of the seconds
figures.FORMATS.pop("png")
root = project(Path("made-up"), ("base", "full"))
for arm in ("base", "full"):
    data = evaluation(arm)
    for result in data["seeds"].values():
        result |= evaluation_module.VoteEvaluation(config(), None, None).results({"oracle": []}, 0)
    write_evaluation(root, data)
write_report(config(), root)
"""


@pytest.fixture
def copy(tmp_path) -> Path:
    """The project's source, to be changed."""
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def insert(file: Path, before: str, text: str) -> None:
    """Put `text` in front of the only place where `before` stands."""
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, text + before))


def python(copy: Path, *words: str) -> str:
    """What Python prints in the copy, with the copy's code."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sweep(copy: Path, line: str) -> str:
    """The dry run of a small sweep; `line` declares one thing of it."""
    file = copy / "experiments" / "sweep" / "small.yaml"
    file.write_text(f"{line}\nbudget: {{trials: 4}}\nspace:\n  signals.lambda: [0.5, 2.0]\n")
    return python(copy, "-m", "rlanything", "sweep", str(file), "--dry-run")


def test_a_metric_is_measured_and_declared(copy):
    insert(
        copy / "rlanything/rewards/step_votes/evaluation.py",
        '            "rm_outcome": {task: list(s.outcome)',
        '            "rm_good": {task: list(s.good) for task, s in first.items()},\n',
    )
    insert(
        copy / "rlanything/report/results/metrics.py",
        '        Metric(\n            "rm_outcome",',
        '        Metric("rm_good", "RM good", {"votes": "RM on good steps"}, HITS, "Meaning of it."),\n',
    )
    said = python(copy, "-c", REPORT, str(ROOT / "tests" / "report"))
    assert "RM good" in said
    report = copy / "made-up" / "report"
    page = (report / "report.md").read_text()
    assert "| arm | Accuracy in-domain | paper |" in page
    assert "RM pairwise accuracy | RM on good steps | RM outcome accuracy | paper |" in page
    assert "### RM on good steps\n" in page
    assert "Meaning of it." in page
    summary = json.loads((report / "summary.json").read_text())
    assert [row["rm_good"]["mean"] for row in summary.values()] == [0.75, 0.75]
    assert "rm_good" in sweep(copy, "objectives: [rm_good]")


def test_a_sampler_is_declared(copy):
    file = copy / "rlanything/sweep/declare/samplers.py"
    insert(
        file, "\n\n@dataclass(frozen=True)\nclass SamplerSpec", "from optuna.samplers import NSGAIIISampler\n"
    )
    insert(
        file,
        '    "qmc": SamplerSpec(',
        '    "nsga3": SamplerSpec(lambda seed, startup: NSGAIIISampler(seed=seed, population_size=startup)),\n',
    )
    assert "nsga3" in sweep(copy, "sampler: nsga3")


def test_a_stage_is_written_and_declared(copy):
    (copy / "rlanything/stages/archive.py").write_text(
        '"""Stage `archive`."""\n\nfrom rlanything.config import Config\n\n\ndef archive(config: Config) -> None:\n'
        '    print("archive: seed", config.seed)\n'
    )
    insert(
        copy / "rlanything/stages/declared.py",
        "STAGES = (\n",
        "def _archive(config: Config, root: Path, arm: str) -> None:\n"
        "    from rlanything.stages.archive import archive\n\n"
        "    archive(config)\n\n\n",
    )
    insert(
        copy / "rlanything/stages/declared.py",
        "    Stage(\n        name=stages.REPORT,\n",
        '    Stage(\n        name="archive",\n        module="rlanything.stages.archive",\n'
        '        help="keep the models",\n        about="The models",\n        work=_archive,\n'
        '        deps=lambda config: ("models",),\n        params=("seed",),\n        outs=("archive",),\n'
        "        makes=(),\n    ),\n",
    )
    assert "keep the models" in python(copy, "-m", "rlanything", "--help")
    python(copy, "-m", "rlanything", "config", "pipeline")
    stage = yaml.safe_load((copy / "dvc.yaml").read_text())["stages"]["archive"]
    assert stage["cmd"] == "python -m rlanything archive"
    assert {"models", "rlanything/stages/archive.py"} <= set(stage["deps"])
    assert "archive: seed 0" in python(copy, "-m", "rlanything", "archive")
