"""Templates of models that think: who opens the thought, what a reply's text holds, what a conversation keeps."""

from __future__ import annotations

import engine_cases as cases
import pytest

from rlanything.core.thoughts import HARMONY, after_thought
from rlanything.engines.chat import Chat

ANSWERED = "{% set said = message.content.split('</think>')[-1].strip() %}"
QWEN3 = (
    "{% for message in messages %}{% set said = message.content %}{% if message.role == 'assistant' %}" + ANSWERED +
    "{% if loop.last %}{% set said = '<think>\n\n</think>\n\n' + said %}{% endif %}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ said }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)  # fmt: skip
"""Like Qwen3's: the model opens its thought; earlier thoughts are dropped, and the last message gets an empty one."""
R1 = (
    "{% for message in messages %}{% if message.role == 'assistant' %}" + ANSWERED +
    "<|im_start|>assistant{{ said }}<|im_end|>{% else %}<|im_start|>user{{ message.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant<think>\n{% endif %}"
)  # fmt: skip
"""Like DeepSeek-R1's and Qwen3-Thinking's: the prompt opens the thought; earlier thoughts are dropped."""
HELLO = {"role": "user", "content": "go to desk 1"}


def encoded(tokenizer, text: str) -> tuple[int, ...]:
    return (*tokenizer.encode(text, add_special_tokens=False), cases.END)


@pytest.mark.parametrize(
    ("template", "reply"),
    [(QWEN3, "<think>\nthe mug\n</think>\n\ntake mug"), (R1, "the mug\n</think>\n\ntake mug")],
    ids=["qwen3", "r1"],
)
def test_the_text_of_a_reply_holds_the_whole_thought_whoever_opened_it(template, reply):
    tokenizer = cases.tokenizer(template)
    text = Chat(tokenizer).decode(encoded(tokenizer, reply))
    assert text.startswith("<think>")
    assert after_thought(text) == "take mug"


@pytest.mark.parametrize(
    ("template", "answer"), [(QWEN3, "the mug, so take mug"), (R1, None)], ids=["qwen3", "r1"]
)
def test_a_reply_without_tags_is_half_a_thought_where_the_prompt_opened_one(template, answer):
    tokenizer = cases.tokenizer(template)
    assert after_thought(Chat(tokenizer).decode(encoded(tokenizer, "the mug, so take mug"))) == answer


@pytest.mark.parametrize("template", [QWEN3, R1, cases.CHATML], ids=["qwen3", "r1", "chatml"])
def test_a_choice_is_an_answer_after_an_empty_thought_where_the_prompt_opened_one(template):
    chat = Chat(cases.tokenizer(template))
    ids = chat.encode_choice("take mug")
    assert ids[-1] == cases.END
    assert after_thought(chat.decode(ids)) == "take mug"
    assert ("</think>" in cases.tokenizer(template).decode(ids)) == (template is R1)


@pytest.mark.parametrize("template", [QWEN3, R1], ids=["qwen3", "r1"])
def test_a_conversation_keeps_a_thought_that_the_template_would_drop(template):
    tokenizer = cases.tokenizer(template)
    chat = Chat(tokenizer)
    prompt = chat.start([HELLO])
    reply = encoded(tokenizer, "<think>the mug</think>take mug")
    grown = chat.extend(prompt, reply, {"role": "user", "content": "Nothing."})
    assert grown[: len(prompt) + len(reply)] == prompt + reply
    said = {"role": "assistant", "content": "<think>the mug</think>take mug"}
    rendered = tokenizer.apply_chat_template(
        [HELLO, said, {"role": "user", "content": "Nothing."}], tokenize=False, add_generation_prompt=True
    )
    assert "the mug" in tokenizer.decode(grown)
    assert "the mug" not in rendered


def test_tags_that_a_tokenizer_calls_special_stay_in_the_text():
    tokenizer = cases.fresh_tokenizer(cases.CHATML)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    chat = Chat(tokenizer)
    text = chat.decode(encoded(tokenizer, "<think>the mug</think>take mug"))
    assert after_thought(text) == "take mug"
    assert "<think>" in text


def test_the_channels_of_gpt_oss_stay_in_the_text_and_a_box_in_half_a_thought_is_no_answer():
    tokenizer = cases.fresh_tokenizer(cases.CHATML)
    tokenizer.add_special_tokens({"additional_special_tokens": list(HARMONY)})
    chat = Chat(tokenizer)
    thought = "<|channel|>analysis<|message|>the mug, so \\boxed{-1}"
    assert after_thought(chat.decode(encoded(tokenizer, thought))) is None
    whole = f"{thought}<|end|><|start|>assistant<|channel|>final<|message|>\\boxed{{1}}"
    assert after_thought(chat.decode(encoded(tokenizer, whole))) == "\\boxed{1}"


def test_ends_of_turn_that_other_models_share_with_gpt_oss_are_dropped():
    tokenizer = cases.fresh_tokenizer(cases.CHATML)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|end|>"]})
    assert Chat(tokenizer).decode(encoded(tokenizer, "take mug<|end|>")) == "take mug"
