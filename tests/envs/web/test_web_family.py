"""The family: tasks of the splits, rewrites, and the arguments that it takes."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_cases import FAR, NEAR, small

from envs.web.browser.view import BrowserError
from envs.web.kinds.table import KINDS
from envs.web.tasks.hints import LONGEST, malformed
from envs.web.tasks.sampling import web_task
from rlanything.core.protocols import Environment, TaskFamily, Teacher
from rlanything.core.types import Direction, InvalidProposal, Task
from rlanything.core.unittests import Prefetches

BOTH = tuple(Direction)


@pytest.fixture(scope="module")
def tasks(family):
    return family.make("train", 30, 0)


def test_it_is_a_family_with_a_teacher(family):
    assert isinstance(family, Teacher)
    members = [name for name in vars(TaskFamily) if not name.startswith("_")]
    assert {"splits", "make", "environment", "validate", "describe", "parse"} <= set(members)
    assert all(callable(getattr(family, member)) for member in members)
    assert isinstance(family.environment(), Environment)


@pytest.mark.parametrize("split", ["train", "in_domain", "out_of_domain", "reward_panel"])
def test_tasks_are_distinct_valid_and_the_same_for_the_same_seed(family, split):
    made = family.make(split, 12, 5)
    assert len({task.task_id for task in made}) == 12
    assert [task.task_id for task in made] == [task.task_id for task in family.make(split, 12, 5)]
    assert [family.validate(task) for task in made] == [""] * 12
    assert {task.payload["kind"] for task in made} <= set(NEAR if split in ("train", "in_domain") else FAR)


def test_no_task_is_in_two_splits(family):
    made = [{t.task_id for t in family.make(split, 30, 1)} for split in family.splits()]
    assert sum(map(len, made)) == len(set().union(*made))


def test_the_expert_succeeds_and_its_steps_are_good(family, tasks):
    for task in tasks:
        shown = family.demonstrate(task, 1, 0.0)
        environment = family.environment()
        first = environment.reset(task, 3)
        assert task.instruction in first.text
        assert first == shown[0][0]
        answers = [environment.step(command) for _, command in shown]
        assert answers[-1].success
        assert all(family.label_steps(task, [command for _, command in shown]))
        assert len(family.explain(task, [command for _, command in shown])) == len(shown)
        environment.close()


def test_noise_makes_some_demonstrations_fail(family, tasks):
    lengths = [len(family.demonstrate(task, 1, 0.9)) for task in tasks]
    labels = [all(family.label_steps(t, [c for _, c in family.demonstrate(t, 1, 0.9)])) for t in tasks]
    assert min(lengths) >= 1
    assert not all(labels)
    assert family.demonstrate(tasks[0], 1, 0.9) == family.demonstrate(tasks[0], 1, 0.9)


def test_compact_commands_do_what_the_exact_ones_do(tasks):
    compact = small(text="compact")
    for task in tasks[:10]:
        shown = compact.demonstrate(task, 1, 0.0)
        assert all(compact.label_steps(task, [command for _, command in shown]))
        assert all(command in seen.actions for seen, command in shown)
        assert shown[0][0].text == shown[0][0].text.lower()


@pytest.mark.parametrize("way", BOTH)
def test_rewrites_are_accepted_and_valid(family, tasks, way):
    made = 0
    for task in tasks:
        try:
            reply = family.rewrite(task, way, 7)
        except InvalidProposal:
            continue
        changed = family.parse(task, reply)
        assert family.validate(changed) == ""
        assert changed.task_id != task.task_id
        assert changed.payload["kind"] not in FAR
        assert len(json.loads(reply)) == 1
        made += 1
    assert made >= 5


def test_what_the_adapter_reads_ends_with_the_task_as_a_reply(family, tasks):
    for task in tasks[:10]:
        last = family.describe(task).splitlines()[-1]
        assert json.loads(last) == {task.payload["kind"]: task.payload["hint"]}
        with pytest.raises(InvalidProposal, match="changes nothing"):
            family.parse(task, last)


def easy(family) -> Task:
    return next(t for t in family.make("train", 60, 2) if t.payload["kind"] == "click-button")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no JSON object"),
        ("{nonsense}", "not JSON"),
        ('{"click-test": ' + "[" * 5000 + "}", "not JSON"),
        ('{"click-test": "", "click-button": ""}', "one key"),
        ("{}", "one key"),
        ('{"click-test": 1}', "must be a text"),
        ('{"click-link": ""}', "the key must be one of click-test"),
        ('{"../../etc/passwd": ""}', "the key must be one of"),
        ('{"click-button": "click 99"}', "does not lead to the goal"),
        ('{"click-button": "press \\"Nowhere\\""}', "quotes a text"),
        ('{"click-button": "do not press it"}', "forbids"),
        ('{"click-button": "<b>now</b>"}', "signs other than"),
        ('{"click-button": "' + "x" * (LONGEST + 1) + '"}', "more than"),
    ],
)
def test_a_wrong_reply_is_refused_with_the_reason(family, reply, reason):
    with pytest.raises(InvalidProposal, match=reason):
        family.parse(easy(family), reply)


def test_a_hint_is_shown_to_the_agent_and_can_be_removed(family):
    task = easy(family)
    kind, first = task.payload["kind"], family.demonstrate(task, 0, 0.0)[0][1]
    hinted = family.parse(task, json.dumps({kind: f"start with {first}"}))
    assert hinted.instruction == f"{task.instruction} Hint: start with {first}"
    assert f"Hint: start with {first}" in family.environment().reset(hinted, 0).text
    assert family.validate(hinted) == ""
    bare = family.parse(hinted, json.dumps({kind: ""}))
    assert bare.task_id == task.task_id


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_reply_is_a_task_or_refused(family, text):
    task = family.make("train", 1, 0)[0]
    for reply in (text, json.dumps({text: ""}), json.dumps({task.payload["kind"]: text})):
        with suppress(InvalidProposal):
            assert family.validate(family.parse(task, reply)) == ""


@given(st.text(max_size=200))
def test_a_hint_has_plain_signs_only(text):
    if not malformed(text):
        assert text.isascii()
        assert not set(text) & set("<>{}[]\\`$%&=*\n")


@pytest.mark.parametrize(
    ("payload", "instruction"),
    [
        ({"kind": "click-test"}, "Click the button."),
        ({"kind": "nowhere", "seed": "1", "hint": ""}, "Click the button."),
        ({"kind": "click-test", "seed": "../x", "hint": ""}, "Click the button."),
        ({"kind": "click-test", "seed": 1, "hint": ""}, "Click the button."),
        ({"kind": "click-test", "seed": "1", "hint": ""}, "Click another button."),
        ({"kind": "click-test", "seed": "1", "hint": "click 99"}, "Click the button. Hint: click 99"),
    ],
)
def test_a_task_that_must_not_be_tried_is_named(family, payload, instruction):
    said = family.validate(Task("web", instruction, payload))
    assert said
    assert (
        family.validate(Task("web", "Click the button.", {"kind": "click-test", "seed": "1", "hint": ""}))
        == ""
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kinds": ["click-buton"]}, "kinds: 'click-buton' is not one of .*did you mean click-button"),
        ({"kinds": {"click-test": -1}}, "kinds: the share of click-test must be a number >= 0"),
        ({"ood_kinds": ["click-test"]}, "ood_kinds: click-test is one of kinds too"),
        ({"text": "html"}, "text: 'html' is not one of plain, compact"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds above 0"),
        ({"most_pages": 0}, "most_pages: 0 is not a whole number from 1 to 200"),
        ({"chromium": ""}, "chromium: '' is not a text"),
    ],
)
def test_wrong_arguments_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        small(**changed)


def test_a_split_that_is_not_there_is_refused(family):
    with pytest.raises(ValueError, match="split: 'valid' is not one of"):
        family.make("valid", 1, 0)


@pytest.mark.long
def test_kinds_whose_pages_run_out_are_named(family, monkeypatch):
    monkeypatch.setattr("envs.web.tasks.sampling.SEEDS", 2)
    with pytest.raises(ValueError, match=r"only .* of 50 tasks were found"):
        family.make("train", 50, 0)


def test_a_turn_that_is_played_ahead_is_not_played_again(tasks, monkeypatch):
    made = small()
    assert isinstance(made, Prefetches)
    chosen = [tasks[0], tasks[0], tasks[1], tasks[2]]
    environments = [made.environment() for _ in chosen]
    seen = [env.reset(task, 0) for env, task in zip(environments, chosen, strict=True)]
    actions = [observation.actions[i % len(observation.actions)] for i, observation in enumerate(seen)]
    alone = [made.environment() for _ in chosen]
    for env, task in zip(alone, chosen, strict=True):
        env.reset(task, 0)
    for env in alone:
        env.close()
    pool = made._stage.pool
    pool._views.clear()
    made.prefetch(list(zip(chosen, actions, strict=True)))
    known = dict(pool._views)
    assert len(known) == len({(t.task_id, a) for t, a in zip(chosen, actions, strict=True)})
    monkeypatch.setattr(pool, "_call", None)
    ahead = [env.step(action) for env, action in zip(environments, actions, strict=True)]
    monkeypatch.undo()
    pool._views.clear()
    for env, task, action, answer in zip(alone, chosen, actions, ahead, strict=True):
        env.reset(task, 0)
        assert env.step(action) == answer


def test_a_failure_ahead_of_time_is_left_to_its_episode(tasks, monkeypatch):
    made = small()
    environment = made.environment()
    observation = environment.reset(tasks[0], 0)
    pool = made._stage.pool
    pool._views.clear()

    def fails(*_args, **_more):
        raise BrowserError("gone")

    monkeypatch.setattr(pool, "_call", fails)
    made.prefetch([(tasks[0], observation.actions[0])])
    with pytest.raises(BrowserError, match="gone"):
        environment.step(observation.actions[0])


def test_the_version_of_chromium_is_on_record():
    assert small().programs()["chromium"].lower().startswith(("chromium", "google chrome"))


def test_without_a_browser_there_is_no_version_and_no_error(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert small().programs() == {}


def test_a_page_that_asks_for_one_of_two_messages_is_no_task_of_an_adapter(family):
    """Two messages of this page are by the person; `make` leaves such pages out, and so must a rewrite."""
    asked = family._stage.instruction("email-inbox", "train-35")
    assert KINDS["email-inbox"].asks_for(asked)
    assert "one of two" in family.validate(web_task("email-inbox", "train-35", asked, "", "train"))
