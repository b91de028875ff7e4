"""Prompts: untrusted text stays text; replies are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import prompts

from rlanything.core.errors import ConfigError
from rlanything.loop.prompts import ABOUT, LABEL_NAMES, NAMES, PLACEHOLDERS, UNREADABLE, Prompts

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


@pytest.mark.parametrize("action_format", ["boxed_index", "verbatim"])
@pytest.mark.parametrize(
    "reply", ["<think>go \\boxed{1}", "<think>go \\boxed{1}</think>", "go</think>ok<think>go"]
)
@pytest.mark.parametrize("actions", [["go"], []])
def test_half_a_thought_is_never_an_action(action_format, reply, actions):
    assert prompts(action_format).action(reply, actions) == (UNREADABLE, False)


def test_actions_and_verdicts_are_read_after_the_thought():
    thought = "<think>\\boxed{1} or \\boxed{-1}? good</think>\n\n"
    assert prompts("boxed_index").action(thought + "\\boxed{2}", ["go", "look"]) == ("look", True)
    assert prompts("boxed_index").action(thought + "two", ["go", "look"]) == ("two", False)
    assert prompts("verbatim").action(thought + "go", ["go"]) == ("go", True)
    assert prompts("verbatim").action(thought + "print(1)", []) == ("print(1)", True)
    assert prompts(verdict_format="boxed").verdict(thought + "It fits. \\boxed{-1}") == -1
    assert prompts(verdict_format="word").verdict(thought + "It fits: bad") == -1
    assert prompts(verdict_format="word").reasoning(thought + "It fits: bad") == "It fits"


@pytest.mark.parametrize("reply", ["<think>good \\boxed{1}", "<think>good \\boxed{1}</think>"])
@pytest.mark.parametrize("verdict_format", ["word", "boxed"])
def test_half_a_thought_is_no_verdict_and_no_reason(reply, verdict_format):
    assert prompts(verdict_format=verdict_format).verdict(reply) is None
    assert prompts(verdict_format=verdict_format).reasoning(reply) == ""


def test_a_history_alternates_observations_and_actions_before_the_candidates_of_now():
    message = prompts(context="history").history_turn(
        [("start", "go"), ("north", "look")], "a mug", ["take", "go"]
    )
    assert message == {"role": "user", "content": "play\nstart > go\nnorth > look\na mug|1. take\n2. go"}
    assert prompts(context="history").opening("start", ["go"]) == [
        {"role": "user", "content": "play\nstart|1. go"}
    ]


def test_a_question_about_a_step_shows_prompt_response_and_result_in_a_history():
    asked = prompts(context="history").judge_question("moved", "go", "play", "I go. 1")
    assert asked == {"role": "user", "content": "judge [play] [I go. 1] go: moved?"}
    assert prompts().judge_question("moved", "go", "play", "I go. 1")["content"] == "moved?go?"


@pytest.mark.parametrize("text", HOSTILE)
def test_template_syntax_in_a_history_stays_text(text):
    asked = prompts(context="history").history_turn([(text, text)], text, [text])["content"]
    assert asked == f"play\n{text} > {text}\n{text}|1. {text}"


def test_with_a_history_a_question_for_a_test_is_one_turn():
    assert [m["role"] for m in prompts().test_question("add")] == ["system", "user"]
    assert [m["role"] for m in prompts(context="history").test_question("add")] == ["user"]


GAMES = ("instruct", "paper/alfworld")
"""Prompt folders for text games, whose steps a judge can label."""


@pytest.mark.parametrize("context", NAMES)
@pytest.mark.parametrize(
    "folder", ["embedded", "coding_embedded", "instruct", "paper/alfworld", "paper/coding"]
)
def test_the_shipped_prompts_load_and_mention_all_that_they_are_given(folder, context):
    loaded = Prompts.load(SHIPPED / folder, "boxed_index", "boxed", context)
    labels = LABEL_NAMES[context].values() if folder in GAMES else ()
    assert set(loaded.templates) == {*NAMES[context], *labels}
    shown = "an observation", "what one sees"
    for turn in (loaded.opening(shown[0], ["go"])[-1], *loaded.test_question(shown[0])[-1:]):
        assert shown[0] in turn["content"]


def test_for_tasks_of_one_step_the_embedded_prompts_say_the_same_in_both_contexts():
    chat, history = (
        Prompts.load(SHIPPED / "coding_embedded", "verbatim", "word", context) for context in NAMES
    )
    assert chat.opening("add", ()) == history.opening("add", ())
    assert chat.test_question("add") == history.test_question("add")


@pytest.fixture(params=NAMES)
def context(request):
    return request.param


@pytest.mark.parametrize("folder", GAMES)
@pytest.mark.parametrize(
    ("context", "name"),
    [(c, name) for c in NAMES for name in (*NAMES[c], *LABEL_NAMES[c].values())],
)
def test_prompts_for_text_games_show_all_that_there_is(folder, context, name):
    template = Prompts.load(SHIPPED / folder, "boxed_index", "boxed", context).templates[name]
    assert set(template.get_identifiers()) == PLACEHOLDERS[name] - {"opening", "pictures", "before", "after"}


@pytest.fixture
def folder(tmp_path, context):
    for name in NAMES[context]:
        (tmp_path / f"{name}.txt").write_text(" ".join(f"${p}" for p in sorted(PLACEHOLDERS[name])) + "\n")
    return tmp_path


def test_a_folder_needs_the_files_of_its_context_and_a_missing_one_is_named(folder, context):
    Prompts.load(folder, "verbatim", "word", context)
    for name in NAMES[context]:
        text = (folder / f"{name}.txt").read_text()
        (folder / f"{name}.txt").unlink()
        with pytest.raises(ConfigError, match=rf"{name}\.txt is missing; with model\.context = {context} "):
            Prompts.load(folder, "verbatim", "word", context)
        (folder / f"{name}.txt").write_text(text)


def test_a_labelling_judge_is_asked_with_the_label_files_of_its_folder(folder, context):
    plain = Prompts.load(folder, "verbatim", "word", context)
    assert plain.for_labels == plain
    for name in LABEL_NAMES[context].values():
        (folder / f"{name}.txt").write_text(
            f"sound? {name} $observation" if name in ABOUT else f"sound? {name}"
        )
    loaded = Prompts.load(folder, "verbatim", "word", context)
    for judge, label in LABEL_NAMES[context].items():
        assert loaded.templates[judge].template == plain.templates[judge].template
        assert loaded.for_labels.templates[judge].template == (folder / f"{label}.txt").read_text()
    assert loaded.for_labels.judge_question("o", "go")["content"].startswith("sound?")
    assert loaded.for_labels.templates["critic"] == loaded.templates["critic"]


def test_a_folder_with_one_label_file_of_a_context_needs_all_of_them(folder, context):
    first, *others = LABEL_NAMES[context].values()
    (folder / f"{first}.txt").write_text("sound?")
    for name in others:
        with pytest.raises(ConfigError, match=rf"{name}\.txt is missing; .* holds all of them"):
            Prompts.load(folder, "verbatim", "word", context)
    (folder / f"{first}.txt").write_text("$secret")
    for name in others:
        (folder / f"{name}.txt").write_text("sound? $observation")
    with pytest.raises(ConfigError, match=rf"{first}\.txt, line 1: placeholder \$secret"):
        Prompts.load(folder, "verbatim", "word", context)


@pytest.mark.parametrize("folder", GAMES)
def test_the_label_prompts_do_not_ask_for_progress(folder):
    for context, names in LABEL_NAMES.items():
        loaded = Prompts.load(SHIPPED / folder, "boxed_index", "boxed", context)
        asked = " ".join(loaded.templates[name].template for name in names.values())
        judged = " ".join(loaded.templates[name].template for name in names)
        for words in (
            "brings the task forward, or completes it",
            "makes progress, or completes",
            "closer to the goal",
        ):
            assert words not in asked
        assert any(
            words in judged for words in ("brings the task forward", "makes progress", "closer to the goal")
        )


def test_a_template_that_is_no_utf_8_is_refused_at_start(folder, context):
    name = {"chat": "policy_turn", "history": "policy_history"}[context]
    (folder / f"{name}.txt").write_bytes("$observation caf\u00e9".encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"{name}\.txt: cannot be read \(byte 16 is not UTF-8\)"):
        Prompts.load(folder, "verbatim", "word", context)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$observation $secret", "placeholder \\$secret: unknown; known: actions, .*observation"),
        (
            "see\n$observations",
            "placeholder \\$observations: unknown; did you mean 'observation'\\? known: actions, ",
        ),
        ("$observation costs\n$5", "a \\$ that begins no placeholder; known: actions, .*observation"),
        ("$observation 50 $ off", "a \\$ that begins no placeholder; known: actions, .*observation"),
        ("${observation", "a \\$ that begins no placeholder; known: actions, .*observation"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused_at_start_with_its_line(folder, context, text, said):
    name = {"chat": "policy_turn", "history": "policy_history"}[context]
    (folder / f"{name}.txt").write_text(text)
    line = 1 + text.count("\n")
    with pytest.raises(
        ConfigError, match=rf"{name}\.txt, line {line}: {said}.*\. For the sign itself write \$\$"
    ):
        Prompts.load(folder, "verbatim", "word", context)
    (folder / f"{name}.txt").write_text("$observation costs $$5")
    Prompts.load(folder, "verbatim", "word", context)


@pytest.mark.parametrize("text", ["", "Was {action} good, given {observation}?", "Is $$observation fine?"])
def test_a_template_without_what_it_is_about_is_refused_at_start(folder, context, text):
    for name in {*NAMES[context]} & {*ABOUT}:
        whole = (folder / f"{name}.txt").read_text()
        (folder / f"{name}.txt").write_text(text)
        with pytest.raises(ConfigError, match=rf"{name}\.txt: has none of \${ABOUT[name][0]}.*; allowed: "):
            Prompts.load(folder, "verbatim", "word", context)
        (folder / f"{name}.txt").write_text(whole)


def test_a_template_with_only_part_of_what_it_may_say_is_taken(folder, context):
    for name in {*NAMES[context]} & {*ABOUT}:
        (folder / f"{name}.txt").write_text(f"${ABOUT[name][-1]}")
    Prompts.load(folder, "verbatim", "word", context)


@pytest.mark.parametrize("context", ["chat"])
def test_a_placeholder_in_a_file_that_takes_none_is_refused(folder):
    (folder / "judge_system.txt").write_text("\n\n$action")
    with pytest.raises(
        ConfigError, match=r"line 3: placeholder \$action cannot be filled; this file takes none"
    ):
        Prompts.load(folder, "verbatim", "word", "chat")
