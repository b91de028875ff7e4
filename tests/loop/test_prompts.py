"""Prompts: untrusted text stays text; replies are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import prompts

from rlanything.core.errors import ConfigError
from rlanything.loop.prompts import NAMES, PLACEHOLDERS, Prompts

SHIPPED = Path(__file__).parents[2] / "experiments" / "prompts"
HOSTILE = [
    "$x",
    "${y}",
    "$actions",
    "${observation}",
    "{}",
    "{0}",
    "%s",
    "$$",
    "$",
    "{{ x }}",
    "{% end %}",
    "\\1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_template_syntax_in_an_observation_stays_text(text):
    assert prompts().turn(f"a {text} b", [text]) == {"role": "user", "content": f"a {text} b|1. {text}"}


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_put_into_the_judge_question_unchanged(observation, action):
    assert prompts().fill("judge", observation=observation, action=action) == f"{observation}?{action}?"


def test_a_value_is_never_filled_into_another_value():
    filled = prompts().fill("adapter", facts="$critic", direction="easier", accuracy="0%", critic="$facts")
    assert filled == "$critic, easier, 0%, $facts"


def test_actions_are_numbered_from_one():
    assert prompts().turn("o", ["go", "look"])["content"] == "o|1. go\n2. look"


def test_an_opening_holds_the_system_message_and_an_empty_one_is_left_out():
    assert [m["role"] for m in prompts().opening("o", [])] == ["system", "user"]
    assert [m["role"] for m in prompts(policy_system="").opening("o", [])] == ["user"]
    assert prompts(judge_system="").judge_opening("o") == [{"role": "user", "content": "o"}]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I look. \\boxed{2}", ("look", True)),
        ("\\boxed{1} no, \\boxed{ 2 }", ("look", True)),
        ("\\boxed{+1}", ("go", True)),
        ("\\boxed{0}", ("\\boxed{0}", False)),
        ("\\boxed{3}", ("\\boxed{3}", False)),
        ("\\boxed{-1}", ("\\boxed{-1}", False)),
        ("\\boxed{1.5}", ("\\boxed{1.5}", False)),
        ("boxed{1}", ("boxed{1}", False)),
        ("1", ("1", False)),
        ("", ("", False)),
    ],
)
def test_boxed_index_names_an_action_counted_from_one_or_is_invalid(reply, expected):
    assert prompts("boxed_index").action(reply, ["go", "look"]) == expected


def test_an_unreadable_reply_is_cut_so_that_the_next_prompt_stays_short():
    action, valid = prompts("boxed_index").action("x" * 5000, ["go"])
    assert (len(action), valid) == (200, False)


@pytest.mark.parametrize(
    ("reply", "actions", "expected"),
    [
        (" go \n", ["go"], ("go", True)),
        ("GO", ["go"], ("GO", False)),
        ("go there", ["go"], ("go there", False)),
        ("anything", [], ("anything", True)),
    ],
)
def test_verbatim_actions_must_be_admissible_where_a_list_is_given(reply, actions, expected):
    assert prompts("verbatim").action(reply, actions) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("useful: good", 1),
        ("bad", -1),
        ("good at first, then bad", -1),
        ("goodness", None),
        ("Good", None),
        ("1", None),
        ("", None),
    ],
)
def test_the_last_whole_word_is_the_verdict_or_there_is_none(reply, expected):
    assert prompts(verdict_format="word").verdict(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("\\boxed{1}", 1),
        ("so \\boxed{+1}.", 1),
        ("\\boxed{-1}", -1),
        ("\\boxed{1} or rather \\boxed{-1}", -1),
        ("\\boxed{-1} then \\boxed{2}", None),
        ("\\boxed{0}", None),
        ("\\boxed{good}", None),
        ("good", None),
    ],
)
def test_the_last_boxed_number_is_the_verdict_or_there_is_none(reply, expected):
    assert prompts(verdict_format="boxed").verdict(reply) == expected


def test_the_reasoning_is_the_reply_without_its_verdict():
    assert prompts(verdict_format="word").reasoning("nothing  found: bad") == "nothing found"
    assert prompts(verdict_format="boxed").reasoning("nothing found. \\boxed{-1}") == "nothing found"


@pytest.mark.parametrize(
    "folder", ["embedded", "coding_embedded", "instruct", "paper/alfworld", "paper/coding"]
)
def test_the_shipped_prompts_load_and_mention_all_that_they_are_given(folder):
    loaded = Prompts.load(SHIPPED / folder, "boxed_index", "boxed")
    assert set(loaded.templates) == set(NAMES)
    assert "observation" in loaded.templates["policy_turn"].get_identifiers()


@pytest.mark.parametrize("folder", ["instruct", "paper/alfworld"])
@pytest.mark.parametrize("name", NAMES)
def test_prompts_for_text_games_show_all_that_there_is(folder, name):
    template = Prompts.load(SHIPPED / folder, "boxed_index", "boxed").templates[name]
    assert set(template.get_identifiers()) == PLACEHOLDERS[name]


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        (tmp_path / f"{name}.txt").write_text(" ".join(f"${p}" for p in sorted(PLACEHOLDERS[name])) + "\n")
    return tmp_path


def test_a_missing_template_is_named(folder):
    (folder / "critic.txt").unlink()
    with pytest.raises(ConfigError, match=r"critic\.txt is missing"):
        Prompts.load(folder, "verbatim", "word")


@pytest.mark.parametrize("text", ["$observation $secret", "50 $ off", "${observation"])
def test_a_template_that_cannot_be_filled_is_refused_at_start(folder, text):
    (folder / "policy_turn.txt").write_text(text)
    with pytest.raises(
        ConfigError, match=r"policy_turn\.txt: placeholders .* allowed: \$actions, \$observation"
    ):
        Prompts.load(folder, "verbatim", "word")
