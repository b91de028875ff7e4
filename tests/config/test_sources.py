"""The table of sources: every key has a row, and presets, defaults and comments agree with it."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from rlanything.cli import main
from rlanything.config import Config, EvaluateConfig, JudgeConfig, parse
from rlanything.config.sources import SOURCES, Setting, paper_value, row_for, same, setting_of
from rlanything.config.sources.source import Statement, code, ours, paper, row
from rlanything.planning import comments, compose

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
PAPER: dict[Setting, tuple[str, ...]] = {
    "alfworld": ("scale=paper",),
    "coding": ("scale=paper", "env=coding_data"),
    "osworld": ("scale=paper", "env=osworld"),
}
"""The commands of the paper's experiments."""


@cache
def composed(*overrides: str) -> dict[str, Any]:
    return compose.compose(overrides, ROOT)


def leaves(data: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys with their values. Sections with a row of their own are not entered."""
    for key, value in data.items():
        dotted = prefix + key
        if isinstance(value, dict) and value and dotted not in SOURCES:
            yield from leaves(value, f"{dotted}.")
        else:
            yield dotted, value


OF_THE_PROJECT = ("envs.alfworld.", "envs.coding.", "envs.web.", "envs.desktop.")
"""Environments that stand for settings of the paper. A user's own has nothing in the paper to be compared with."""


def every_composition() -> Iterator[dict[str, Any]]:
    groups = compose.options(ROOT)
    for option in groups["env"]:
        if (data := composed(f"env={option}"))["env"]["_target_"].startswith(OF_THE_PROJECT):
            yield data
    for group in ("model", "engine", "scale"):
        yield from (composed(f"{group}={option}") for option in groups[group])
    for path in (EXPERIMENTS / "setting").glob("*.yaml"):
        env, _, scale = path.stem.partition("-")
        yield composed(f"env={env}", f"scale={scale}")


@pytest.mark.long
def test_every_key_has_a_row_and_every_row_a_key():
    keys = {key for data in every_composition() for key, _ in leaves(data)}
    assert {key for key in keys if row_for(key) is None} == set()
    assert set(SOURCES) - keys == set()


def test_every_value_has_a_place_or_a_reason():
    for key, found in SOURCES.items():
        for source in (found.alfworld, found.coding, found.osworld):
            statements = [statement for statement in (source.paper, source.code) if statement]
            assert statements or source.why, key
            assert all(statement.where for statement in statements), key


def test_code_is_never_called_paper():
    for key, found in SOURCES.items():
        for source in (found.alfworld, found.coding, found.osworld):
            assert not source.paper or re.match(r"\d|[ABC]\.\d|Alg\. \d|Eq\. \d", source.paper.where), key
            assert not source.code or re.match(r"(configs|train|reward|sample|data)/", source.code.where), key


@pytest.mark.parametrize("setting", PAPER)
def test_the_paper_scale_has_the_papers_value_else_its_codes(setting):
    data = composed(*PAPER[setting])
    assert setting_of(parse(data)) == setting
    compared = 0
    for key, value in leaves(data):
        found = row_for(key)
        assert found is not None
        source = found.source(setting)
        if source.reference is not None and not source.why:
            assert same(value, source.reference.value), key
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("setting", PAPER)
def test_a_deviation_of_the_paper_scale_has_a_reason_and_stands_in_the_map(setting):
    page = (ROOT / "docs" / "paper_map.md").read_text().partition("## 8. ")[2].partition("\n## ")[0]
    for key, value in leaves(composed(*PAPER[setting])):
        found = row_for(key)
        source = found.source(setting) if found else ours("")
        if source.reference is not None and source.why:
            assert not same(value, source.reference.value), f"{key}: does not deviate"
            assert f"`{key}`" in page, key


def test_the_numbers_that_were_wrong_before():
    """Written out from the paper and its code, so that a slip in the table is seen."""
    text = parse(composed(*PAPER["alfworld"]))
    coding = parse(composed(*PAPER["coding"]))
    assert (text.judge.m, text.judge.temperature, text.signals.lambda_) == (3, 0.8, 1.0)
    lengths = (text.rollout.max_tokens, text.judge.max_tokens, text.adaptation.max_tokens)
    assert (*lengths, text.adaptation.attempts, text.adaptation.temperature) == (2000, 4000, 8192, 8, 0.8)
    assert (text.signals.policy_min, text.signals.policy_max, text.signals.reward_balance) == (0, 1, "none")
    assert (coding.judge.m, coding.rollout.tasks, coding.rollout.rollouts, coding.signals.lambda_) == (
        32,
        64,
        32,
        0.0,
    )
    assert (coding.signals.policy_min, coding.signals.policy_max, coding.tasks.train) == (0.0, 1.0, 4500)
    assert (coding.evaluate.repeats, coding.evaluate.votes, coding.learn.updates) == (16, 32, 2)
    assert (text.train.iterations, coding.train.iterations) == (200, 300)


def defaults(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in section.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from defaults(kind, f"{key}.")
        elif not field.is_required():
            yield key, field.default


def test_defaults_of_the_code_are_those_of_the_papers_text_games():
    found = dict(defaults(Config))
    assert len(found) > 40
    del found["model.context"]  # files that are older than this key mean `chat`
    rows = {key: known.alfworld for key in found if (known := row_for(key))}
    stated = {key: source.reference for key, source in rows.items() if not source.why}
    assert {k: found[k] for k, s in stated.items() if s and not same(found[k], s.value)} == {}
    assert (JudgeConfig().temperature, EvaluateConfig().every) == (0.8, 5)


@pytest.mark.parametrize("path", comments.files(EXPERIMENTS), ids=lambda path: path.stem)
def test_comments_say_what_the_table_says(path):
    text = path.read_text()
    assert comments.commented(path.relative_to(EXPERIMENTS), text) == text, (
        "the sources in this file are not those of rlanything/config/sources/; write them with "
        "`rlanything config comments`"
    )


def test_no_comment_names_a_source_where_the_table_is_not_asked():
    known = set(comments.files(EXPERIMENTS))
    for path in EXPERIMENTS.rglob("*.yaml"):
        assert path in known or not comments.SOURCE.search(path.read_text()), path


def test_a_false_source_is_corrected_and_the_meaning_stays():
    old = "judge:\n  m: 3   # votes a step. Paper: 5 (nowhere)\n         # more of it\n  writes: votes\nother: 1\n"
    new = comments.commented(Path("config.yaml"), old)
    assert "  m: 3   # votes a step.\n" in new
    assert "#   Paper: 3 (3.1.3); coding: 32 (3.1.1), reference code: 16" in new
    assert "nowhere" not in new
    assert "  writes: votes           # Paper: votes (3.1.3); coding: tests (3.1.3)\n" in new
    assert new.endswith("other: 1\n")
    assert comments.commented(Path("config.yaml"), new) == new


def test_the_command_writes_what_differs_and_says_so(tmp_path, capsys):
    path = tmp_path / "experiments" / "config.yaml"
    path.parent.mkdir()
    path.write_text("learn:\n  updates: 4              # optimizer steps. Paper: 4\n")
    assert main(["--root", str(tmp_path), "config", "comments"]) == 0
    assert capsys.readouterr().out == f"{path}: written\n"
    assert "Reference code: 4 (configs/alfworld_rl.yaml)" in path.read_text()
    assert main(["--root", str(tmp_path), "config", "comments"]) == 0
    assert capsys.readouterr().out == "experiments/: up to date\n"


def test_files_of_one_setting_name_its_source_alone_and_only_where_one_stands():
    old = "# @package _global_\njudge:\n  m: 8     # tests. Paper: 5\n  temperature: 1.0\n"
    new = comments.commented(Path("setting/coding-tiny.yaml"), old)
    assert "  m: 8     # tests. Paper: 32 (3.1.1), reference code: 16 (configs/coding_rl.yaml)\n" in new
    assert new.endswith("  temperature: 1.0\n")


def test_the_words_of_a_row():
    found = row(
        paper(3, "C.1"),
        code(0.5, "configs/x.yaml", ours="smaller"),
        paper(True, "Eq. 1", Statement(None, "f")),
    )
    assert found.text() == (
        "Paper: 3 (C.1); coding: reference code: 0.5 (configs/x.yaml), ours: smaller; "
        "OSWorld: true (Eq. 1), reference code: null (f)"
    )
    assert found.text("coding") == "Reference code: 0.5 (configs/x.yaml), ours: smaller"
    assert row(ours("none has one")).text() == "Ours: none has one"
    assert row(code([0.9, 1e-6], "a")).text() == "Reference code: [0.9, 1e-06] (a)"
    assert row(paper({"path": "a/b"}, "C.2")).text() == "Paper: {path: a/b} (C.2)"


def test_the_papers_point_is_the_papers():
    assert paper_value("signals.lambda") == 1.0
    assert paper_value("signals.lambda", "coding") == 0.0
    with pytest.raises(KeyError, match=r"no value for learn\.updates"):
        paper_value("learn.updates")


def test_a_key_below_a_section_has_the_sections_row():
    assert row_for("bootstrap.policy.noise") is SOURCES["bootstrap"]
    assert row_for("signals.nothing") is None
