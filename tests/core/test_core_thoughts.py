"""What follows a thought is the answer; half a thought never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.thoughts import CLOSING, OPENING, after_thought

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
