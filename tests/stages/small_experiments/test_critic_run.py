"""The model critic and the edit `tokens` with real models: taught, trained, killed and resumed, replayed."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from stage_cases import ROOT, contents, lines, small

from rlanything.cli import main
from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.loop.critic import CriticRecord
from rlanything.loop.summaries import read_summary
from rlanything.repro import replay_report
from rlanything.runs.folder import RunFolder
from rlanything.stages import tasks, train
from rlanything.stages.bootstrap.stage import make_models

RUN = Path("runs/full/seed-0")
pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(900)]


def config() -> Config:
    """Two stages, any vote marks, and the goal's two types to change."""
    return small(
        "env.edit=tokens",
        "adaptation.critic=model",
        "adaptation.marked=any",
        "adaptation.critic_stages=2",
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A project with tasks, models and a finished run of arm `full`; not to be changed."""
    root = tmp_path_factory.mktemp("critic")
    (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(config(), root)
    make_models(config(), root)
    train.train_arm(config(), root, "full")
    return root


def records(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(x) for p in sorted(folder.iterdir()) for x in gzip.decompress(p.read_bytes()).splitlines()
    ]


def test_a_run_stores_every_reply_of_the_critic_and_the_event_has_its_text(project):
    stored = [CriticRecord.from_json(record) for record in records(project / RUN / "critics")]
    events = [
        e
        for e in lines(project / RUN / "buffer" / "events.jsonl")[1:]
        if e["kind"] in ("proposed", "invalid")
    ]
    assert [(r.slot, r.task_id, r.criticism.text) for r in stored] == [
        (e["slot"], e["parent_id"], e["critic"]) for e in events
    ]
    critiques = [c for record in stored for c in record.criticism.critiques]
    assert {c.step is None for c in critiques} == {True, False}
    assert len({c.seed for c in critiques}) == len(critiques)
    for critique in critiques:
        assert (critique.summary, critique.reason) == read_summary(critique.reply)
    rows = lines(project / RUN / "metrics.jsonl")[:-1]
    assert sum(row["critiques"] for row in rows) == len(critiques)


def test_a_run_that_is_killed_at_every_iteration_ends_with_the_same_bytes(project, tmp_path, monkeypatch):
    root = tmp_path / "project"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    publish = RunFolder.publish

    def publish_and_die(self, iteration, write):
        publish(self, iteration, write)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "publish", publish_and_die)
    for _ in range(config().train.iterations + 1):
        with pytest.raises(KeyboardInterrupt):
            train.train_arm(config(), root, "full")
    monkeypatch.setattr(RunFolder, "publish", publish)
    train.train_arm(config(), root, "full")
    assert contents(root / RUN) == contents(project / RUN)


@pytest.fixture
def copy(project, tmp_path) -> Path:
    """A copy of the finished run and its record: a replay needs nothing else."""
    for name in ("runs", "provenance"):
        shutil.copytree(project / name, tmp_path / name)
    return tmp_path


def test_a_replay_reads_the_replies_again(copy, capsys):
    assert main(["--root", str(copy), "replay", "full"]) == 0
    assert "the same  every advantage, decision, buffer and metric" in capsys.readouterr().out


def test_the_critic_says_the_same_when_the_run_is_played_again(project):
    assert replay_report.replay_run(project / RUN, (), play=True).problem == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: record | {"text": "made up"}, "critic: text is made up, replayed"),
        (
            lambda record: (
                record | {"critiques": [c | {"reply": r"\boxed{Made up.}"} for c in record["critiques"]]}
            ),
            "critic: text is",
        ),
    ],
)
def test_a_replay_names_a_critic_that_was_tampered_with(copy, change, says):
    path = next(p for p in sorted((copy / RUN / "critics").iterdir()) if gzip.decompress(p.read_bytes()))
    first, *rest = gzip.decompress(path.read_bytes()).splitlines()
    changed = [json.dumps(change(json.loads(first))).encode(), *rest]
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in changed)))
    assert says in replay_report.replay_run(copy / RUN, ()).problem


def test_a_replay_without_the_critics_says_what_is_missing(copy):
    shutil.rmtree(copy / RUN / "critics")
    with pytest.raises(ConfigError, match="critics of every iteration"):
        replay_report.replay_run(copy / RUN, ())
