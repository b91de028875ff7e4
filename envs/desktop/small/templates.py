"""The templates in `tasks/*.yaml`: an application, files, and evaluators with an instruction, checks and an expert.

Values of a row stand for `$name` in every text. Rows and templates are the project's own: no text of a model is among
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template as Text
from typing import Any
from xml.sax.saxutils import escape

import yaml

FOLDER = Path(__file__).parent / "tasks"
SHEET = "table.gnumeric"
KEYS = {"launch", "begin", "files", "folders", "sheet", "evaluators"}
EVALUATOR = {"instruction", "checks", "expert"}


@dataclass(frozen=True, slots=True)
class Template:
    """A template. rows: the values that its texts may have; given: what its file says, with `$name` in its texts."""

    name: str
    app: str
    rows: tuple[Mapping[str, str], ...]
    given: Mapping[str, Any]

    def filled(self, row: int) -> dict[str, Any]:
        """The template with the values of a row: launch, files, folders, and evaluators by name."""
        values = self.rows[row]
        made: dict[str, Any] = _filled(self.given, values)
        files = dict(made.get("files", {}))
        if "sheet" in made:
            files[SHEET] = _sheet(made["sheet"])
        return {**made, "files": files, "folders": made.get("folders", [])}

    def task_file(self, row: int, key: str) -> dict[str, Any]:
        """What the world gets."""
        made = self.filled(row)
        world = {name: made[name] for name in ("launch", "begin", "files", "folders")}
        return {**world, "checks": made["evaluators"][key]["checks"]}

    def instructions(self, row: int) -> dict[str, str]:
        """Evaluator name -> canonical instruction."""
        return {key: one["instruction"] for key, one in self.filled(row)["evaluators"].items()}

    def expert(self, row: int, key: str) -> list[str]:
        """The commands that solve the task. `<button "Save">` in a command stands for the number of this item."""
        steps: list[str] = self.filled(row)["evaluators"][key]["expert"]
        return steps


@cache
def templates() -> dict[str, Template]:
    """All templates by name, in the order of the files. Raises `ValueError` naming a file and what is wrong in it."""
    found: dict[str, Template] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        said = yaml.safe_load(path.read_text())
        for name, given in said["templates"].items():
            whole = {"launch": said["launch"], "begin": said.get("begin", []), **given}
            if reason := _flaw(whole):
                raise ValueError(f"{path.name}: {name}: {reason}")
            if name in found:
                raise ValueError(f"{path.name}: {name}: there is one of this name already")
            found[name] = Template(name, said["app"], tuple(said["rows"]), whole)
            if reason := _repeated(found[name]):
                raise ValueError(f"{path.name}: {name}: {reason}")
    return found


def content(template: Template, row: int, key: str) -> str:
    """All that a task is, apart from its name: two tasks with the same content are one task."""
    said = template.instructions(row)[key]
    return json.dumps([said, template.task_file(row, key)], sort_keys=True)


def _repeated(template: Template) -> str:
    """Which two rows make the same task, or ''. Rows are divided among splits, so panels would hold training tasks."""
    first: dict[str, int] = {}
    for row in range(len(template.rows)):
        for key in template.given["evaluators"]:
            same = first.setdefault(content(template, row, key), row)
            if same != row:
                return f"rows {same} and {row} make the same task of {key}: its texts must name a value that differs"
    return ""


def _flaw(given: Mapping[str, Any]) -> str:
    if strange := given.keys() - KEYS:
        return f"unknown keys {sorted(strange)}; known: {', '.join(sorted(KEYS))}"
    evaluators = given.get("evaluators", {})
    if not 2 <= len(evaluators) <= 4:
        return "a template has 2 to 4 evaluators"
    wrong = [key for key, one in evaluators.items() if one.keys() != EVALUATOR]
    return f"{wrong[0]} has not exactly the keys {', '.join(sorted(EVALUATOR))}" if wrong else ""


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return Text(value).substitute(values)
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    if isinstance(value, dict):
        return {_filled(key, values): _filled(one, values) for key, one in value.items()}
    return value


def _sheet(cells: Mapping[str, str]) -> str:
    """A table in Gnumeric's own format. Numbers have the value type 40, texts 60."""
    inside = "".join(
        f'<gnm:Cell Row="{int(place[1:]) - 1}" Col="{ord(place[0]) - ord("A")}" '
        f'ValueType="{40 if text.isdigit() else 60}">{escape(text)}</gnm:Cell>'
        for place, text in cells.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<gnm:Workbook xmlns:gnm="http://www.gnumeric.org/v10.dtd">'
        '<gnm:SheetNameIndex><gnm:SheetName gnm:Cols="256" gnm:Rows="65536">Sheet1</gnm:SheetName></gnm:SheetNameIndex>'
        "<gnm:Sheets><gnm:Sheet><gnm:Name>Sheet1</gnm:Name><gnm:MaxCol>5</gnm:MaxCol><gnm:MaxRow>5</gnm:MaxRow>"
        f"<gnm:Cells>{inside}</gnm:Cells></gnm:Sheet></gnm:Sheets></gnm:Workbook>\n"
    )
