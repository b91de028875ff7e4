"""Prompts that show pictures: their ids, what the model samples, and the log-probs that training computes for it."""

from __future__ import annotations

import io

import pytest
import torch
from image_cases import png
from PIL import Image as Pixels
from sight_cases import KINDS, NAMES, PICTURES, engine, folder, loaded, parts, prompt
from transformers import ProcessorMixin, Qwen2_5_VLProcessor, Qwen3VLProcessor

from rlanything.core.errors import UserError
from rlanything.core.images import Image
from rlanything.core.types import (
    Judgement,
    Request,
    ScoredReplies,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)
from rlanything.engines.chat import Chat
from rlanything.engines.sight import eyes as sight
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows, reward_rows

TOLERANCE = 2e-5
"""What rounding makes of a log-prob in float32; the tests of engines without pictures allow 1e-5 of fewer layers."""


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def sampled(kind, shown, max_tokens=6, **more):
    """(requests, completions) of prompts that show these pictures."""
    requests = [
        Request(prompt(kind, *names, text=f"question {k}" * (k + 1)), 10 + k, max_tokens, images=names)
        for k, names in enumerate(shown)
    ]
    return requests, engine(kind, **more).generate(requests)


def recomputed(kind, rows):
    model, _, eyes = loaded(kind)
    with torch.no_grad():
        return target_logprobs(model, pack(rows, eyes=eyes))


SHOWN = [(NAMES[0],), (NAMES[1], NAMES[2]), (), (NAMES[3], NAMES[0], NAMES[3])]


def test_the_ids_have_a_token_for_each_part_of_a_picture_as_the_processor_of_transformers_makes_them(kind):
    _, tokenizer, eyes = loaded(kind)
    ids = prompt(kind, NAMES[0], NAMES[2])
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": parts(NAMES[0], NAMES[2])}], tokenize=False, add_generation_prompt=True
    )
    _, grid = eyes.pixels([NAMES[0], NAMES[2]])
    for size in (
        grid.prod(1) // 4
    ):  # what the processors of Qwen do: each place as often as its picture is large
        text = text.replace("<|image_pad|>", "<|placeholder|>" * int(size), 1)
    text = text.replace("<|placeholder|>", "<|image_pad|>")
    assert ids == tuple(tokenizer.encode(text, add_special_tokens=False))


def test_ids_and_pixels_are_those_of_the_real_processor(kind, monkeypatch):
    """`transformers` checks that a processor also has one for videos, which needs torchvision; pictures do not."""
    monkeypatch.setattr(ProcessorMixin, "check_argument_for_proper_class", lambda *_: None)
    _, tokenizer, eyes = loaded(kind)
    names = (NAMES[2], NAMES[0], NAMES[2])
    made = {"qwen2_5_vl": Qwen2_5_VLProcessor, "qwen3_vl": Qwen3VLProcessor}[kind]
    found = made(sight.load_processor(str(folder(kind))), tokenizer, None)(
        text=tokenizer.apply_chat_template(
            [{"role": "user", "content": parts(*names)}], tokenize=False, add_generation_prompt=True
        ),
        images=[Pixels.open(io.BytesIO(PICTURES[name].png)) for name in names],
        add_special_tokens=False,
        return_tensors="pt",
    )
    ids = torch.tensor([prompt(kind, *names)])
    assert torch.equal(found["input_ids"], ids)
    seen = eyes.inputs(ids, names)
    assert {key for key in found if key in seen} == seen.keys()
    assert all(torch.equal(found[key], value) for key, value in seen.items())


def test_training_computes_the_log_probs_that_were_recorded_when_it_was_sampled(kind):
    requests, completions = sampled(kind, SHOWN)
    rows = []
    for request, found in zip(requests, completions, strict=True):
        step = Step(
            request.prompt_ids, found.ids, found.logprobs, (), "", True, "", prompt_images=request.images
        )
        trajectory = Trajectory("task", 0, 0, 0, "", (step,), 1, Status.OK)
        rows += policy_rows(ScoredTrajectory(trajectory, (1.0,)), "token")
    recorded = torch.tensor([x for found in completions for x in found.logprobs])
    assert (recomputed(kind, rows) - recorded).abs().max() < TOLERANCE
    alone = torch.cat([recomputed(kind, [row]) for row in rows])
    assert (alone - recorded).abs().max() < TOLERANCE


