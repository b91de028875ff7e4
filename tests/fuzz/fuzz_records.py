"""What runs store: rollouts, tests, metrics, evaluations, provenance, tasks. The seeds are two small runs."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_buffers import quietly
from fuzz_target import HERE, Target, file_of

from rlanything.buffer.views.find.measurements import read_measurements
from rlanything.buffer.views.find.runs import open_run
from rlanything.compare.recorded import read_learning, read_summary
from rlanything.config import Config
from rlanything.files.manifest import damage, seal
from rlanything.files.reader import read_objects
from rlanything.files.records import read_lines
from rlanything.report.report_data import gather
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation
from rlanything.repro import run_rules
from rlanything.repro.origin import record as pages
from rlanything.repro.origin import text
from rlanything.repro.replay_report import render, replay_run
from rlanything.rewards.panel import parsed
from rlanything.rewards.step_votes.labels import LabelledTrajectory
from rlanything.rewards.unit_tests.evaluation import PanelProblem
from rlanything.runs import provenance
from rlanything.runs.layout import read_tasks
from rlanything.sweep.trials.measure import measure

SEEDS = HERE / "seeds"
RUN = Path("runs/full/seed-0")
ARCHIVE = "iter_0001.jsonl.gz"


def plain(path: str) -> Callable[[], list[bytes]]:
    """The file in both runs, unpacked."""

    def read() -> list[bytes]:
        files = [SEEDS / family / path for family in ("alfworld", "coding")]
        return [
            gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()
            for f in files
            if f.exists()
        ]

    return read


def short(path: str, lines: int = 2) -> Callable[[], list[bytes]]:
    """The first lines of the file in both runs."""
    return lambda: [b"".join(data.splitlines(keepends=True)[:lines]) for data in plain(path)()]


def within(family: str, path: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], Any]:
    """`Target.read`: the input takes the place of a file in one of the two runs. read: gets the project's folder."""

    def put(data: bytes, folder: Path) -> Any:
        root = folder / "project"
        shutil.copytree(SEEDS / family, root)
        (root / path).write_bytes(gzip.compress(data, 1) if path.endswith(".gz") else data)
        return read(root)

    return put


def _replayed(root: Path) -> None:
    render(replay_run(root / RUN, ["signals.lambda=0.7"]))


def _measured(path: Path) -> None:
    run = open_run(SEEDS / "alfworld" / RUN)
    read_measurements(run, 0, path)
    list(read_objects(path))


@cache
def _config(family: str) -> Config:
    return run_rules.own(SEEDS / family / RUN).config


def _reported(family: str) -> Callable[[Path], None]:
    def report(root: Path) -> None:
        gather(_config(family), root)
        measure(root, ["full"])

    return report


def _proven(root: Path) -> None:
    text.text(pages.assembled(provenance.read(root, "full"), {}, root))
    run_rules.own(root / RUN)
    provenance.differences(provenance.read(root, "full"), _config("alfworld"), root)


def _evaluated(path: Path) -> None:
    for panel in read_evaluation(path, "full").values():
        statistics.estimate(panel)


def _sealed(path: Path) -> str | None:
    (path.parent / "file").write_text("content")
    return damage(path.parent, None)


def _manifest() -> list[bytes]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        (Path(folder) / "file").write_text("content")
        seal(Path(folder), None)
        return [(Path(folder) / "manifest.json").read_bytes()]


def _different(root: Path) -> None:
    quietly("first-difference", str(root), str(SEEDS / "coding"))


def _voted_panel() -> list[bytes]:
    """A reward panel of steps: the episodes of a run, each step with a label."""
    lines = []
    for line in short(ROLLOUTS)()[0].splitlines():
        trajectory = json.loads(line)["trajectory"]
        lines.append({"labels": [True, *[None] * (len(trajectory["steps"]) - 1)], "trajectory": trajectory})
    return ["\n".join(map(json.dumps, lines)).encode()]


