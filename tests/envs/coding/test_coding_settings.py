"""The family's settings: tasks from files, which of them, and settings that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_cases import codecontests_row, livecodebench_problem, reference_item

from envs.coding.family import CodingFamily
from envs.coding.formats.record import FormatError
from envs.coding.problem import Problem


def test_files_give_tasks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "train.json"
    path.write_text(
        json.dumps([reference_item(question=f"Problem {k}") for k in range(5)] + [{"question": "?"}])
    )
    settings_ = {"problems": {"train": str(path)}, "form": "reference"}
    with pytest.raises(FormatError, match=r"train.json\[5\]: test_input: missing"):
        CodingFamily(**settings_).make("train", 3, 0)
    made = CodingFamily(**settings_, on_bad_problem="skip")
    first = made.make("train", 3, 0)
    assert first == made.make("train", 3, 0)
    assert len({task.task_id for task in first}) == 3
    assert "left out: " in caplog.text
    assert "train.json[5]: test_input: missing" in caplog.text
    with pytest.raises(ValueError, match=r"6 are wanted and .*train.json holds 5 that can be used"):
        made.make("train", 6, 0)
    with pytest.raises(ValueError, match="split: 'in_domain' is not one of train"):
        made.make("in_domain", 1, 0)


def test_problems_above_a_difficulty_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [codecontests_row(name=str(k), description=f"Problem {k}", difficulty=k) for k in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings_ = {"problems": {"train": str(path)}, "form": "codecontests"}

    def found(count: int, **more: Any) -> set[str]:
        made = CodingFamily(**settings_, **more).make("train", count, 0)
        return {Problem.from_task(task).source["id"] for task in made}

    assert found(6) == set("012345")
    assert found(3, max_difficulty=2) == set("012")
    with pytest.raises(ValueError, match=r"4 are wanted and .*holds 3 that can be used"):
        found(4, max_difficulty=2)
    with pytest.raises(ValueError, match="max_difficulty: 30 is not a whole number from 0 to 29"):
        found(1, max_difficulty=30)


def lines(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def items(path: Path, *found: dict[str, Any]) -> str:
    path.write_text(json.dumps(found))
    return str(path)


def test_each_set_may_have_a_format_and_only_those_that_number_it_are_cut_by_difficulty(
    tmp_path: Path,
) -> None:
    """The paper's files as they are published: one table with difficulties, two lists, functions."""
    rows = [codecontests_row(name=str(k), description=f"Train {k}", difficulty=k) for k in range(5)]
    problems = {
        "train": lines(tmp_path / "train.jsonl", *rows),
        "LiveBench": items(tmp_path / "bench.json", reference_item()),
        "LCB": lines(tmp_path / "lcb.jsonl", livecodebench_problem()),
    }
    forms = {"train": "codecontests", "LiveBench": "reference", "LCB": "livecodebench"}
    family = CodingFamily(problems, forms, max_difficulty=2)
    made = {
        split: family.make(split, count, 0) for split, count in (("train", 3), ("LiveBench", 1), ("LCB", 1))
    }
    assert {Problem.from_task(task).source["id"] for task in made["train"]} == set("012")
    assert Problem.from_task(made["LCB"][0]).function == "add"
    alone = CodingFamily({"LCB": problems["LCB"]}, "livecodebench").make("LCB", 1, 0)
    assert alone == made["LCB"]  # how its format was named changes nothing


