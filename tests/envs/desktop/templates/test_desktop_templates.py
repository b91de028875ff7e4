"""The templates of the small desktop: how many there are, that no two make the same task, and their experts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from desktop_cases import small_task, solved

from envs.desktop.small.family import DesktopFamily
from envs.desktop.small.templates import FOLDER, content, templates

DOCS = Path(__file__).parents[4] / "docs"
EVERY = [
    (name, key, place % len(one.rows))
    for name, one in templates().items()
    for place, key in enumerate(one.given["evaluators"], list(templates()).index(name))
]
"""Every evaluator with a row. The row goes on from one evaluator of a template to the next."""
ONE_EACH = [
    (name, list(one.given["evaluators"])[place % len(one.given["evaluators"])], place % len(one.rows))
    for place, (name, one) in enumerate(templates().items())
]
"""One evaluator of each template and one row, the first, the second and so on in turn."""


def test_there_are_thirty_templates_over_five_applications():
    apps = Counter(one.app for one in templates().values())
    assert apps == dict.fromkeys(("galculator", "mousepad", "thunar", "gnumeric", "lxterminal"), 6)
    assert len(EVERY) >= 60
    for one in templates().values():
        for row in range(len(one.rows)):
            known = one.instructions(row)
            assert len(set(known.values())) == len(known)


def test_no_two_tasks_of_any_splits_have_the_same_content():
    family = DesktopFamily()
    sizes = {"train": 204, "in_domain": 102, "out_of_domain": 48, "reward_panel": 24}
    made = [one for split, size in sizes.items() for one in family.make(split, size, 0)]
    found = {
        content(templates()[one.payload["template"]], one.payload["row"], one.payload["key"]) for one in made
    }
    assert len(found) == len(made) == sum(sizes.values())


def test_rows_that_make_the_same_task_are_refused(tmp_path, monkeypatch):
    one = '{instruction: "%s", checks: [{shown: "1"}], expert: [done]}'
    text = f"""app: galculator
launch: [galculator]
rows: [{{x: "1"}}, {{x: "2"}}]
templates:
  twin: {{evaluators: {{evaluator1: {one % "Show $x."}, evaluator2: {one % "Show 1."}}}}}
"""
    (tmp_path / "twins.yaml").write_text(text)
    monkeypatch.setattr("envs.desktop.small.templates.FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"twins.yaml: twin: rows 0 and 1 make the same task of evaluator2"):
        templates.__wrapped__()


def test_experts_are_played_on_the_rows_of_all_splits():
    for among in (ONE_EACH, EVERY):
        for app in {one.app for one in templates().values()}:
            assert {row for name, _, row in among if templates()[name].app == app} == set(range(6))


@pytest.mark.long
@pytest.mark.parametrize(("name", "key", "row"), ONE_EACH)
def test_the_expert_of_each_template_succeeds(desktop, name, key, row):
    assert solved(desktop, small_task(name, key, row))


@pytest.fixture
def documented(tmp_path, monkeypatch):
    """The template of docs/gui.md, in the file that the page names."""
    text = (DOCS / "gui.md").read_text()
    (block,) = re.findall(r"```yaml\n(  editor-.*?)```", text, flags=re.DOTALL)
    assert len(block.splitlines()) <= 10
    (tmp_path / "editor.yaml").write_text((FOLDER / "editor.yaml").read_text() + block)
    monkeypatch.setattr("envs.desktop.small.templates.FOLDER", tmp_path)
    [name] = templates.__wrapped__().keys() - templates().keys()
    monkeypatch.setitem(templates(), name, templates.__wrapped__()[name])
    return templates()[name]


def test_the_template_of_the_documentation_is_one(documented):
    family = DesktopFamily()
    made = [small_task(documented.name, key, 2) for key in documented.given["evaluators"]]
    assert [family.validate(one) for one in made] == ["", ""]


@pytest.mark.long
def test_the_experts_of_the_documentation_succeed(desktop, documented):
    for key in documented.given["evaluators"]:
        assert solved(desktop, small_task(documented.name, key, 3))


def test_the_documentation_counts_the_templates():
    text = (DOCS / "gui.md").read_text()
    tasks = sum(len(templates()[name].rows) for name, _, _ in EVERY)
    assert f"There are {len(templates())} templates, six for each application" in text
    assert f"six rows of values: {tasks} tasks" in text
    assert f"# all {len(EVERY)}\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key", "row"), EVERY)
def test_every_expert_succeeds_and_doing_nothing_does_not(desktop, name, key, row):
    made = small_task(name, key, row)
    environment = desktop.environment()
    environment.reset(made, 0)
    assert not environment.step("done").success
    environment.close()
    assert solved(desktop, made)
