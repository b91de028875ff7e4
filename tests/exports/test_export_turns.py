"""Prompts are taken apart into messages that give the same prompts again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from rlanything.core.types import Status, Step, Trajectory
from rlanything.exports import template
from rlanything.exports.template import Markers, Template
from rlanything.exports.turns import NO_PICTURES, turns_of

WORDS = st.text(st.sampled_from("abc .\n{}é"), max_size=12)


def embedded(messages, ask):
    text = "".join(f"<|{m['role']}|>{m['content']}<|end|>" for m in messages)
    return text + ("<|assistant|>" if ask else ""), "<|end|>"


def chatml(messages, ask):
    """A template that adds a system message where there is none."""
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": "You help."}, *messages]
    text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return text + ("<|im_start|>assistant\n" if ask else ""), "<|im_end|>"


def thinking(messages, ask):
    """A template without system messages that opens a thought for every reply."""
    if messages[0]["role"] == "system":
        raise ValueError("no system messages")
    text = "".join(f"<s>{m['role']}: {m['content']}</s>" for m in messages)
    return text + ("<s>assistant: <think>\n" if ask else ""), "</s>"


def markers(render) -> Markers:
    said = {"role": "system", "content": template._SYSTEM}
    user, after = ({"role": "user", "content": text} for text in (template._USER, template._NEXT))
    reply = {"role": "assistant", "content": template._REPLY}
    try:
        told = render([said, user], True)[0]
    except ValueError:
        told = ""
    asked, end = render([user], True)
    return template._markers(asked, told, render([user, reply, after], True)[0], end, "<eos>")


@pytest.mark.parametrize("render", [embedded, chatml, thinking])
@given(system=WORDS, texts=st.lists(WORDS, min_size=1, max_size=4), cut=st.booleans())
def test_a_conversation_is_taken_apart_into_what_was_put_in(render, system, texts, cut):
    found = markers(render)
    opening = [{"role": "user", "content": texts[0]}]
    if render is not thinking and system:
        opening = [{"role": "system", "content": system}, *opening]
    prompt, end = render(opening, True)
    assert found.first(prompt) == opening
    said = [*opening, {"role": "assistant", "content": "reply"}]
    for text in texts[1:]:
        whole, _ = render([*said, {"role": "user", "content": text}], True)
        added = whole[len(render(said, False)[0].rstrip("\n")) :]
        assert found.later(end + added if cut else added) == text
    assert found.reply("go" + end) == found.reply("go") == found.thought + "go"
    assert found.thought == ("<think>" if render is thinking else "")


def test_what_has_another_form_is_not_taken_apart():
    found = markers(embedded)
    assert found.first("<|user|>hello") is None
    assert found.first("hello<|end|><|assistant|>") is None
    assert found.later("hello<|end|><|assistant|>") is None


def steps(*texts: tuple[str, str]) -> Trajectory:
    made = tuple(
        Step((1,), (2,), (-0.5,), (), f"act{k}", True, f"seen{k}", prompt, reply)
        for k, (prompt, reply) in enumerate(texts)
    )
    return Trajectory("t", 0, 0, 1, "first", made, 1, Status.OK)


def test_prompts_that_stand_alone_are_a_conversation_each():
    trajectory = steps(("ask0", "reply0"), ("ask1", "reply1"))
    found = turns_of({"steps": []}, trajectory, Template(problem="not used"))
    assert found.prompt(1) == [{"role": "user", "content": "ask1"}]
    assert [messages for _, messages in found.conversations()] == [
        [{"role": "user", "content": f"ask{k}"}, {"role": "assistant", "content": f"reply{k}"}]
        for k in (0, 1)
    ]
    assert [m["content"] for m in found.conversation()] == ["ask0", "reply0", "seen0", "reply1"]


@pytest.mark.parametrize("found", [Template(problem="gone"), Template(markers(embedded))])
def test_without_prompts_messages_are_observations_and_actions_and_a_note_says_so(found):
    trajectory = steps(("", ""), ("", ""))
    page = {"steps": [{"prompt": None, "response": None}] * 2}
    told = turns_of(page, trajectory, found)
    assert [m["content"] for m in told.conversation()] == ["first", "act0", "seen0", "act1"]
    (note,) = found.notes
    assert note.startswith("messages hold observations and actions, not whole prompts and replies: ")
    assert turns_of({"steps": []}, replace(trajectory, steps=()), found).conversation() == [
        {"role": "user", "content": "first"}
    ]


def test_a_note_says_that_messages_lack_the_pictures_of_their_prompts():
    told = steps(("ask0", "reply0"))
    seen = replace(told, steps=(replace(told.steps[0], prompt_images=("a" * 64,)),))
    for trajectory, notes in ((told, []), (seen, [NO_PICTURES])):
        found = Template(problem="not used")
        turns_of({"steps": []}, trajectory, found)
        assert list(found.notes) == notes


@pytest.mark.integration
def test_the_run_s_own_chat_template_makes_the_recorded_tokens_of_the_messages(
    exported, undisturbed, records
):
    tokenizer = AutoTokenizer.from_pretrained(str(undisturbed / "checkpoints" / "policy"))
    rows = [json.loads(line) for line in (exported("trl-sft") / "train.jsonl").read_text().splitlines()]
    assert len(rows) == len(records) > 10
    for row, (_, record) in zip(rows, records, strict=True):
        last = record.episode.trajectory.steps[-1]
        text = tokenizer.apply_chat_template(row["messages"], tokenize=False)
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tuple(ids[: len(last.prompt_ids)]) == last.prompt_ids
        assert tuple(ids[len(last.prompt_ids) :]) == last.response_ids
