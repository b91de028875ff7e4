"""The buffer's commands on real coding tasks: problems of the world, and what its teacher made of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from buffer_cases import ACCEPTED, EASIER, HARDER, command, event, patched, record

from envs.coding.family import CodingFamily
from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff, drift
from rlanything.buffer.views.commands import diff3
from rlanything.buffer.views.find.runs import open_run
from rlanything.buffer.views.tasks.near_duplicates import near_duplicates, words
from rlanything.buffer.views.tasks.task_fields import contents
from rlanything.core.types import Task

SLOTS = 12
EVIL = "</script><img src=x onerror=alert(1)>\x1b[2J"


def rewritten(family, buffer, seed, iteration):
    """An accepted rewrite of every third slot, as the teacher makes it."""
    for slot in range(0, SLOTS, 3):
        parent = buffer.head(slot)
        way = (HARDER, EASIER)[slot % 2]
        task = family.parse(parent, family.rewrite(parent, way, seed))
        if not buffer.had(slot, task.task_id):
            before = 1.0 if way is HARDER else 0.0
            yield event(buffer, slot, ACCEPTED, task, iteration=iteration, way=way, before=before, after=0.5)


def with_tests(parent, cases):
    """The same problem with other tests."""
    return Task(parent.env, parent.instruction, {**parent.payload, "cases": cases}, parent.metadata)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("coding")
    family = CodingFamily()
    start = TaskBuffer.start(family.make("train", SLOTS, 0))
    for seed in (0, 1):
        events = list(rewritten(family, start, seed, 0))
        kept = start.head(1).payload["cases"]
        tests = [kept[0], [kept[1][0], EVIL], *kept[2:-1], [f"{EVIL}{seed}", "0"]]
        events.append(event(start, 1, ACCEPTED, with_tests(start.head(1), tests), iteration=0, after=0.5))
        folder = root / f"runs/full/seed-{seed}/buffer"
        record(folder, 0, start)
        record(folder, 1, start.apply(events), events)
    return root


def fields(row):
    return {field["field"]: field for field in row["fields"]}


def test_the_tests_of_every_slot_are_accounted_for(project):
    page = diff("full/seed-0", root=project)
    run = open_run(project / "runs/full/seed-0")
    assert len(page["slots"]) == 5
    for row in page["slots"]:
        old, new = (run.at(n).head(row["slot"]).payload["cases"] for n in (0, 1))
        told = fields(row)["cases"]["pairs"]
        fate = {
            kind: [c for c in told if c["fate"] == kind] for kind in ("kept", "changed", "added", "removed")
        }
        assert [c["first"] for c in fate["kept"]] == [i for i, o in new if [i, o] in old]
        assert {c["first"] for c in fate["removed"]}.isdisjoint(i for i, _ in new)
        assert {c["first"] for c in fate["added"]}.isdisjoint(i for i, _ in old)
        assert len(fate["kept"]) + len(fate["changed"]) + len(fate["removed"]) == len(old)
        assert fields(row)["cases"]["old"] == len(old)


def test_a_difference_gives_the_second_buffer(project):
    run = open_run(project / "runs/full/seed-0")
    rows = json.loads(json.dumps(diff("full/seed-0", root=project)))["slots"]
    assert patched(run.at(0), rows) == run.at(1)


def test_a_test_that_changed_is_told_as_one(project, capsys):
    assert command("diff", "full/seed-0", root=project) == 0
    out = capsys.readouterr().out
    slot = out[out.index("slot 1 ") :].split("\n\n")[0]
    assert "cases: 6 -> 6; 4 kept, 1 changed, 1 added, 1 removed" in slot
    assert re.search(r'~ ".*" -> \[-".*"-\]\{\+"</script><img .*\[2J"\+\}', slot)
    assert not re.search(r"solution|source|\{\"|\[\[", slot)
    assert all(line.isprintable() for line in out.split("\n"))


def test_solutions_and_steps_are_told_line_by_line(project, capsys):
    assert command("diff", "full/seed-0", root=project) == 0
    out = capsys.readouterr().out
    harder = out[out.index("slot 0 ") :].split("\n\n")[0]
    assert re.search(r"source\.chain\.steps: \d items? -> \d items?\n", harder)
    assert re.search(r"\n      [+] x = .*\n", harder)
    assert "cases.0" not in out
    assert "steps.0" not in out


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


@pytest.mark.parametrize("names", [["full/seed-0"], ["full/seed-0@0", "full/seed-0", "full/seed-1"]])
def test_pages_hold_every_test_as_text(project, names, tmp_path, capsys):
    file = tmp_path / "page.html"
    assert command("diff", *names, "--html", str(file), root=project) == 0
    page = file.read_text()
    parser = Elements()
    parser.feed(page)
    assert "img" not in parser.tags
    assert parser.tags.count("script") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    row = next(row for row in data["rows"] if row["slot"] == 1)
    cells = [cell for cell in row["cells"] if "fields" in cell]
    for cell in cells:
        (told,) = [field for field in cell["fields"] if field["head"].startswith("cases: 6 -> 6; 4 kept")]
        assert [mark for mark, _ in told["lines"]] == ["~", "+", "-", " ", " ", " ", " "]
    assert len(cells) == len(names[1:]) or len(cells) == 1


def test_a_browser_shows_tests_as_text(project, tmp_path, tab):
    file = tmp_path / "page.html"
    assert command("diff", "full/seed-0", "--html", str(file), root=project) == 0
    tab.goto(file.as_uri())
    details = tab.locator('tr[data-slot="1"] details').first
    details.locator("summary").click()
    shown = details.locator(".line").first
    assert shown.locator("ins").inner_text() == '"</script><img src=x onerror=alert(1)>\\u001b[2J"'
    assert tab.locator("img").count() == 0


def test_three_ways_tells_what_tests_two_runs_share(project, capsys):
    names = ("full/seed-0@0", "full/seed-0", "full/seed-1")
    rows = {row["slot"]: row for row in diff3(*names, root=project)["slots"]}
    runs = [open_run(project / f"runs/full/seed-{seed}").at(1) for seed in (0, 1)]
    for slot, row in rows.items():
        a, b = ([tuple(pair) for pair in run.head(slot).payload["cases"]] for run in runs)
        assert row["shared"] == {"cases": {"a": len(a), "b": len(b), "both": len({*a} & {*b})}}
    assert rows[1]["shared"]["cases"]["both"] == 5
    assert command("diff", *names, root=project) == 0
    out = capsys.readouterr().out
    assert re.search(r"A's pairs +B's pairs +in both\n", out)
    assert re.search(r"\n +1  same way.*4 kept, 1 changed, 1 added, 1 removed  4 kept.* 5\n", out)
    assert command("diff", *names, "--md", root=project) == 0
    assert "(4 kept, 1 changed, 1 added, 1 removed)" in capsys.readouterr().out


def test_show_lists_tests_and_solution(project, capsys):
    assert command("show", "full/seed-0", "2", root=project) == 0
    out = capsys.readouterr().out
    payload = open_run(project / "runs/full/seed-0").at(1).head(2).payload
    first, second = payload["cases"][0]
    assert f'  cases: 6\n    "{first}" -> "{second}"\n' in out
    assert "  solution:\n    x = " in out


def test_markdown_formats_nothing_of_a_test(project, capsys):
    assert command("diff", "full/seed-0", "--md", root=project) == 0
    out = capsys.readouterr().out
    assert "\\<img src=x" in out
    assert not re.search(r"(?<!\\)<(?!br>)", out)


def test_drift_finds_problems_with_the_same_tests(project, tmp_path):
    start = open_run(project / "runs/full/seed-0").at(0)
    other = replace(
        start.head(3), instruction="The first problem in other words.", payload=start.head(0).payload
    )
    made = event(
        start, 3, ACCEPTED, Task(other.env, other.instruction, other.payload, {}), iteration=0, after=0.5
    )
    folder = tmp_path / "runs/full/seed-0/buffer"
    record(folder, 0, start)
    record(folder, 1, start.apply([made]), [made])
    page = drift("full/seed-0", root=tmp_path)
    assert {"kind": "same cases", "slots": [0, 3], "instruction": start.head(0).instruction} in page[
        "duplicates"
    ]
    assert "metadata.level" not in [row["field"] for row in page["fields"] if row["changed"]]
    old, new = (dict(contents(start.head(slot).payload)) for slot in (3, 0))
    assert page["iterations"][1]["field_edits"] == sum(old[path] != new[path] for path in old) / SLOTS


PROBLEM = "Read a list of numbers. Keep those above 6. Square each. Add them up. Print the result."


@pytest.mark.parametrize(
    "other",
    [
        PROBLEM.replace("Square each. Add them up.", "Add them up. Square each."),
        PROBLEM.replace("above 6", "above 7"),
        PROBLEM.replace("above 6", "above -6"),
        PROBLEM.replace("Square each. ", ""),
    ],
)
def test_another_problem_in_nearly_the_same_words_is_another_one(other):
    assert words(other) != words(PROBLEM)
    assert not near_duplicates([other, PROBLEM])


def test_a_problem_spelled_otherwise_is_alike():
    assert words(PROBLEM.upper().replace(". ", ".\n")) == words(PROBLEM)
    assert near_duplicates([PROBLEM.replace("numbers", "number"), PROBLEM])
