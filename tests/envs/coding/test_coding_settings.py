"""The family's settings: tasks from files, which of them, and settings that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_cases import codecontests_row, reference_item

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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problems": {"train": "x"}, "form": "reference", "max_difficulty": 2}, "in the format 'reference'"),
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
