"""The recorded corruption check follows from its recorded answers, and what docs/check_results.md says from both."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from recorded_cases import CHECKS, said, written

from rlanything.checks.corruption import document, results
from rlanything.checks.corruption.declare import load_corruption
from rlanything.checks.corruption.measure import Asked
from rlanything.checks.corruption.results import QUESTIONS, Found
from rlanything.config import Checkpoint
from rlanything.report.formatting import p_text
from rlanything.report.results import statistics

NAMES = ("corruption", "corruption_learned")
ARMS = ("base", "policy_reward", "full")


def read(name: str = "corruption") -> Found:
    folder = CHECKS / name
    declared = load_corruption(folder / "corruption.yaml")
    keys = json.loads((folder / "corruption.json").read_text())["keys"]
    unused = Checkpoint(path="models/reward")
    asked = [
        Asked(arm, int(seed), unused, declared.kinds, key, folder / "answers" / arm / f"seed-{seed}.json")
        for arm in ARMS
        for seed, key in keys[arm].items()
    ]
    return results.read(declared, asked)


@pytest.fixture(scope="module")
def found() -> Found:
    return read()


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_page_is_what_the_recorded_answers_say(name):
    stored, again = json.loads((CHECKS / name / "corruption.json").read_text()), read(name)
    assert json.loads(json.dumps(document.to_json(again))) == stored
    assert document.to_markdown(again, name) == (CHECKS / name / "report.md").read_text()


def test_what_the_page_says_of_reward_models_that_learned():
    rows = {row.arm: row for row in read("corruption_learned").of("observation")}
    base = rows["base"].alarm
    points = "{:+.1f} [{:+.1f}, {:+.1f}]"
    ends = [100 * getattr(base.difference, key) for key in ("mean", "low", "high")]
    assert f"a little more often bad ({points.format(*ends)}, p {p_text(base.p)})" in said(
        "docs/check_results.md"
    )
    for arm in ("policy_reward", "full"):
        beyond = rows[arm].alarm_over_base
        ends = [100 * getattr(beyond.difference, key) for key in ("mean", "low", "high")]
        assert f"`{arm}` {points.format(*ends)} (p {p_text(beyond.p)})" in said("docs/check_results.md")


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_corrected_over_all_kinds_of_damage_and_reward_models(found, question, monkeypatch):
    corrected = _p(found, question)
    assert len(corrected) == (9 if question in ("alarm", "loss") else 6)
    monkeypatch.setattr(statistics, "corrected", lambda contrasts: contrasts)
    assert corrected == pytest.approx(statistics.holm(_p(read(), question)))


def _p(found: Found, question: str) -> dict[tuple[str, str], float]:
    asked = {(row.kind, row.arm): getattr(row, question) for row in found.rows}
    return {name: contrast.p for name, contrast in asked.items() if contrast is not None}


def test_what_the_page_says_of_an_exchange_of_steps(found):
    base = next(row for row in found.of("swapped") if row.arm == "base")
    page, change = said("docs/check_results.md"), written(asdict(base.alarm.difference))
    assert (
        f"an exchanged step a little more often bad ({change}), but p is {p_text(base.alarm.p)} after" in page
    )
