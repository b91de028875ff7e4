"""Logs for inspect_ai: the package reads what the run has."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from rlanything.exports.export import export

pytestmark = [pytest.mark.long, pytest.mark.integration]
NEEDED = "inspect_ai is not installed: make exports, or pip install -e '.[exports]'"


def logs(folder: Path) -> list[Any]:
    """The logs as the package reads them, by iteration."""
    log = pytest.importorskip("inspect_ai.log", reason=NEEDED)
    listed = log.list_eval_logs(str(folder), descending=False)
    return [log.read_eval_log(info.name) for info in listed]


def test_every_rollout_is_a_sample_with_its_scores(exported, records):
    found = [(k, sample) for k, log in enumerate(logs(exported("inspect"))) for sample in log.samples]
    assert len(found) == len(records)
    by_place = {(k, s.id, s.epoch): s for k, s in found}
    for k, record in records:
        trajectory = record.episode.trajectory
        name = f"slot-{trajectory.slot}{'-rewrite' if record.proposal else ''}"
        sample = by_place[k, name, trajectory.rollout + 1]
        assert sample.scores["outcome"].value == ("C" if trajectory.outcome > 0 else "I")
        replies = [m.text for m in sample.messages if m.role == "assistant"]
        assert replies == [step.action for step in trajectory.steps]
        assert sample.output.completion == trajectory.steps[-1].action
        votes = [[v["verdict"] for v in step["votes"]] for step in sample.metadata["steps"]]
        assert votes == [[v.verdict for v in judgement.votes] for judgement in record.episode.judgements]
        reasons = [[v["reason"] for v in step["votes"]] for step in sample.metadata["steps"]]
        assert reasons == [[v.reasoning for v in judgement.votes] for judgement in record.episode.judgements]
        advantages = record.episode.advantages
        assert ("advantage" in sample.scores) == (advantages is not None)
        if advantages is not None:
            assert sample.scores["advantage"].value == pytest.approx(sum(advantages) / len(advantages))
        rewards = [step["reward"] for step in sample.metadata["steps"]]
        assert sample.scores["reward"].value == pytest.approx(sum(rewards) / len(rewards))


def test_a_log_says_what_was_evaluated_and_how_well(exported, records, undisturbed):
    for k, log in enumerate(logs(exported("inspect"))):
        outcomes = [r.episode.trajectory.outcome > 0 for i, r in records if i == k]
        assert (log.status, log.eval.task, log.eval.model) == (
            "success",
            "full/seed-0",
            f"policy/iteration-{k}",
        )
        assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(sum(outcomes) / len(outcomes))
        assert log.results.total_samples == len(outcomes)
        fingerprint = json.loads((undisturbed.parents[2] / "provenance" / "full.json").read_text())[
            "fingerprint"
        ]
        assert log.eval.metadata["fingerprint"] == fingerprint
        assert len({sample.uuid for sample in log.samples}) == len(outcomes)


def test_the_viewer_of_the_package_takes_the_folder(exported, tmp_path):
    pytest.importorskip("inspect_ai", reason=NEEDED)
    command = Path(sys.executable).with_name("inspect")
    where = ["--log-dir", str(exported("inspect")), "--output-dir", str(tmp_path / "page")]
    subprocess.run([command, "view", "bundle", *where], check=True, capture_output=True, cwd=tmp_path)
    kept = {path.name for path in exported("inspect").glob("*.eval")}
    assert {path.name for path in (tmp_path / "page" / "logs").glob("*.eval")} == kept
    listing = json.loads((tmp_path / "page" / "logs" / "listing.json").read_text())
    assert set(listing) == kept


def test_programs_and_their_tests_are_in_the_metadata(coding_project, tmp_path):
    export("full", "inspect", tmp_path / "out", root=coding_project)
    found = [sample for log in logs(tmp_path / "out") for sample in log.samples]
    assert found
    for sample in found:
        (row,) = [p for p in sample.metadata["tests"]["programs"] if p["rollout"] == sample.epoch - 1]
        assert (sample.scores["outcome"].value == "C") == row["right"]
        assert "mean_vote" not in sample.scores


def test_the_zip_is_the_format_without_the_package(exported, records):
    """What a log is made of, where inspect_ai is not installed; dates are fixed, so bytes are."""
    for k, path in enumerate(sorted(exported("inspect").glob("*.eval"))):
        with ZipFile(path) as archive:
            names = archive.namelist()
            samples = [name for name in names if name.startswith("samples/")]
            assert len(samples) == len(set(samples)) == sum(i == k for i, _ in records)
            assert {"header.json", "summaries.json", "_journal/start.json"} == set(names) - set(samples)
            assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert json.loads(archive.read("header.json"))["version"] == 2
            summaries = json.loads(archive.read("summaries.json"))
            assert [f"samples/{s['id']}_epoch_{s['epoch']}.json" for s in summaries] == samples


def test_hostile_texts_and_crashes_stay_data(undisturbed, tmp_path):
    evil = "</script><img src=x onerror=alert(1)>\x00\x1b[31m\ud800\u2028 ![x](javascript:1) {{7*7}} ../../x"
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    file = tmp_path / "runs/full/seed-0/rollouts/iter_0001.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    for record in lines:
        trajectory = record["trajectory"]
        trajectory["first_observation"] = trajectory["error"] = evil
        trajectory["status"] = "env_error"
        for step in trajectory["steps"]:
            step["observation"] = evil
        for judgement in record["judgements"]:
            for vote in judgement["votes"]:
                vote["reasoning"] = evil
    file.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in lines).encode()))
    made = export("full", "inspect", tmp_path / "out", root=tmp_path)
    first = sorted(made.place.glob("*.eval"))[0]
    with ZipFile(first) as archive:
        assert all(".." not in name for name in archive.namelist())
        sample = json.loads(archive.read(next(n for n in archive.namelist() if n.startswith("samples/"))))
    cleaned = evil.replace("\ud800", "\\ud800")
    assert sample["error"]["message"] == cleaned
    assert sample["metadata"]["steps"][0]["votes"][0]["reason"] == cleaned
    assert logs(tmp_path / "out")[0].samples[0].error.message == cleaned


def test_a_rollout_whose_context_was_full_is_a_failure_and_no_error(undisturbed, tmp_path):
    """It counts in the accuracy, so Inspect must not take it for a sample that did not complete."""
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    file = tmp_path / "runs/full/seed-0/rollouts/iter_0001.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    lines[0]["trajectory"] |= {"status": "truncated", "outcome": -1, "error": "the policy's context is full"}
    file.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in lines).encode()))
    made = export("full", "inspect", tmp_path / "out", root=tmp_path)
    with ZipFile(sorted(made.place.glob("*.eval"))[0]) as archive:
        samples = [json.loads(archive.read(n)) for n in archive.namelist() if n.startswith("samples/")]
        results = json.loads(archive.read("header.json"))["results"]
    (full,) = [one for one in samples if one["metadata"]["error"]]
    assert (full["scores"]["outcome"]["value"], "error" in full) == ("I", False)
    assert results["completed_samples"] == len(samples)
