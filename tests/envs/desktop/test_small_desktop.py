"""The small desktop: real applications in a box, its splits, what an adapter may do, and what an episode leaves."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from statistics import median

import pytest
from desktop_cases import small_task, solved
from scripted import chat_model, prompts, read

from envs.desktop.small import box
from envs.desktop.small.expert import named, play
from envs.desktop.small.family import DesktopFamily, task_file
from envs.splits import SPLITS
from rlanything.config import RolloutConfig
from rlanything.core.errors import MachineError
from rlanything.core.types import InvalidProposal, Status, Task
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling


def test_splits_hold_other_rows_and_other_applications():
    family = DesktopFamily()
    counts = {"train": 50, "in_domain": 50, "out_of_domain": 40, "reward_panel": 20}
    made = {split: family.make(split, counts[split], 0) for split in SPLITS}
    ids = [t.task_id for tasks in made.values() for t in tasks]
    assert len(set(ids)) == len(ids)
    assert {t.metadata["app"] for t in made["out_of_domain"]} == {"gnumeric"}
    assert "gnumeric" not in {t.metadata["app"] for t in made["train"]}
    assert all(family.validate(t) == "" for tasks in made.values() for t in tasks)
    assert family.make("train", 9, 3) == family.make("train", 9, 3)
    with pytest.raises(ValueError, match="reward_panel has 24 tasks"):
        family.make("reward_panel", 25, 0)


def test_an_adapter_may_switch_the_evaluator_and_hints():
    family, parent = DesktopFamily(), small_task("editor-add-line", "evaluator1")
    child = family.parse(
        parent, '{"evaluator2": "Go to the beginning. Add the line \\"cheese\\" there, in notes.txt; save."}'
    )
    assert family.validate(child) == ""
    assert task_file(child)["checks"] != task_file(parent)["checks"]
    with pytest.raises(InvalidProposal, match=r"leaves out 'notes\.txt'"):
        family.parse(parent, '{"evaluator2": "Add \\"cheese\\"."}')
    assert family.describe(child).splitlines()[-1].startswith('{"evaluator2"')


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, "a known template"),
        ({"template": "x", "row": 0, "key": "evaluator1"}, "a known template"),
        ({"template": "files-copy", "row": 6, "key": "evaluator1"}, "no such row"),
        ({"template": "files-copy", "row": 0, "key": "x"}, "no such evaluator"),
        ({"template": ["files-copy"], "row": 0, "key": "x"}, "a known template"),
        ({"template": "files-copy", "row": 0, "key": ["evaluator1"]}, "name of an evaluator"),
    ],
)
def test_a_task_that_is_none_is_refused(payload, reason):
    assert reason in DesktopFamily().validate(Task("desktop", "x", payload))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ood_apps": ["gnumerik"]}, "did you mean gnumeric"),
        ({"ood_apps": []}, "at least one of"),
        ({"worlds": 0}, "worlds"),
        ({"observe": "all"}, "observe"),
        ({"screen": (1024,)}, "not .width, height."),
        ({"screen": (1024, 100)}, "at least 480 pixels"),
    ],
)
def test_a_wrong_argument_is_named(more, message):
    with pytest.raises(ValueError, match=message):
        DesktopFamily(**more)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(box.PROGRAMS, "no-such-program", "no-such-package")
    box.missing.cache_clear()
    with pytest.raises(MachineError, match=r"apt install --no-install-recommends .*no-such-package"):
        DesktopFamily().environment()
    box.missing.cache_clear()


def test_a_bubblewrap_that_is_too_old_is_named(desktop, monkeypatch, tmp_path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho bubblewrap 0.6\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    box.missing.cache_clear()
    with pytest.raises(MachineError, match=r"bubblewrap 0\.8 or newer"):
        box.command()
    box.missing.cache_clear()


def test_the_versions_of_the_programs_are_for_the_record(desktop):
    found = desktop.programs()
    assert found.keys() >= {"xvfb", "mousepad", "gnumeric", "at-spi2-core"}
    assert all(found.values())


def test_an_expert_names_items():
    seen = 'x\n[1] menu "File"\n[2] push-button "Save" focused'
    assert named('click <push-button "Save">', seen) == "click 2"
    assert named('click <push-button "Open">', seen) is None
    assert named("type 0 echo a > b", seen) == "type 0 echo a > b"


@pytest.mark.long
def test_no_key_of_a_short_text_is_lost_where_keys_come_again(world):
    for digits in ("44444444", "1144", "7777"):
        world.reset({"launch": ["galculator"], "checks": [{"shown": digits, "role": "text"}]}, 0)
        world.step([{"action_type": "TYPING", "text": digits}])
        assert world.evaluate() == 1.0


@pytest.mark.long
def test_giving_up_is_no_success_even_where_the_checks_hold(desktop):
    made = small_task("terminal-make", "evaluator1")
    environment = desktop.environment()
    for last, succeeded in [("fail", False), ("done", True)]:
        *commands, _ = desktop.expert(made)
        played = list(play(environment, environment.reset(made, 0), [*commands, "wait", last]))
        assert (played[-1][1].done, played[-1][1].success) == (True, succeeded)
    environment.close()


@pytest.mark.long
def test_four_desktops_act_side_by_side(desktop, monkeypatch):
    pool, at_once = desktop._pool, []
    take = pool.take

    def counted(**named):
        world = take(**named)
        at_once.append(pool._taken)
        return world

    monkeypatch.setattr(pool, "take", counted)
    made = [small_task("terminal-make", "evaluator1", row) for row in range(4)]
    expert = {one.instruction: desktop.expert(one) for one in made}

    def script(request):
        text = read(request.prompt_ids)
        commands = next(commands for said, commands in expert.items() if said in text)
        return commands[text.count("You typed") + text.count("You pressed")]

    config = RolloutConfig(timeout_s=600.0)
    worker = RolloutWorker(desktop, chat_model(script, 100_000), prompts(action_format="verbatim"), config)
    played = worker.roll_out(
        [Assignment(i, one, 1) for i, one in enumerate(made)], Sampling(0, "act", 0, 1.0, 6)
    )
    assert [(one.status, one.error, one.outcome) for one in played] == [(Status.OK, "", 1)] * 4
    assert max(at_once) == 4


@pytest.mark.long
def test_a_reset_leaves_nothing_and_shows_the_same(world):
    shell = {"launch": ["lxterminal", "--command=/bin/sh"], "files": {}, "checks": []}
    editor = {"launch": ["mousepad", "a.txt"], "files": {"a.txt": "x\n"}, "checks": []}
    first = world.reset(editor, 0)
    world.reset(shell, 0)
    world.step([{"action_type": "TYPING", "text": "touch left /tmp/left; sleep 1000 &\n"}])
    found = {**shell, "checks": [{"absent": "left"}, {"absent": "/tmp/left"}, {"folder": ".", "holds": []}]}
    world.reset(found, 0)
    assert world.evaluate() == 1.0
    assert world.reset(editor, 0).screenshot.sha256 == first.screenshot.sha256


KEYS = '<keyboard><keybind key="e"><action name="Close"/></keybind></keyboard>'
SETTINGS = f'<openbox_config xmlns="http://openbox.org/3.4/rc">{KEYS}</openbox_config>'
SPOILING = (
    "mkdir -p $XDG_CONFIG_HOME/openbox",
    f"echo '{SETTINGS}' > $XDG_CONFIG_HOME/openbox/rc.xml",
    "openbox --reconfigure",
)
"""From then on the letter e closes the window. To remove files and to end programs does not undo that."""


@pytest.mark.long
def test_what_an_agent_tells_the_window_manager_ends_with_its_episode(desktop):
    environment = desktop.environment()
    environment.reset(small_task("terminal-make", "evaluator1"), 0)
    for command in SPOILING:
        environment.step(f"type 0 {command}")
        environment.step("press enter")
    environment.step("wait")
    assert environment.step("type 0 bee").observation.text == 'You typed "bee".', "nothing is shown any more"
    environment.close()
    assert [solved(desktop, small_task("editor-add-line", "evaluator1")) for _ in range(2)] == [True, True]


@pytest.mark.long
def test_each_episode_has_a_desktop_of_its_own_that_shows_the_same(desktop):
    environment, made = desktop.environment(), small_task("editor-add-line", "evaluator1")
    worlds, shown = [], []
    for _ in range(2):
        shown.append(environment.reset(made, 0))
        worlds.append(environment._world)
    environment.close()
    assert worlds[0] is not worlds[1]
    assert all(world.broken for world in worlds)
    assert shown[0] == shown[1]


@pytest.mark.long
def test_what_is_typed_stays_text_and_there_is_no_network(world):
    nasty = "$(touch x); `id` %s {0} && rm -rf ~ 'q' \"d\" <b> \\n"
    checks = [{"file": "a.txt", "equals": nasty}, {"absent": "x"}]
    world.reset({"launch": ["mousepad", "a.txt"], "files": {"a.txt": ""}, "checks": checks}, 0)
    world.step([{"action_type": "TYPING", "text": nasty}, {"action_type": "HOTKEY", "keys": ["ctrl", "s"]}])
    world.step([{"action_type": "WAIT", "seconds": 1}])
    assert world.evaluate() == 1.0
    shell = {
        "launch": ["lxterminal", "--command=/bin/sh"],
        "files": {},
        "checks": [{"file": "n", "equals": "1"}],
    }
    world.reset(shell, 0)
    world.step(
        [{"action_type": "TYPING", "text": "grep -c : /proc/net/dev > n\n"}]
    )  # the loopback device alone
    world.step([{"action_type": "WAIT", "seconds": 1}])
    assert world.evaluate() == 1.0


@pytest.mark.long
def test_a_screen_has_the_size_that_is_declared(desktop):
    family = DesktopFamily(worlds=1, observe="both", screen=(900, 600), timeout=120.0)
    made = small_task("editor-add-line", "evaluator1")
    environment = family.environment()
    [image] = environment.reset(made, 0).images
    assert (image.width, image.height) == (900, 600)
    assert (
        "outside the screen"
        in environment.step('{"action_type": "CLICK", "x": 900, "y": 1}').observation.text
    )
    environment.close()
    assert solved(family, made)
    family._pool.close()


@pytest.mark.slow
def test_the_time_of_a_start_a_reset_a_step_and_an_end(desktop):
    editor = {"launch": ["mousepad", "a.txt"], "files": {"a.txt": "x\n"}, "checks": []}
    times = []
    for _ in range(5):
        clock = [time.monotonic()]
        world = desktop._pool.take(fresh=True)
        clock.append(time.monotonic())
        world.reset(editor, 0)
        clock.append(time.monotonic())
        world.step([{"action_type": "PRESS", "key": "a"}])
        clock.append(time.monotonic())
        desktop._pool.give_back(world)
        clock.append(time.monotonic())
        times.append([later - earlier for earlier, later in pairwise(clock)])
    start, reset, step, end = map(median, zip(*times, strict=True))
    load = os.getloadavg()[0]
    print(
        f"start {start:.2f} s, reset {reset:.2f} s, step {step:.2f} s, end {end:.2f} s, load average {load:.1f}"
    )
    if load >= (os.cpu_count() or 1):
        pytest.skip(
            f"load average {load:.1f}: the times say nothing beside other work; run it on an idle machine"
        )
    assert start + reset + end < 2.0
