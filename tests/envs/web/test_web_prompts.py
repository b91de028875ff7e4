"""What language models are asked on web pages, and how their replies are read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from web_cases import at_start

from envs.computer import reply
from envs.computer.actions import Action, Refusal
from envs.computer.keyboard import PAGE
from envs.web.browser.launch import SCREEN
from envs.web.play.text import STYLES
from envs.web.tasks.edit import _read
from rlanything.cli import main
from rlanything.config import load
from rlanything.engines.chat import Chat
from rlanything.loop.prompts import Prompts
from rlanything.rehearsal.architectures import architecture

ROOT = Path(__file__).parents[3]
FOLDERS = {"web": ("chat", "history"), "paper/web": ("history",)}
"""A folder of experiments/prompts -> the contexts that it has templates for."""
SHOWN = 'Press the button.\n[1] button "Go"'
CLICK = {"action_type": "CLICK", "x": 40, "y": 90}


def prompts(folder: str, context: str = "history") -> Prompts:
    return Prompts.load(ROOT / "experiments" / "prompts" / folder, "verbatim", "boxed", context)


@pytest.mark.parametrize(
    ("scale", "env"), [("local", "web"), ("single-gpu", "web"), ("paper", "web"), ("local", "web_easy")]
)
def test_each_scale_of_language_models_has_the_prompts_of_pages(tmp_path, capsys, scale, env):
    path = tmp_path / "params.yaml"
    given = [f"scale={scale}", f"env={env}", "learn.policy.lora=null", "learn.reward.lora=null"]
    assert main(["--root", str(ROOT), "config", "write", "--output", str(path), *given]) == 0
    assert main(["--root", str(ROOT), "config", "check", str(path)]) == 0
    assert f"{path}: valid" in capsys.readouterr().out
    config = load(path)
    assert (config.model.prompts, config.model.action_format) == ("experiments/prompts/web", "verbatim")
    assert (config.env["text"], config.env["observe"]) == ("plain", "tree")
    assert (config.rollout.decoding, config.evaluate.labels) == ("free", "oracle")
    assert config.rollout.max_steps == config.evaluate.max_steps == 8


def test_a_model_that_sees_gets_pictures_of_pages(tmp_path):
    path = tmp_path / "params.yaml"
    given = ["scale=local", "env=web", "env.observe=both", "model.images.policy=2", "model.images.reward=2"]
    for more in ([], ["env.observe=screenshot", "model.prompts=experiments/prompts/paper/web"]):
        words = ["--root", str(ROOT), "config", "write", "--output", str(path), *given, *more]
        assert main(words) == 0
        assert main(["--root", str(ROOT), "config", "check", str(path)]) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["env.observe=screenshot"], "env.observe = 'screenshot': the screen is a picture only"),
        (
            ["model.images.policy=2"],
            "model.images.policy = 2: with env.observe = 'tree' the environment shows no",
        ),
        (
            ["env.observe=both", "model.images.policy=1", "engine=native"],
            "model.images.policy = 1: only engine=tr",
        ),
    ],
)
def test_what_is_not_seen_is_refused_by_its_key(capsys, changes, words):
    assert main(["--root", str(ROOT), "config", "check", "scale=local", "env=web", *changes]) != 0
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "context"), [(f, c) for f, contexts in FOLDERS.items() for c in contexts])
def test_prompts_speak_of_pages_and_not_of_houses_or_desktops(folder, context):
    for name, template in prompts(folder, context).templates.items():
        assert not re.search(r"household|desktop|receptacle|program", template.template), name
        if name not in ("policy_turn", "policy_history_step", "judge"):
            assert "page" in template.template, name


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_vl"])
def test_an_episode_is_rendered_with_a_chat_template_like_a_real_one(kind):
    tokenizer = architecture(kind).tokenizer([SHOWN] * 4)
    chat = Chat(tokenizer)
    folder = "web" if kind == "qwen2" else "paper/web"
    made = prompts(folder)
    turn = made.history_turn([(SHOWN, "click 1")], 'You clicked button "Go" 1. Nothing changed.', ())
    asked = tokenizer.decode(chat.start([turn]))
    assert asked.startswith("<|im_start|>")
    assert asked.index(SHOWN) < asked.index("click 1\nYou clicked") < asked.index("<|im_start|>assistant")
    question = made.judge_question("The page has ended the task.", "click 1", turn["content"], "click 1")
    judged = tokenizer.decode(chat.start([question]))
    assert turn["content"] in judged
    assert judged.index("click 1\n>>>") < judged.index("The page has ended the task.")
    assert made.verdict(r"It did what was asked. \boxed{1}") == 1


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click 3", Action("click", 3)),
        ("Click 3.", Action("click", 3)),
        ("type 1 thaddeus", Action("type", 1, text="thaddeus")),
        ("press down+enter", Action("chord", keys=("down", "enter"))),
        ("type 0 a b", Action("type", text="a b")),
        ("scroll 2 down", Action("scroll", 2, dy=100)),
        ("fail", Action("fail")),
        ("The login button is 3.\n```\nclick 3\n```", Action("click", 3)),
        (json.dumps(CLICK), Action("click", x=40, y=90)),
        (f"I click it: {json.dumps(CLICK)}", Action("click", x=40, y=90)),
        (f"```json\n{json.dumps(CLICK)}\n```", Action("click", x=40, y=90)),
        (
            'Action: I press Enter.\n<tool_call>\n{"name": "computer_use", "arguments": '
            '{"action": "key", "keys": ["down", "enter"]}}\n</tool_call>',
            Action("chord", keys=("down", "enter")),
        ),
        ('{"name": "computer_use", "arguments": {"action": "key", "keys": ["super"]}}', None),
        ("I would click 3", None),
        ("click 3\nclick 4", None),
    ],
)
def test_typical_replies_are_read(text, action):
    found = reply.read(text, SCREEN, PAGE)
    assert found == action if action else isinstance(found, Refusal)


@pytest.mark.parametrize(("folder", "name"), [("web", "policy_history"), ("paper/web", "policy_history")])
def test_every_action_that_a_prompt_names_is_one(folder, name):
    """Its lines name forms with N, TEXT, KEYS, X and Y, or values of the tool's argument."""
    text = prompts(folder).templates[name].template
    forms = [
        form
        for line in re.findall(r"^- ([^:{]+|\{.*?\}):", text, re.MULTILINE)
        for form in ([line] if line.startswith("{") else line.split(", "))
    ]
    assert len(forms) > 8
    for form in forms:
        said = form.replace(" N", " 1").replace("TEXT", "a b").replace("KEYS", "enter")
        said = said.replace('"x": X, "y": Y', '"x": 1, "y": 2')
        if folder == "paper/web":
            given = {"coordinate": [1, 2], "text": "a", "keys": ["enter"], "pixels": 1}
            said = json.dumps({"name": "computer_use", "arguments": {"action": said, **given}})
        assert isinstance(reply.read(said, SCREEN, PAGE), Action), said


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_rewrite_in_the_form_that_the_adapter_is_asked_for_is_read(folder):
    asked = prompts(folder).fill("adapter", facts="f", direction="harder", accuracy="90%", critic="c")
    form = asked.splitlines()[-1]
    assert _read(f"A later one is harder.\n{form.replace('NAME', 'click-tab-2').replace('HINT', '')}") == (
        "click-tab-2",
        "",
    )


def test_an_episode_reads_replies_of_language_models_and_commands_of_its_style(pool):
    episode = at_start(pool, "click-test", "1")
    assert episode.read("It is the only button.\n```\nclick 1\n```") == Action("click", 1)
    compact = at_start(pool, "enter-text", "1", "compact")
    written, exact = next((w, c) for w, c in compact.commands.items() if c.startswith("type"))
    assert written != exact
    assert STYLES["compact"].word(exact) == written
    assert compact.read(written) == reply.read(exact, SCREEN, PAGE)