def test_another_picture_of_the_same_size_gives_other_log_probs(kind):
    """The comparison above would notice a picture that is left out or exchanged."""
    requests, completions = sampled(kind, [(NAMES[0],)])
    step = Step(requests[0].prompt_ids, completions[0].ids, completions[0].logprobs, (), "", True, "")
    (row,) = policy_rows(
        ScoredTrajectory(Trajectory("task", 0, 0, 0, "", (step,), 1, Status.OK), (1.0,)), "token"
    )
    seen = PICTURES[NAMES[0]]
    other = Image(png(seen.width, seen.height, shade=5))
    PICTURES[other.sha256] = other
    row.images = [other.sha256]
    recorded = torch.tensor(completions[0].logprobs)
    assert (recomputed(kind, [row]) - recorded).abs().max() > 10 * TOLERANCE


def test_votes_on_several_questions_with_pictures_are_recomputed_as_they_were_sampled(kind):
    shown = [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[2])]
    asked = [Request(prompt(kind, *names), 40 + j, 5, images=names) for names in shown for j in range(3)]
    replies = engine(kind).generate(asked)
    questions = [
        Judgement(
            asked[3 * k].prompt_ids,
            tuple(Vote(1, "", c.ids, c.logprobs) for c in replies[3 * k : 3 * k + 3]),
            shown[k],
        )
        for k in range(2)
    ]
    lesson = ScoredReplies(tuple(questions), ((1.0, -1.0, 0.5),) * 2, (1.0, 1.0))
    rows = reward_rows(lesson, "token")
    assert [row.images for row in rows] == [list(names) for names in shown]
    assert all(row.branched for row in rows)
    recorded = torch.tensor([x for row in rows for x in row.old])
    assert (recomputed(kind, rows) - recorded).abs().max() < TOLERANCE


def test_gradients_reach_the_eyes(kind):
    model, _, eyes = loaded(kind)
    requests, completions = sampled(kind, [(NAMES[1],)])
    step = Step(
        requests[0].prompt_ids, completions[0].ids, completions[0].logprobs, (), "", True, "",
        prompt_images=requests[0].images,
    )  # fmt: skip
    rows = policy_rows(
        ScoredTrajectory(Trajectory("task", 0, 0, 0, "", (step,), 1, Status.OK), (1.0,)), "token"
    )
    target_logprobs(model, pack(rows, eyes=eyes)).sum().backward()
    norm = sum(float(p.grad.abs().sum()) for p in model.base_model.visual.parameters() if p.grad is not None)
    model.zero_grad()
    assert norm > 0


def test_a_sample_does_not_depend_on_the_batch(kind):
    _, together = sampled(kind, SHOWN)
    _, alone = sampled(kind, SHOWN, max_batch=1)
    assert [c.ids for c in together] == [c.ids for c in alone]


def test_the_token_of_a_picture_is_never_written(kind):
    eyes = loaded(kind)[2]
    requests = [Request(prompt(kind, NAMES[0]), seed, 40, 50.0, images=(NAMES[0],)) for seed in range(24)]
    written = [token for found in engine(kind).generate(requests) for token in found.ids]
    assert len(set(written)) > 200, "almost uniform at this temperature"
    assert eyes.token not in written


def test_a_conversation_without_pictures_is_as_it_was(kind):
    _, tokenizer, eyes = loaded(kind)
    messages = [{"role": "user", "content": "what <|image_pad|> next?"}]
    assert Chat(tokenizer, eyes).start(messages) == Chat(tokenizer).start(messages)
    assert eyes.token not in Chat(tokenizer, eyes).start(messages)


def test_words_that_spell_the_token_of_a_picture_stay_words(kind):
    ids = prompt(kind, NAMES[0], text="<|vision_start|><|image_pad|><|vision_end|>")
    eyes = loaded(kind)[2]
    assert ids.count(eyes.token) == eyes.tokens(PICTURES[NAMES[0]].width, PICTURES[NAMES[0]].height)


def test_a_chat_without_eyes_refuses_pictures_before_any_work(kind):
    with pytest.raises(UserError, match="to be shown 1 pictures, and reads text alone"):
        Chat(loaded(kind)[1]).start([{"role": "user", "content": parts(NAMES[0])}])


def test_a_prompt_with_other_pictures_than_it_has_places_for_is_refused(kind):
    request = Request(prompt(kind, NAMES[0]), 1, 4, images=(NAMES[3], NAMES[3]))
    with pytest.raises(ValueError, match=r"a prompt has \d+ tokens of pictures; its 2 pictures take \d+"):
        engine(kind).generate([request])
