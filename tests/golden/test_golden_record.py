"""A record says by what and why it was made, and a number that moved is named with what to do about it."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import golden_cases as golden
import pytest
import record

ARM = "full"


@pytest.fixture
def lines():
    return golden.read(ARM)[1]


def message(lines) -> str:
    with pytest.raises(AssertionError) as caught:
        golden.check(ARM, lines)
    return str(caught.value)


@pytest.mark.parametrize("arm", golden.ARMS)
def test_a_record_names_its_revision_torch_processor_and_reason(arm):
    header, recorded = golden.read(arm)
    assert len(header["revision"]) == 40
    assert header["torch"].startswith("2.")
    assert header["cpu"]
    assert len(header["reason"].split()) >= 3
    assert {line["iteration"] for line in recorded} == {0, 1, 2, 3}
    assert golden.first_difference(recorded, copy.deepcopy(recorded)) is None


def test_the_records_hold_every_kind_of_decision(lines):
    kinds = {event.split()[0] for line in lines for event in line.get("events", [])}
    assert kinds == {"proposed", "invalid", "accepted", "rejected"}
    assert {line["outcome"].split()[0] for line in lines if "outcome" in line} == {"+1", "-1"}
    assert {line["trains"] for line in lines if "trains" in line} == {True, False}
    lessons = [line["lesson"] for line in lines if "lesson" in line]
    assert any(lesson["policy"] and any(lesson["policy"]) for lesson in lessons)
    assert any(step for lesson in lessons for step in lesson["reward"])


def test_a_number_that_moved_is_named_with_arm_iteration_field_and_both_values(lines):
    row = next(line for line in lines if line["iteration"] == 1 and "metrics" in line)
    before = row["metrics"]["policy/loss"]
    row["metrics"]["policy/loss"] = before + 1e-3
    text = message(lines)
    assert text.startswith(
        f"arm full, iteration 1, metrics policy/loss: recorded {before}, now {before + 1e-3}\n"
    )
    assert 'python tests/golden/record.py --reason "..."' in text
    assert "say why" in text
    assert "draw" not in text


def test_a_number_that_moved_by_rounding_alone_is_the_recorded_one(lines):
    for line in lines:
        if "metrics" in line:
            line["metrics"] = {
                k: v * (1 + 1e-6) if isinstance(v, float) else v for k, v in line["metrics"].items()
            }
    golden.check(ARM, lines)


def test_another_token_comes_first_and_the_message_says_how_delicate_the_draws_were(lines):
    for line in lines:
        if line["iteration"] == 2 and line.get("episode") == 4:
            line["actions"][1] = "1 2 3"
        if line["iteration"] == 2 and line.get("episode", 9) < 4:
            line["lesson"] = {}
    text = message(lines)
    assert text.startswith("arm full, iteration 2, episode 4 (slot ")
    assert "actions 1: recorded '" in text
    assert "now '1 2 3'" in text
    assert "narrowest draw of iteration 2" in text


def test_a_decision_that_changed_is_a_difference(lines):
    row = next(line for line in lines if any(e.startswith("accepted") for e in line.get("events", [])))
    row["events"] = [event.replace("accepted", "rejected") for event in row["events"]]
    assert "recorded 'accepted slot" in message(lines)


@pytest.mark.parametrize("change", ["an episode less", "an episode more", "a step more", "a metric less"])
def test_what_is_missing_or_too_much_is_a_difference(lines, change):
    if change == "an episode less":
        lines.pop(0)
    elif change == "an episode more":
        lines.insert(0, {**lines[0], "episode": 99})
    elif change == "a step more":
        lines[0]["actions"].append("7")
    else:
        next(line for line in lines if "metrics" in line)["metrics"].pop("accuracy")
    assert "missing" in message(lines)


def test_a_new_metric_is_no_difference(lines):
    next(line for line in lines if "metrics" in line)["metrics"]["new"] = 1.0
    golden.check(ARM, lines)


@pytest.fixture
def tree(tmp_path):
    """A repository with one committed file."""
    for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "code.py").write_text("1\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_tree_with_uncommitted_changes_is_refused_and_the_files_are_named(tree):
    assert record.uncommitted(tree) == []
    (tree / "code.py").write_text("2\n")
    (tree / "new file.py").write_text("3\n")
    with pytest.raises(SystemExit) as caught:
        record.main(["--reason", "the sampler draws otherwise"], tree)
    assert "    code.py\n" in str(caught.value)
    assert "new file.py" in str(caught.value)
    assert "commit or remove" in str(caught.value)


def test_records_and_start_are_what_recording_writes_and_are_no_uncommitted_change(tree):
    place = tree / "tests" / "golden" / "records"
    place.mkdir(parents=True)
    (place / "full.jsonl").write_text("{}\n")
    assert record.uncommitted(tree) == []


@pytest.mark.parametrize("words", [[], ["--reason", ""], ["--reason", "just because"]])
def test_a_record_needs_a_reason(tree, words, capsys):
    with pytest.raises(SystemExit):
        record.main(words, tree)
    assert "--reason" in capsys.readouterr().err


@pytest.mark.long
def test_recording_again_says_what_moved_and_writes_why(lines, monkeypatch, tmp_path):
    """A real run of the shortest arm, against a record in which one number was another."""
    monkeypatch.setattr(golden, "RECORDS", tmp_path)
    monkeypatch.setattr(golden, "ARMS", ("outcome",))
    record.record("0" * 40, "to have a first record", ["outcome"])
    path = tmp_path / "outcome.jsonl"
    first, *rest = path.read_text().splitlines()
    assert json.loads(first)["reason"] == "to have a first record"
    assert any("narrowest" in json.loads(line) for line in rest)
    changed = [json.loads(line) for line in rest]
    assert record.moved("outcome", changed) == "nothing moved"
    changed[0]["outcome"] = "+1 unknown"
    assert record.moved("outcome", changed).endswith("now '+1 unknown'")


def run_once() -> Callable[[Path, str], list[golden.Line]]:
    """As `golden.run`; what an arm gave the first time it gives again."""
    real, known = golden.run, {}

    def run(root: Path, arm: str) -> list[golden.Line]:
        if arm not in known:
            known[arm] = real(root, arm)
        return copy.deepcopy(known[arm])

    return run


@pytest.mark.long
def test_an_arm_that_moved_and_is_not_named_stops_the_recording(monkeypatch, tmp_path):
    """Real runs of the two shortest arms, where the record of the one that is not named was another."""
    for arm in ("outcome", "policy"):
        (tmp_path / f"{arm}.jsonl").write_text((golden.RECORDS / f"{arm}.jsonl").read_text())
    monkeypatch.setattr(golden, "RECORDS", tmp_path)
    monkeypatch.setattr(golden, "ARMS", ("outcome", "policy"))
    path = tmp_path / "policy.jsonl"
    path.write_text(path.read_text().replace('"outcome":"+1 ok"', '"outcome":"-1 ok"', 1))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(golden, "run", run_once())
    with pytest.raises(SystemExit, match="no record is written: policy moved"):
        record.record("0" * 40, "the other arm was meant", ["outcome"])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    record.record("0" * 40, "this arm was meant", ["policy"])
    assert (tmp_path / "outcome.jsonl").read_bytes() == before["outcome.jsonl"]
    assert "this arm was meant" in path.read_text()