def _tested_panel() -> list[bytes]:
    """A reward panel of problems: the first task of a run with two programs."""
    task = json.loads(plain("tasks/in_domain.jsonl")()[1].splitlines()[0])
    line = {"task": task, "opening": "Add.", "programs": ["a", "b"], "dataset": [[True, None], [False, True]]}
    return [json.dumps(line).encode()]


def _panel(from_json: Callable[[Any], Any]) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        parsed(list(read_lines(path, "rlanything bootstrap")), from_json)

    return read


METRICS = str(RUN / "metrics.jsonl")
ROLLOUTS = str(RUN / "rollouts" / ARCHIVE)
TESTS = str(RUN / "tests" / ARCHIVE)
SUMMARY = (
    b'{"full": {"in_domain": {"mean": 0.5, "low": 0.4, "high": null, "vs_base": {"mean": 0.1, "p": 0.04}}}}'
)
CURVE = b"arm,seed,iteration,metric,value\nfull,0,5,in_domain,0.52\nfull,0,5,mu,1.2\n"
TARGETS = [
    Target(
        "archive",
        file_of(ARCHIVE, _measured),
        lambda: [gzip.compress(d, 1) for d in short(ROLLOUTS)()],
        file=ARCHIVE,
    ),
    Target(
        "rollouts-voted",
        within("alfworld", ROLLOUTS, _replayed),
        lambda: plain(ROLLOUTS)()[:1],
        "lines",
        examples=3,
    ),
    Target(
        "rollouts-tested",
        within("coding", ROLLOUTS, _replayed),
        lambda: plain(ROLLOUTS)()[1:],
        "lines",
        examples=8,
    ),
    Target("tests", within("coding", TESTS, _replayed), plain(TESTS), "lines", examples=8),
    Target(
        "metrics",
        within("alfworld", METRICS, _reported("alfworld")),
        lambda: plain(METRICS)()[:1],
        "lines",
        file="metrics.jsonl",
    ),
    Target(
        "metrics-replayed",
        within("coding", METRICS, _replayed),
        lambda: plain(METRICS)()[1:],
        "lines",
        examples=8,
    ),
    Target(
        "evaluation",
        file_of("full.json", _evaluated),
        plain("evaluation/full.json"),
        "json",
        file="full.json",
    ),
    Target(
        "evaluation-reported",
        within("coding", "evaluation/full.json", _reported("coding")),
        lambda: plain("evaluation/full.json")()[1:],
        "json",
        file="full.json",
    ),
    Target("summary", file_of("summary.json", read_summary), lambda: [SUMMARY], "json", file="summary.json"),
    Target(
        "learning",
        file_of("learning.csv", read_learning),
        lambda: [CURVE],
        words=CURVE.split(b","),
        file="learning.csv",
    ),
    Target(
        "provenance",
        within("alfworld", "provenance/full.json", _proven),
        lambda: plain("provenance/full.json")()[:1],
        "json",
        examples=4,
    ),
    Target(
        "starts",
        within("alfworld", "provenance/starts/full.json", _proven),
        lambda: plain("provenance/starts/full.json")()[:1],
        "json",
        examples=4,
    ),
    Target(
        "tasks",
        file_of("train.jsonl", read_tasks),
        plain("tasks/in_domain.jsonl"),
        "lines",
        file="train.jsonl",
    ),
    Target(
        "panel-voted", file_of("panel.jsonl", _panel(LabelledTrajectory.from_json)), _voted_panel, "lines"
    ),
    Target("panel-tested", file_of("panel.jsonl", _panel(PanelProblem.from_json)), _tested_panel, "lines"),
    Target("manifest", file_of("manifest.json", _sealed), _manifest, "json"),
    Target(
        "difference",
        within("coding", METRICS, _different),
        lambda: plain(METRICS)()[1:],
        "lines",
        examples=4,
    ),
]