@pytest.mark.parametrize("train_first", [True, False])
def test_a_set_with_a_training_problem_is_refused_whatever_its_limits_and_names(
    tmp_path: Path, train_first: bool
) -> None:
    """The authors' notebook writes 2 s for training and 6 s for evaluation, so that equal problems have other ids."""
    train = items(
        tmp_path / "train.json",
        *(reference_item(question=f"Problem  {k}:\n print it.", test_time_limit=2) for k in range(4)),
    )
    panel = [reference_item(question=f"Problem {k}: print it. ", test_time_limit=6, id=k) for k in (3, 7)]
    held = items(tmp_path / "held.json", *panel)
    apart = items(tmp_path / "apart.json", *panel[1:])
    family = CodingFamily({"train": train, "Held": held, "Apart": apart}, "reference")
    if train_first:
        family.make("train", 4, 0)
    said = r"problems\.Held: .*held\.json has 1 problem that .*train\.json .*'Problem 3: print it\.'.*Leave .* out"
    with pytest.raises(ValueError, match=said):
        family.make("Held", 1, 0)
    assert len(family.make("Apart", 1, 0)) == 1
    without = CodingFamily({"train": str(tmp_path / "gone.json"), "Held": held}, "reference")
    assert len(without.make("Held", 2, 0)) == 2


def test_a_problem_that_is_too_difficult_to_be_trained_on_may_be_measured(tmp_path: Path) -> None:
    row = codecontests_row(name="1", description="Hard one", difficulty=5)
    easy = codecontests_row(name="2", description="Easy one", difficulty=1)
    problems = {
        "train": lines(tmp_path / "train.jsonl", row, easy),
        "Held": items(tmp_path / "held.json", reference_item(question="Hard one")),
    }
    forms = {"train": "codecontests", "Held": "reference"}
    assert len(CodingFamily(problems, forms, max_difficulty=2).make("Held", 1, 0)) == 1
    with pytest.raises(ValueError, match="'Hard one'"):
        CodingFamily(problems, forms).make("Held", 1, 0)


TWO = {"train": "x", "LiveBench": "y"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problems": {"train": "x"}, "form": "reference", "max_difficulty": 2}, "in the format 'reference'"),
        (
            {"problems": TWO, "form": {"train": "reference", "LiveBench": "livebench"}, "max_difficulty": 2},
            "in the format 'livebench' and 'reference'",
        ),
        (
            {"problems": TWO, "form": {"train": "reference"}},
            "form: it names no format for LiveBench; it must",
        ),
        (
            {"problems": TWO, "form": {"train": "reference", "LiveBnech": "livebench"}},
            r"form: 'LiveBnech' is not one of train, LiveBench \(did you mean LiveBench\?\)",
        ),
        (
            {"problems": TWO, "form": {"train": "refrence", "LiveBench": "livebench"}},
            r"form\.train: 'refrence' is not one of .* \(did you mean reference\?\)",
        ),
        (
            {"form": {"train": "reference"}},
            "form: it names a format for each set, and problems names no sets",
        ),
        ({"max_difficulty": 2}, "max_difficulty: 2: only .* codecontests .* these are generated"),
        ({"form": "livebnech"}, "did you mean livebench"),
        ({"problems": {2: "x"}}, "problems: 2 is no name of a split"),
        ({"problems": {"train": 3}}, "problems.train: 3 is no path"),
        ({"problems": []}, "not a mapping from splits"),
        ({"levels": {"easy": -1}}, "levels: the share of easy"),
        ({"levels": ["simple"]}, "levels: 'simple' is not one of easy, medium, hard, expert"),
        ({"ood_levels": ["easy"]}, "ood_levels: 'easy' is not one of medium, hard, expert"),
        ({"kinds": "text"}, "kinds: 'text' is neither a list"),
        ({"trusted": "no"}, "trusted: 'no' is neither true nor false"),
        ({"image": ""}, "image: '' is not a text"),
        ({"shown_tests": 0}, "shown_tests: 0 is not a whole number from 1 to 100"),
        ({"tests": 1}, "tests: 1 is not a whole number from 2 to 50"),
        ({"workers": True}, "workers: True is not"),
        ({"backend": "bwarp"}, "did you mean bwrap"),
        ({"on_bad_problem": "ignore"}, "on_bad_problem"),
    ],
)
def test_settings_are_checked(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CodingFamily(**arguments)
