"""Stand-ins are ordinary checkpoints: they load, keep the shape of the real chat formats, and are small."""

from __future__ import annotations

import pytest
import torch

from rlanything.core.errors import ConfigError
from rlanything.core.thoughts import after_thought
from rlanything.engines import checkpoint
from rlanything.engines.chat import Chat
from rlanything.rehearsal.architectures import ARCHITECTURES, HEAD, architecture

TEXTS = [
    "You are in the middle of a room. On the shelf 1, you see a mug 2.",
    "Take the mug, then \\boxed{3}.",
] * 20
ASKED = [{"role": "user", "content": "What next?"}]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def loaded(request, tmp_path_factory):
    """(name, model, tokenizer) of a stand-in as it is read back from disk."""
    made, folder = ARCHITECTURES[request.param], tmp_path_factory.mktemp(request.param)
    tokenizer = made.tokenizer(TEXTS)
    checkpoint.save(made.fresh(tokenizer, 0), tokenizer, folder)
    return request.param, *checkpoint.load(folder)


def test_it_is_of_its_architecture_and_small(loaded):
    name, model, tokenizer = loaded
    assert model.config.model_type == name
    assert model.config.get_text_config().head_dim == HEAD
    assert not model.config.tie_word_embeddings
    assert model.get_input_embeddings().weight.shape[0] == len(tokenizer)
    assert sum(p.numel() for p in model.parameters()) < 500_000


def test_a_turn_ends_with_one_special_token_and_nobodys_words_end_it(loaded):
    name, _, tokenizer = loaded
    chat = Chat(tokenizer)
    end = ARCHITECTURES[name].end
    assert chat.stop_ids[0] == tokenizer.convert_tokens_to_ids(end)
    said = f"I stop {end} here"
    prompt = chat.start([{"role": "user", "content": said}])
    assert prompt.count(chat.stop_ids[0]) == chat.start([{"role": "user", "content": "I stop here"}]).count(
        chat.stop_ids[0]
    )


def test_text_survives_the_tokenizer(loaded):
    chat = Chat(loaded[2])
    for text in (*TEXTS[:2], "a word that was never seen: Grüße\n\n\tx = [1, 2]"):
        assert after_thought(chat.decode(chat.encode_choice(text))) == text


def test_only_the_thinking_one_has_tokens_for_thoughts_and_a_decoded_reply_shows_them(loaded):
    name, _, tokenizer = loaded
    chat, reply = Chat(tokenizer), "<think>\nhm\n</think>\n\n\\boxed{1}"
    assert chat.decode(chat.encode_choice(reply)).endswith(reply)
    assert (tokenizer.convert_tokens_to_ids("</think>") in chat.encode_choice(reply)) is ARCHITECTURES[
        name
    ].thinks


def test_the_thinking_template_leaves_out_the_thoughts_of_earlier_turns():
    tokenizer = ARCHITECTURES["qwen3"].tokenizer(TEXTS)
    turns = [*ASKED, {"role": "assistant", "content": "<think>\nsecret\n</think>\n\nleft"}, *ASKED]
    shown = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert "secret" not in shown
    assert "left" in shown
    assert "secret" in tokenizer.apply_chat_template(turns[:2], tokenize=False)


def test_the_prompt_of_a_model_that_always_thinks_begins_its_thought(loaded):
    name, _, tokenizer = loaded
    prompt = tokenizer.apply_chat_template(ASKED, tokenize=False, add_generation_prompt=True)
    assert prompt.endswith("<think>\n") is (name == "qwen3_vl") is ARCHITECTURES[name].opens


def test_without_a_system_message_qwen2_and_its_sighted_one_write_one():
    for name, made in ARCHITECTURES.items():
        shown = made.tokenizer(TEXTS).apply_chat_template(ASKED, tokenize=False, add_generation_prompt=True)
        assert ("system" in shown) is (name in ("qwen2", "qwen2_5_vl")), name


def test_an_unknown_architecture_is_named_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"architecture 'qwen'.*qwen2"):
        architecture("qwen")


SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 5000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}
"""Of a checkpoint in the real file, if one were this small."""


DECLARED = {
    "Big/Model": {"model_type": "qwen3", **SHAPE},
    "Big/Seeing": {"model_type": "qwen3_vl", "text_config": SHAPE},
    "Big/Other": {"model_type": "mistral", **SHAPE},
}


def test_a_checkpoint_whose_sizes_are_declared_has_them_and_the_stand_ins_tokenizer(tmp_path):
    chosen = architecture("Big/Model", DECLARED)
    tokenizer = chosen.tokenizer(TEXTS)
    model = chosen.of_real_size(tokenizer, 0, torch.device("cpu"))
    assert {key: getattr(model.config, key) for key in SHAPE} == SHAPE
    assert model.dtype == torch.bfloat16
    assert model.config.eos_token_id == tokenizer.convert_tokens_to_ids("<|im_end|>")
    checkpoint.save(model, tokenizer, tmp_path)
    back, words = checkpoint.load(tmp_path)
    assert back.num_parameters() == model.num_parameters()
    assert Chat(words).start(ASKED)
    assert Chat(words).decode((4999,)) == ""  # an id that the tokenizer does not know


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Big/Modell", r"'Big/Modell': unknown; did you mean 'Big/Model'"),
        (
            "Big/Seeing",
            r"Big/Seeing: model_type = 'qwen3_vl': only qwen2, qwen3, llama are rehearsed at real size",
        ),
        ("Big/Other", r"Big/Other: model_type = 'mistral': only qwen2, qwen3, llama"),
    ],
)
def test_sizes_that_cannot_be_rehearsed_are_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        architecture(name, DECLARED)
