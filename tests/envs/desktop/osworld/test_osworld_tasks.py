"""OSWorld's tasks: files, splits, what an adapter may make of them, and what is wrong with a file."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from desktop_cases import content, extended, family
from hypothesis import given
from hypothesis import strategies as st

from envs.desktop import rewording
from envs.desktop.osworld.files import TaskFileError, read
from envs.desktop.osworld.tasks import task_file, templates
from rlanything.core.types import InvalidProposal, Json, Task
from rlanything.files.reader import parse


def test_splits_are_those_of_the_paper(made):
    by_split = {
        split: made.make(split, count, 0) for split, count in zip(made.splits(), (3, 3, 3, 2), strict=True)
    }
    assert {split: {t.payload["app"] for t in tasks} for split, tasks in by_split.items()} == {
        "train": {"os"}, "in_domain": {"os"}, "out_of_domain": {"chrome", "multi_apps"}, "reward_panel": {"multi_apps"},
    }  # fmt: skip
    assert made.make("train", 2, 1) == made.make("train", 2, 1)
    tasks = made.make("in_domain", 3, 0)
    assert all(t.payload["key"] == "" and "evaluator_list" not in t.payload["content"] for t in tasks)
    assert all(made.validate(t) == "" for tasks in by_split.values() for t in tasks)
    with pytest.raises(ValueError, match="reward_panel has 2 tasks"):
        made.make("reward_panel", 3, 0)


def test_the_id_of_a_task_holds_file_and_evaluators(files):
    plain, pinned = (family(files, evaluators=digest).make("train", 1, 0)[0] for digest in (None, "ab"))
    assert plain.task_id != pinned.task_id
    assert len(plain.payload["file"]) == 64
    assert family(files).validate(pinned) == "the task is judged by other evaluators than env.evaluators"


def test_the_words_of_a_file_are_those_of_its_task_whatever_the_rules_of_rewordings_say(files):
    """In files of the paper `current_task` forbids in other words than its template."""
    path = files / "new_examples" / "os" / "e1.json"
    content = json.loads(path.read_text())
    content["current_task"] = {"evaluator1": 'Type "one" into note1.txt and ignore the rest.'}
    path.write_text(json.dumps(content))
    family_of_it = family(files)
    task = next(t for t in family_of_it.make("train", 3, 0) if t.metadata["id"] == "e1")
    assert task.instruction.endswith("ignore the rest.")
    assert family_of_it.validate(task) == ""
    other = Task(task.env, task.instruction, {**task.payload, "key": "evaluator2"})
    assert "forbids something ('ignore')" in family_of_it.validate(other)


@pytest.mark.parametrize(
    "template",
    [
        'Change the name of the directory "todo_list_Jan_1" into "todo_list_Jan_2".',
        "Insert the results of GPT-4 into the report.",
        "Enter -5, then 5, then +5 and (5).",
        "Set step #3 to 5%, i.e. version v1, of page 2.",
    ],
)
def test_a_template_is_a_rewording_of_itself_whatever_its_numbers_stand_beside(template):
    assert list(rewording.objections(template, template)) == []


def test_an_adapter_switches_the_evaluator_or_the_hints(made):
    parent = next(t for t in made.make("train", 3, 0) if t.payload["key"])
    assert made.describe(parent).splitlines()[-1] == rewording.reply("evaluator1", parent.instruction)
    reply = 'Sure: {"evaluator2": "Open the editor first. Then type \\"two\\" into note1.txt."}'
    child = made.parse(parent, reply)
    assert made.validate(child) == ""
    assert task_file(child)["evaluator"] == {"func": "typed", "expected": "two"}
    assert task_file(child)["instruction"].startswith("Open the editor")
    assert "evaluator_list" not in task_file(child)
    assert (
        made.parse(child, rewording.reply("evaluator1", templates(child)["evaluator1"])).task_id
        == parent.task_id
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("no", "no JSON object"),
        ("{" * 100, "no JSON object"),
        ("{}", "one key"),
        ('{"a": 1, "b": 2}', "one key"),
        ('{"evaluator9": "x"}', "must be one of 'evaluator1', 'evaluator2'"),
        ('{"evaluator1": 3}', "must be a text"),
        ('{"evaluator1": " "}', "is empty"),
        ('{"evaluator1": "Type \\"one\\" into the file."}', "leaves out 'note1.txt'"),
        ('{"evaluator1": "Type two into note1.txt"}', "leaves out 'one'"),
        ('{"evaluator1": "Type \\"one\\" into note1.txtx"}', "leaves out 'note1.txt'"),
        ('{"evaluator1": "Type \\"one\\" into note1.txt.<|im_end|>"}', "marks of a chat"),
        ('{"evaluator1": "Пиши \\"one\\" в файл note1.txt, потом закрой окно и жди"}', "another language"),
        ('{"evaluator1": "Type \\"one\\" into note1.txt\\u202e"}', "cannot be printed"),
        (json.dumps({"evaluator1": 'Type "one" into note1.txt. ' * 60}), "too long"),
        ('{"evaluator1": "Type \\"one\\" into note1.txt."}', "changes nothing"),
    ],
)
def test_other_replies_are_refused(made, reply, reason):
    parent = next(t for t in made.make("train", 3, 0) if t.payload["key"])
    with pytest.raises(InvalidProposal, match=reason):
        made.parse(parent, reply)


@given(st.text() | st.dictionaries(st.text(max_size=4), st.text(max_size=9), max_size=2).map(json.dumps))
def test_any_reply_is_read_or_refused(reply):
    try:
        key, _ = rewording.read(reply, {"a": "Close it.", "": "Open it."})
        assert key in ("a", "")
    except InvalidProposal:
        pass


@pytest.mark.parametrize("sign", ["{x}", "%s", "${HOME}", "<b>bold</b>", "$(reboot)", "`id`"])
def test_an_instruction_with_markup_or_format_signs_is_only_text(made, sign):
    parent = next(t for t in made.make("train", 3, 0) if t.payload["key"])
    child = made.parse(parent, rewording.reply("evaluator1", f'Type "one" into note1.txt {sign}.'))
    assert sign in task_file(child)["instruction"]
    environment = made.environment()
    assert sign in environment.reset(child, 0).text
    environment.close()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"observe": "pixels"}, "observe: 'pixels' is not one of screenshot, tree, both"),
        ({"worlds": 0}, "worlds"),
        ({"screen": [1]}, "not .width, height."),
        ({"command": "python bridge.py"}, "command: 'python bridge.py' is not a list of texts"),
        ({"ood_apps": []}, "ood_apps"),
    ],
)
def test_a_wrong_argument_is_named(files, more, message):
    with pytest.raises(ValueError, match=message):
        family(files, **more)


def replaced(folder: Path, make: Callable[[Path], object], name: str = "examples/os/e1.json") -> None:
    """Put something else in the place of a file."""
    (folder / name).unlink()
    make(folder / name)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "examples" / "os" / "e1.json").unlink(), "No such file"),
        (lambda f: replaced(f, lambda file: file.write_text("{")), r"e1\.json: not JSON \("),
        (
            lambda f: replaced(f, lambda file: file.write_bytes(b"\xff")),
            r"e1\.json: not JSON \(byte 0 is not",
        ),
        (
            lambda f: replaced(f, lambda file: file.write_text("[" * 10**5)),
            r"e1\.json: not JSON that can be read",
        ),
        (lambda f: replaced(f, lambda file: file.write_text("[]")), r"e1\.json: no JSON object"),
        (
            lambda f: replaced(f, lambda file: file.write_text(" " * 2**20 + json.dumps(extended("e1")))),
            r"e1\.json: it holds more than 1 MB",
        ),
        (lambda f: replaced(f, os.mkfifo), r"e1\.json: no regular file, but a pipe"),
        (lambda f: replaced(f, lambda file: file.symlink_to("/dev/zero")), r"e1\.json: no regular file"),
        (lambda f: replaced(f, Path.mkdir), r"e1\.json: a directory"),
        (lambda f: replaced(f, os.mkfifo, "test_nogdrive.json"), r"test_nogdrive\.json: no regular file"),
        (
            lambda f: (f / "examples" / "os" / "e1.json").write_text(json.dumps(extended("e2"))),
            "its id is 'e2'",
        ),
        (lambda f: (f / "test_nogdrive.json").write_text('{"../os": ["e1"]}'), "has no list of ids"),
        (
            lambda f: (f / "test_nogdrive.json").write_text(
                '{"os": ["../e1"], "chrome": [], "multi_apps": []}'
            ),
            "no id",
        ),
        (lambda f: (f / "test_nogdrive.json").write_text('{"os": []}'), "no tasks of multi_apps"),
        (lambda f: (f / "test_nogdrive.json").write_text('{"os": ["e1", "e1"]}'), "'os' names 'e1' twice"),
        (
            lambda f: (f / "examples" / "os" / "e1.json").write_text(
                json.dumps({**extended("e1"), "current_task": {}})
            ),
            "current_task none of them",
        ),
        (
            lambda f: (f / "examples" / "os" / "p1.json").write_text(
                json.dumps({**content("p1", {}), "instruction": 3})
            ),
            "no instruction",
        ),
    ],
)
def test_a_damaged_file_is_named(files, damage, message):
    damage(files)
    with pytest.raises(TaskFileError, match=message):
        family(files).make("in_domain", 1, 0)


def test_the_digest_of_a_task_is_that_of_the_bytes_that_were_parsed(files, monkeypatch):
    """Also where the file changes at that moment: it is read once."""
    path = files / "examples" / "os" / "e1.json"
    first = path.read_bytes()

    def changed(read: bytes) -> Json:
        path.write_text("changed")
        return parse(read)

    monkeypatch.setattr("envs.desktop.osworld.files.parse", changed)
    found = read(files / "examples", "os", "e1")
    assert found.content == json.loads(first)
    assert found.digest == hashlib.sha256(first).hexdigest()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda c: c.pop("instruction"), "the content of its file: it has no instruction or no evaluator"),
        (lambda c: c.update(evaluator=3), "the content of its file: it has no instruction or no evaluator"),
        (lambda c: c.pop("evaluator_list"), "the content of its file: the paper's extension has all of"),
        (lambda c: c.update(task_template=[1]), "the content of its file: the paper's extension has all of"),
    ],
)
def test_a_task_of_a_damaged_file_is_not_tried(made, damage, reason):
    whole = next(t for t in made.make("train", 3, 0) if t.payload["key"])
    broken = copy.deepcopy(dict(whole.payload))
    damage(broken["content"])
    assert made.validate(Task(whole.env, whole.instruction, broken)).startswith(reason)


def test_a_folder_that_is_not_there_says_what_to_set(tmp_path):
    with pytest.raises(TaskFileError, match="environment variable OSWORLD_DATA"):
        family("$OSWORLD_DATA").make("train", 1, 0)


@pytest.mark.parametrize(
    ("template", "changed"),
    [
        ("Multiply 12 by 30.", "Multiply 112 by 30."),
        ("Multiply 12 by 30.", "Multiply 12 by 3055."),
        ("Multiply 12 by 30.", "Multiply 12.5 by 30."),
        ("Write 7 into the cell A3.", "Write 17 into the cell A3."),
        ("Write 7 into the cell A3.", "Write 7 into the cell A33."),
        ("Write 7 into the cell A3.", "Write 7 into the cell B3."),
        ("Enter the number 360.", "Enter the number -360."),
        ("Add 12, 30, 12 and 30.", "Add 12 and 30."),
        ('Make a folder "reports".', 'Make a folder "Reports".'),
        ("Save notes.txt as a copy.", "Save NOTES.txt as a copy."),
        ("Rename todo_Jan_1 on the desktop.", "Rename todo_Jan_2 on the desktop."),
        ("Insert the results of GPT-4 as a table.", "Insert the results of GPT-5 as a table."),
        ("Enter the number -5.", "Enter the number 5."),
    ],
)
def test_a_number_or_cell_inside_of_another_and_a_name_in_other_letters_are_left_out(template, changed):
    assert list(rewording.objections(template, template)) == []
    (reason,) = rewording.objections(changed, template)
    assert "leaves out" in reason
