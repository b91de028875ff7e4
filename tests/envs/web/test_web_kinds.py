"""Every kind: its expert reaches success on real pages, with commands that are admissible and labelled good."""

from __future__ import annotations

import random
import re
import runpy
from pathlib import Path

import pytest
from web_cases import at_start, played, suits

from envs.computer.short import parse
from envs.web.browser import launch
from envs.web.kinds.table import KINDS, known
from envs.web.tasks.ladders import LADDERS, further, templates
from envs.web.teacher.oracle import GOAL_REACHED, labels
from rlanything.core.types import Direction

FEW, MANY = 3, 100


def succeeds(pool, kind: str, seeds: int) -> None:
    """The expert succeeds on this many seeds, and its steps are good."""
    tried, number = 0, 0
    while tried < seeds:
        seed, number = f"test-{number}", number + 1
        assert number < 10 * seeds + 20, "most pages of the kind ask for something else"
        if not suits(pool, kind, seed):
            continue
        episode = at_start(pool, kind, seed)
        commands = played(episode, random.Random(seed))
        assert episode.view.success, f"seed {seed}: {commands} ended with {episode.view.reward}"
        found = labels(at_start(pool, kind, seed), commands)
        assert all(label.good for label in found), (seed, commands, found)
        assert found[-1].reason == GOAL_REACHED
        tried += 1


def test_there_are_at_least_forty_kinds():
    assert len(KINDS) >= 40


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_expert_succeeds_on_a_few_seeds(pool, kind):
    succeeds(pool, kind, FEW)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_expert_succeeds_on_a_hundred_seeds(pool, kind):
    succeeds(pool, kind, MANY)


def test_no_kind_is_on_two_ladders_and_all_are_known():
    names = [name for ladder in LADDERS for name in ladder]
    assert len(names) == len(set(names))
    assert set(names) <= set(KINDS)


def test_templates_go_from_easy_to_hard_and_leave_out_what_panels_are_of():
    assert templates("click-tab-2", {"click-tab-2-medium"}) == (
        "click-tab", "click-tab-2-easy", "click-tab-2", "click-tab-2-hard",
    )  # fmt: skip
    assert further("click-tab-2", Direction.EASIER, ()) == (
        "click-tab-2-medium",
        "click-tab-2-easy",
        "click-tab",
    )
    assert further("click-tab-2", Direction.HARDER, ()) == ("click-tab-2-hard",)
    assert further("grid-coordinate", Direction.HARDER, ()) == ()


def test_an_unknown_kind_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"click-buton.*did you mean 'click-button'"):
        known("click-buton")


def test_an_instruction_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="asks for something else"):
        KINDS["click-button"].words("Do it.")


def test_commands_are_actions(pool):
    for kind in ("login-user", "click-menu-2", "click-scroll-list"):
        for command in at_start(pool, kind, "5").commands.values():
            assert parse(command).kind in ("click", "move", "type")


def test_the_kind_of_the_documentation_is_played_to_success(pool, tmp_path, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / "gui.md").read_text()
    (block,) = re.findall(r"```python\n(from envs\.web\..*?)```", text, flags=re.DOTALL)
    assert len([line for line in block.splitlines() if line]) <= 10
    (tmp_path / "own.py").write_text(block)
    own = runpy.run_path(str(tmp_path / "own.py"))["KIND"]
    monkeypatch.setitem(KINDS, own.name, own)
    succeeds(pool, own.name, FEW)


def test_the_documentation_counts_the_kinds_and_names_the_pages_that_have_none(installed):
    text = (Path(__file__).parents[3] / "docs" / "gui.md").read_text()
    every = {path.stem for path in launch.pages(None).glob("*.html")}
    assert set(re.findall(r"\b(\d+) kinds of tasks", text)) == {str(len(KINDS))}
    assert (
        f"{len(KINDS)} of MiniWoB++'s {len(every)} pages have one. The other {len(every) - len(KINDS)} "
        in text
    )
    [paragraph] = re.findall(
        r"^- \*\*Pages without a description\.\*\*.*?(?=^- )", text, re.DOTALL | re.MULTILINE
    )
    groups = re.findall(r"(\d+) [^:`.]*:\s+((?:`[\w-]+`[,.]\s*)+)", paragraph)
    names = [re.findall(r"`([\w-]+)`", listed) for _, listed in groups]
    assert [int(count) for count, _ in groups] == [len(listed) for listed in names]
    assert sorted(name for listed in names for name in listed) == sorted(every - set(KINDS))
