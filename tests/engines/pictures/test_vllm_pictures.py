"""The engine `vllm` shows pictures: it samples what `transformers` samples, always by the weights of now."""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec

import engine_cases as cases
import pytest
import torch
from image_cases import png
from sight_cases import KINDS, NAMES, folder, loaded, prompt

from rlanything.core.errors import MachineError
from rlanything.core.images import Image
from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import instance, support
from rlanything.engines.vllm.probe import WeightsMismatch
from rlanything.engines.vllm.served import addresses
from rlanything.engines.vllm.served.store import Store

SHOWN = [(NAMES[0],), (NAMES[1], NAMES[2]), (), (NAMES[3], NAMES[0], NAMES[3])]
KIND = KINDS[0]


def requests(kind: str) -> list[Request]:
    """Free and constrained, with pictures and without, some with a common beginning."""
    found = []
    for k, names in enumerate(SHOWN * 3):
        ids = prompt(kind, *names, text=f"question {k % 5}" * (k % 3 + 1))
        choices = ((9, 8, 2), (9, 7, 2), (4, 2)) if k % 4 == 1 else ()
        found.append(Request(ids, 10 + k, 6, choices=choices, session=str(k), images=names))
    return found


def furthest(one, other) -> float:
    """The largest difference between log-probs of the same ids."""
    assert cases.ids(one) == cases.ids(other)
    pairs = zip(one, other, strict=True)
    return max(
        abs(a - b) for left, right in pairs for a, b in zip(left.logprobs, right.logprobs, strict=True)
    )


