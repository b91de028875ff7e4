"""What follows a thought is the answer; half a thought never is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.thoughts import CLOSING, HARMONY, OPENING, after_thought

ANALYSIS = "<|channel|>analysis<|message|>The mug is gone, so \\boxed{-1}? It was there."
NEXT = "<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>"

PIECES = st.lists(
    st.sampled_from([OPENING, CLOSING, "a", " ", "\n", "<", "think>", "</", "\\boxed{1}"]), max_size=12
)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        pytest.param("<think>\nthe mug\n</think>\n\n\\boxed{2}", "\\boxed{2}", id="qwen3"),
        pytest.param("the mug\n</think>\n\n\\boxed{2}", "\\boxed{2}", id="opened by the prompt"),
        pytest.param("<think>\n\n</think>\n\ngo north", "go north", id="empty thought"),
        pytest.param("</think>go north", "go north", id="empty thought that the prompt opened"),
        pytest.param("Well. <think>a</think> go north", "go north", id="text before the thought"),
        pytest.param("<think>a</think>b<think>c</think>d", "d", id="two thoughts"),
        pytest.param("<think>a<think>b</think>c</think>d", "d", id="a thought in a thought"),
        pytest.param("<think>I may use <think> tags</think>d", "d", id="an opening tag in a thought"),
        pytest.param("<think>it ends with </think> b</think>c", "c", id="a closing tag in a thought"),
        pytest.param(" no thought \n", " no thought \n", id="no thought: the reply as it is"),
        pytest.param("", "", id="an empty reply"),
        pytest.param("a < b, <thinking>, </ think>", "a < b, <thinking>, </ think>", id="other tags"),
        pytest.param("<think>the mug, so \\boxed{2}", None, id="cut off in the thought"),
        pytest.param("<think>a</think>b <think>no, wait", None, id="cut off in a second thought"),
        pytest.param("<think>only a thought</think>", None, id="thought only"),
        pytest.param("only a thought</think>\n\n", None, id="thought only, opened by the prompt"),
        pytest.param("<think>", None, id="nothing but the opening tag"),
    ],
)  # fmt: skip
def test_the_answer_is_what_follows_the_last_thought(reply, answer):
    assert after_thought(reply) == answer


@given(PIECES)
def test_an_answer_holds_no_tag_and_is_its_own_answer(pieces):
    reply = "".join(pieces)
    answer = after_thought(reply)
    if answer is None:
        assert OPENING in reply or CLOSING in reply
        return
    assert OPENING not in answer
    assert CLOSING not in answer
    assert after_thought(answer) == answer
    assert reply.rstrip().endswith(answer) or reply == answer


@given(PIECES, st.text(alphabet="abc \n", min_size=1).filter(str.strip))
def test_nothing_before_a_closing_tag_changes_the_answer(pieces, answer):
    assert after_thought("".join(pieces) + CLOSING + answer) == answer.strip()


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        pytest.param(f"{ANALYSIS}{NEXT}{FINAL}\\boxed{{1}}<|return|>", "\\boxed{1}", id="thought and answer"),
        pytest.param(f"{ANALYSIS}{NEXT}{FINAL}\\boxed{{1}}", "\\boxed{1}", id="the end of turn is dropped"),
        pytest.param(f"{FINAL}\\boxed{{1}}<|return|>", "\\boxed{1}", id="no thought"),
        pytest.param(f"<|start|>assistant{FINAL}yes", "yes", id="with its start"),
        pytest.param(f"{ANALYSIS}{NEXT}{ANALYSIS}{NEXT}{FINAL}yes", "yes", id="two thoughts"),
        pytest.param(f"{ANALYSIS}{NEXT}<|channel|>final <|constrain|>json<|message|>{{}}", "{}", id="of a type"),
        pytest.param(f"{ANALYSIS}{NEXT}<|channel|>final<|constrain|>json<|message|>{{}}", "{}", id="no blank"),
        pytest.param(f"{ANALYSIS}{NEXT}{FINAL}say <think>", "say <think>", id="other models' tags are text"),
        pytest.param(ANALYSIS, None, id="cut off in the thought"),
        pytest.param(f"{ANALYSIS}<|end|>", None, id="a thought and nothing else"),
        pytest.param(f"{ANALYSIS}{NEXT}", None, id="cut off before the channel"),
        pytest.param(f"{ANALYSIS}{NEXT}<|channel|>fin", None, id="cut off in the header"),
        pytest.param(f"{ANALYSIS}{NEXT}<|channel|>final", None, id="cut off before the message"),
        pytest.param(f"{ANALYSIS}{NEXT}{FINAL}", None, id="an empty answer"),
        pytest.param(f"{ANALYSIS}{NEXT}<|channel|>finally<|message|>yes", None, id="another channel"),
        pytest.param(
            f"{ANALYSIS}{NEXT}<|channel|>commentary to=functions.look <|constrain|>json<|message|>{{}}<|call|>",
            None, id="a call of a tool",
        ),
        pytest.param(f"{FINAL}\\boxed{{1}}{NEXT}{ANALYSIS}", None, id="a thought after an answer"),
        pytest.param(f"{FINAL}\\boxed{{1}}{NEXT}", None, id="another message begins"),
    ],
)  # fmt: skip
def test_the_answer_in_channels_is_the_last_message_if_that_is_final(reply, answer):
    assert after_thought(reply) == answer


@given(st.lists(st.sampled_from([*HARMONY, OPENING, CLOSING, "analysis", "final", " ", "a"]), max_size=14))
def test_half_a_reply_in_channels_answers_with_what_stands_in_its_final_message_or_not_at_all(pieces):
    reply = "<|channel|>" + "".join(pieces)
    answer = after_thought(reply)
    if answer is not None:
        assert reply.rpartition("<|channel|>")[2].startswith(("final", " "))
        assert answer in reply.rpartition("<|message|>")[2] or "<|message|>" in answer
        assert not any(mark in answer for mark in ("<|channel|>", "<|start|>", "<|end|>"))


@pytest.mark.parametrize("piece", [*HARMONY, "<|channel|>final<|message|>", "<", "<|"])
def test_long_replies_in_channels_take_linear_time(piece):
    reply = "<|channel|>" + piece * 200_000
    begun = time.process_time()
    after_thought(reply)
    assert time.process_time() - begun < 2
