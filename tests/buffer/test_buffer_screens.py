"""The buffer's commands on tasks of screens: an adapter switched the evaluator, the form of a page, or a hint."""

from __future__ import annotations

import json
import re

import pytest
from buffer_cases import ACCEPTED, HARDER, command, event, record

from envs.desktop import rewording
from envs.desktop.osworld.family import OSWorldFamily
from envs.desktop.small.family import DesktopFamily
from envs.web.tasks.sampling import web_task
from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff
from rlanything.core.types import Task

SHORT, LONG = 'Type "one" into note1.txt.', 'Type "two" into note1.txt and save it.'
HINTED = 'Open the editor first. Then type "two" into note1.txt and save it.'
OSWORLD = {
    "id": "e1", "instruction": SHORT, "config": [], "evaluator": {"func": "typed", "expected": "one"},
    "task_template": {"evaluator1": SHORT, "evaluator2": LONG},
    "evaluator_list": {
        "evaluator1": {"func": "typed", "expected": "one"}, "evaluator2": {"func": "typed", "expected": "two"},
    },
    "current_task": {"evaluator1": SHORT},
}  # fmt: skip


def pairs() -> list[tuple[Task, Task]]:
    """(task, what an adapter made of it) of a small desktop, OSWorld, and a page."""
    small = DesktopFamily()
    line = next(
        task
        for task in small.make("train", 200, 0)
        if (task.payload["template"], task.payload["key"]) == ("editor-add-line", "evaluator1")
    )
    payload = {"app": "os", "file": "0" * 64, "evaluators": "", "key": "evaluator1", "content": OSWORLD}
    written = Task("osworld", SHORT, payload, {"split": "train", "id": "e1"})
    tab = web_task("click-tab-2", "train-1", 'Switch to find the link "a".', "", "train")
    return [
        (line, small.parse(line, small.rewrite(line, HARDER, 0))),
        (written, OSWorldFamily("data", ["world"]).parse(written, rewording.reply("evaluator2", HINTED))),
        (tab, web_task("click-tab-2-hard", "train-1", 'Find the link "b".', "start with click 2", "train")),
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root, made = tmp_path_factory.mktemp("screens"), pairs()
    start = TaskBuffer.start([old for old, _ in made])
    events = [
        event(start, slot, ACCEPTED, new, iteration=0, way=HARDER, before=1.0, after=0.5, reply="{}")
        for slot, (_, new) in enumerate(made)
    ]
    folder = root / "runs/full/seed-0/buffer"
    record(folder, 0, start)
    record(folder, 1, start.apply(events), events)
    return root


def said(project, capsys, *words) -> list[str]:
    """What a command says of each slot."""
    assert command(*words, root=project) == 0
    return re.split(r"(?m)^slot ", capsys.readouterr().out)[1:]


def test_a_diff_says_which_words_and_which_evaluator_changed(project, capsys):
    small, osworld, page = said(project, capsys, "diff", "full/seed-0")
    assert "at the [-end-]{+beginning+} of notes.txt" in small
    assert "key: evaluator1 -> evaluator2" in small
    assert (
        '[-Type-]{+Open the editor first. Then type+} "[-one-]{+two+}" into note1.txt{+ and save it+}.'
        in osworld
    )
    assert "key: evaluator1 -> evaluator2" in osworld
    assert "content" not in osworld, "the file is the same"
    assert 'the link "[-a-]{+b+}".{+ Hint: start with click 2+}' in page
    assert "hint: - -> start with click 2" in page
    assert "kind: click-tab-2 -> click-tab-2-hard" in page


def test_a_diff_as_data_and_as_a_page_has_the_same_words(project, tmp_path):
    rows = diff("full/seed-0", root=project)["slots"]
    assert [{f["field"]: (f["old"], f["new"]) for f in row["fields"]} for row in rows] == [
        {"key": ("evaluator1", "evaluator2")},
        {"key": ("evaluator1", "evaluator2")},
        {"hint": ("", "start with click 2"), "kind": ("click-tab-2", "click-tab-2-hard")},
    ]
    for row, (old, new) in zip(rows, pairs(), strict=True):
        for side, instruction in (("old", old.instruction), ("new", new.instruction)):
            assert "".join(text for kind, text in row["instruction"] if kind in ("same", side)) == instruction
    file = tmp_path / "page.html"
    assert command("diff", "full/seed-0", "--html", str(file), root=project) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', file.read_text(), re.DOTALL)[1])
    heads = [
        [field["head"] for cell in row["cells"] for field in cell.get("fields", ())] for row in data["rows"]
    ]
    assert heads[:2] == [["key: evaluator1 -> evaluator2"]] * 2
    assert "kind: click-tab-2 -> click-tab-2-hard" in heads[2]


def test_log_and_slot_say_what_was_asked_for_and_who_decides(project, capsys):
    assert command("log", "full/seed-0", root=project) == 0
    assert re.findall(r"(?m)^ +0 +(\d) +accepted +v0 -> v1 +harder", capsys.readouterr().out) == [
        "0",
        "1",
        "2",
    ]
    for slot, (old, new) in enumerate(pairs()):
        assert command("show", "full/seed-0", str(slot), "--json", root=project) == 0
        text = json.dumps(json.loads(capsys.readouterr().out))
        assert all(json.dumps(one.instruction)[1:-1] in text for one in (old, new))
        assert command("show", "full/seed-0", str(slot), root=project) == 0
        shown = capsys.readouterr().out
        assert f"{'kind' if slot == 2 else 'key'}: {new.payload['kind' if slot == 2 else 'key']}" in shown
