"""Wrong answers to every task of the small desktop, derived from its checks: none of them may be a success.

The goal of a task is built from its files and its checks. A near miss is the goal with one thing wrong.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from envs.desktop.small.inside import verdicts
from envs.desktop.small.templates import SHEET, Template, _sheet, templates

EVERY = [(name, key) for name, one in templates().items() for key in one.given["evaluators"]]


@dataclass(frozen=True)
class State:
    """What an episode leaves: texts of files, folders, cells of the table, and what the display shows."""

    files: dict[str, str]
    folders: frozenset[str]
    cells: dict[str, str] = field(default_factory=dict)
    shown: str = "0"

    def holds(self, checks: list[dict], home: Path) -> bool:
        """Whether all checks hold in this state."""
        shutil.rmtree(home, ignore_errors=True)
        for name in self.folders:
            (home / name).mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(_sheet(self.cells) if name == SHEET else text)
        home.mkdir(exist_ok=True)
        items = [("text", "", self.shown, True)]
        return all(verdicts.holds(check, home, lambda: iter(items)) for check in checks)

    def without(self, name: str) -> State:
        """Without a file or a folder with all in it."""
        gone = lambda other: other == name or other.startswith(f"{name}/")  # noqa: E731
        files = {other: text for other, text in self.files.items() if not gone(other)}
        return replace(self, files=files, folders=frozenset(one for one in self.folders if not gone(one)))

    def written(self, name: str, text: str) -> State:
        """With another text of a file."""
        return replace(self, files={**self.files, name: text})


def start(template: Template, row: int) -> State:
    made = template.filled(row)
    folders = {*made["folders"], *(str(Path(name).parent) for name in made["files"])} - {"."}
    return State(dict(made["files"]), frozenset(folders), dict(made.get("sheet", {})))


def goal(state: State, checks: list[dict]) -> State:
    """The state with all that the checks ask for."""
    for check in checks:
        if "absent" in check:
            state = state.without(check["absent"])
        elif "folder" in check:
            state = replace(state, folders=state.folders | {check["folder"]})
            for path in [path for path in state.files if str(Path(path).parent) == check["folder"]]:
                state = state if Path(path).name in check["holds"] else state.without(path)
            for name in check["holds"]:
                path = f"{check['folder']}/{name}"
                if path not in state.files and path not in state.folders:
                    state = state.written(path, "")
        elif "cell" in check:
            state = replace(state, cells={**state.cells, check["cell"]: check["value"]})
        elif "shown" in check:
            state = replace(state, shown=check["shown"])
        else:
            state = state.written(check["file"], check["equals"])
    return state


def other_texts(text: str) -> Iterator[str]:
    """Texts that are almost this one."""
    lines = text.split("\n")
    changed = {
        f"{text}5",
        f"5{text}",
        f"{text}\nx",
        f"x\n{text}",
        f" {text or 'x'}",
        f"{text} x",
        f"\n{text}x",
    }
    changed |= {"", text[:-1], text.swapcase(), "\n".join(reversed(lines)), " ".join(lines)}
    yield from sorted(changed - {text})


def misses(state: State, check: dict) -> Iterator[State]:
    """The goal with one check's matter wrong."""
    if "absent" in check:
        yield state.written(check["absent"], "a")
    elif "folder" in check:
        yield state.without(check["folder"])
        yield state.without(check["folder"]).written(check["folder"], "")
        yield state.written(f"{check['folder']}/more.txt", "x")
        yield from (state.without(f"{check['folder']}/{name}") for name in check["holds"])
    elif "cell" in check:
        values = [f"{check['value']}0", f"-{check['value'] or 1}", "", "42"]
        for value in values:
            if value != check["value"]:
                yield replace(state, cells={**state.cells, check["cell"]: value})
    elif "shown" in check:
        yield from (
            replace(state, shown=text)
            for text in other_texts(check["shown"])
            if text.strip() != check["shown"]
        )
    else:
        yield state.without(check["file"])
        yield from (state.written(check["file"], text) for text in other_texts(check["equals"]))


def every(name: str) -> Iterator[tuple[Template, int]]:
    template = templates()[name]
    return ((template, row) for row in range(len(template.rows)))


@pytest.mark.parametrize(("name", "key"), EVERY)
def test_a_near_miss_is_no_success(tmp_path, name, key):
    for template, row in every(name):
        checks, begun = template.task_file(row, key)["checks"], start(template, row)
        reached = goal(begun, checks)
        assert reached.holds(checks, tmp_path / "home")
        assert not begun.holds(checks, tmp_path / "home")
        for check in checks:
            for missed in misses(reached, check):
                assert not missed.holds(checks, tmp_path / "home"), (row, check, missed)


@pytest.mark.parametrize("name", list(templates()))
def test_the_goal_of_one_evaluator_is_none_of_another(tmp_path, name):
    for template, row in every(name):
        keys = list(template.given["evaluators"])
        checks = {key: template.task_file(row, key)["checks"] for key in keys}
        for one in keys:
            reached = goal(start(template, row), checks[one])
            held = [key for key in keys if reached.holds(checks[key], tmp_path / "home")]
            assert held == [one]


@pytest.mark.parametrize(("name", "key"), EVERY)
def test_every_file_and_cell_of_the_start_is_checked(tmp_path, name, key):
    for template, row in every(name):
        checks, begun = template.task_file(row, key)["checks"], start(template, row)
        reached = goal(begun, checks)
        for path in reached.files.keys() - {SHEET}:
            assert not reached.written(path, "damaged").holds(checks, tmp_path / "home"), path
        for cell in reached.cells:
            damaged = replace(reached, cells={**reached.cells, cell: "damaged"})
            assert not damaged.holds(checks, tmp_path / "home"), cell


@pytest.mark.parametrize("name", [name for name, one in templates().items() if one.app == "galculator"])
def test_a_number_that_is_only_typed_is_no_result(tmp_path, name):
    for template, row in every(name):
        for key, said in template.instructions(row).items():
            numbers = re.findall(r"-?\d+", said)
            checks, typed = template.task_file(row, key)["checks"], said.startswith("Enter")
            for number in numbers:
                assert State({}, frozenset(), shown=number).holds(checks, tmp_path / "home") == typed