def opened(model, words, eyes, **more):
    return cases.opened("vllm", model, words, eyes=eyes, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_it_samples_what_transformers_samples(kind):
    model, words, eyes = loaded(kind)
    asked = requests(kind)
    expected = TransformersEngine(model, words, eyes=eyes).generate(asked)
    with opened(model, words, eyes, max_batch=4) as engine:
        found = engine.generate(asked)
        again = engine.generate(asked)  # what was seen and read is found in vLLM's caches
    assert [c.allowed for c in found] == [c.allowed for c in expected]
    assert furthest(found, expected) < cases.TOLERANCE["vllm"]
    assert furthest(again, expected) < cases.TOLERANCE["vllm"]


def test_short_passes_that_cut_pictures_change_nothing():
    model, words, eyes = loaded(KIND)
    asked = requests(KIND)
    expected = TransformersEngine(model, words, eyes=eyes).generate(asked)
    with opened(model, words, eyes, max_batch=2, max_batched_tokens=16) as engine:
        assert furthest(engine.generate(asked), expected) < cases.TOLERANCE["vllm"]


def test_another_picture_under_the_same_ids_is_another_prompt():
    model, words, eyes = loaded(KIND)
    images = [Image(png(70, 60, shade=shade)) for shade in (3, 90)]
    eyes = eyes.knowing(images[0]).knowing(images[1])
    ids = prompt(KIND, NAMES[0])  # a picture of the same size
    asked = [Request(ids, 1, 6, images=(image.sha256,)) for image in images]
    with opened(model, words, eyes) as engine:
        found = [engine.generate([request])[0] for request in (*asked, *asked)]
    expected = TransformersEngine(model, words, eyes=eyes).generate([*asked, *asked])
    assert furthest(found, expected) < cases.TOLERANCE["vllm"]
    assert found[0].logprobs[0] != found[1].logprobs[0]
    assert abs(found[0].logprobs[0] - found[1].logprobs[0]) > cases.TOLERANCE["vllm"]


def learn_to_see(model) -> None:
    """An update of the vision tower alone."""
    with torch.no_grad():
        for parameter in model.model.visual.parameters():
            parameter.mul_(1.1)


@pytest.fixture
def own():
    """A model that may be changed, its tokenizer and its eyes."""
    _, words, eyes = loaded(KIND)
    model, _ = checkpoint.load(folder(KIND))
    return model, words, eyes


def test_an_update_of_the_vision_tower_is_taken_over_and_one_that_is_not_is_noticed(own, monkeypatch):
    model, words, eyes = own
    asked = requests(KIND)[:2]
    with opened(model, words, eyes) as engine:
        before = engine.generate(asked)
        learn_to_see(model)
        engine.sync(1)
        after = engine.generate(asked)
        expected = TransformersEngine(model, words, eyes=eyes).generate(asked)
        assert furthest(after, expected) < cases.TOLERANCE["vllm"]
        assert [c.logprobs for c in before] != [c.logprobs for c in after]
        load = instance.Instance.load
        blind = {
            name: weight.clone() for name, weight in model.state_dict().items() if ".visual." not in name
        }
        monkeypatch.setattr(instance.Instance, "load", lambda self, weights: load(self, blind))
        learn_to_see(model)
        with pytest.raises(WeightsMismatch):
            engine.sync(2)


def test_what_older_weights_saw_has_another_name(own, monkeypatch):
    """With new weights vLLM forgets what the vision tower made of pictures, and its scheduler does not know it."""
    model, words, eyes = own
    monkeypatch.setattr(instance, "seen_as", lambda name, salt: name)
    with opened(model, words, eyes) as engine:
        engine.generate(requests(KIND)[:1])
        learn_to_see(model)
        with pytest.raises(RuntimeError, match="Encoder cache miss"):
            engine.sync(1)


def test_a_picture_that_is_not_there_is_named_before_anything_is_started(own):
    model, words, _ = own

    def find(name: str) -> Image:
        raise MachineError(f"picture {name}: it is gone")

    eyes = sight.load(str(folder(KIND)), None, model, find)
    with opened(model, words, eyes) as engine:
        with pytest.raises(MachineError, match=f"picture {NAMES[0]}: it is gone"):
            engine.generate(requests(KIND)[:1])
        assert engine._instance is None
        with pytest.raises(ValueError, match="its 0 pictures take 0"):
            engine.generate([replace(requests(KIND)[0], images=())])


def test_a_model_that_reads_text_alone_is_shown_none(own):
    model, words, _ = own
    request = requests(KIND)[0]
    with (
        cases.opened("vllm", deepcopy(model), words) as engine,
        pytest.raises(ValueError, match="this engine reads text alone"),
    ):
        engine.generate([request])


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_shows_pictures_and_takes_over_the_vision_tower(kind, monkeypatch):
    _, words, eyes = loaded(kind)
    model, _ = checkpoint.load(folder(kind))
    asked = requests(kind)
    with cases.opened("vllm_servers", model, words, eyes=eyes, max_batch=4) as engine:
        for update in range(3):
            if update:
                learn_to_see(model)
                engine.sync(1)
            expected = TransformersEngine(model, words, eyes=eyes).generate(asked)
            assert furthest(engine.generate(asked), expected) < cases.TOLERANCE["vllm_servers"]
        (server,), context = engine._instance._servers, model.config.get_text_config().max_position_embeddings
        assert addresses._unfit(server.address, engine._instance._store.model, context, sees=True) == ""
        write = Store.write
        monkeypatch.setattr(
            Store,
            "write",
            lambda self, weights: write(self, {n: w for n, w in weights.items() if ".visual." not in n}),
        )
        learn_to_see(model)
        with pytest.raises(WeightsMismatch):
            engine.sync(2)


def test_what_is_said_to_be_sighted_is_registered():
    cases.needs_vllm()
    from vllm import ModelRegistry

    from rlanything.engines.vllm import sighted
    from rlanything.engines.vllm.surroundings import restored

    with restored("cpu"):
        sighted.register()
    for name in support.SIGHTED:
        made = ModelRegistry.models[name].model_cls._processor_factory
        assert made.processor is sighted.Processor
    assert sighted._NEEDED not in sys.modules or find_spec("torchvision")
