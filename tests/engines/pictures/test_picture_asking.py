"""What vLLM is asked about prompts with pictures, and what its probe looks at. vLLM itself need not be installed."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path

import pytest
import torch
from served_cases import listening
from sight_cases import KINDS, NAMES, PICTURES, folder, loaded, prompt

from rlanything.core.errors import UserError
from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.chat import stop_ids
from rlanything.engines.decode import Draft
from rlanything.engines.sight.eyes import locate
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import probe, support
from rlanything.engines.vllm.asking import ask
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.instance import Settings
from rlanything.engines.vllm.served import addresses, process, program
from rlanything.engines.vllm.served.engine import VllmServers
from rlanything.engines.vllm.served.wire import question

KIND = KINDS[0]


def asked(*names: str):
    _, words, eyes = loaded(KIND)
    request = Request(prompt(KIND, *names), 1, 4, images=names)
    draft = Draft(request, request.prompt_ids, frozenset(stop_ids(words)))
    return ask(draft, stop_ids(words), 1000, eyes)


def test_a_prompt_says_where_it_shows_which_picture():
    _, _, eyes = loaded(KIND)
    found = asked(NAMES[2], NAMES[0])
    assert [place.name for place in found.pictures] == [NAMES[2], NAMES[0]]
    for place in found.pictures:
        image = PICTURES[place.name]
        assert place.tokens == eyes.tokens(image.width, image.height)
        assert set(found.prompt[place.start : place.start + place.tokens]) == {eyes.token}
    assert found.arguments["never"] == eyes.token
    assert asked().pictures == ()


@pytest.mark.parametrize(
    ("ids", "counts", "words"),
    [
        ([7, 9, 9, 7], [3], "has 2 tokens of pictures; its 1 pictures take 3"),
        ([7, 9, 9, 7], [], "has 2 tokens of pictures; its 0 pictures take 0"),
        ([9, 7, 9, 9], [2, 1], "tokens of a prompt's picture 1 do not follow one another"),
    ],
)
def test_pictures_that_do_not_fit_their_prompt(ids, counts, words):
    with pytest.raises(ValueError, match=words):
        locate(ids, 9, counts)


def test_pictures_may_lie_side_by_side():
    assert locate([9, 9, 9, 7, 9], 9, [1, 2, 1]) == [0, 1, 4]


def test_a_server_is_sent_the_bytes_of_pictures_under_names_of_the_weights():
    body = question(asked(NAMES[1]), "weights 3")
    (part,) = body["content_parts"]
    kind, data = part["url"].split(",")
    assert (part["type"], kind) == ("image_url", "data:image/png;base64")
    assert base64.b64decode(data) == PICTURES[NAMES[1]].png
    assert part["uuid"] == f"{NAMES[1]} by weights 3"
    assert "content_parts" not in question(asked(), "weights 3")


def test_a_server_for_a_model_that_sees_is_started_as_one():
    settings = Settings("cpu", "float32", 512, 8, 64, 1 << 20, True, True, sighted=True)
    found = process.arguments(Path("m"), Path("s"), settings)
    assert {"--skip-mm-profiling", "--no-mm-device-do-normalize"} <= set(found)
    assert found[found.index("--mm-processor-cache-gb") + 1] == "0"


def test_a_server_is_asked_no_more_prompts_with_pictures_than_it_decodes(monkeypatch):
    model, words, eyes = loaded(KIND)
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    assert VllmServers(model, words, max_batch=4, eyes=eyes)._limits.at_once == 4
    assert VllmServers(model, words, max_batch=4)._limits.at_once == 8


def test_a_given_server_that_reads_pictures_in_its_own_way_is_not_taken():
    with listening(folder(KIND)) as (address, fake):
        take = partial(addresses.Claims().take, Request, [address], 1, folder(KIND), 512)
        assert take(sees=False) == (address,)
        with pytest.raises(
            UserError,
            match=r"it would read pictures in another way than training; start it with python -m rl",
        ):
            take(sees=True)
        fake.called = program.NAME
        assert take(sees=True) == (address,)


def test_the_sizes_of_a_server_s_model_are_compared_where_they_are_nested():
    model = loaded(KIND)[0]
    found = addresses._configuration(folder(KIND))
    assert found is not None
    assert found["hidden_size"] == model.config.get_text_config().hidden_size
    assert found["architectures"] == [type(model).__name__]


@pytest.mark.parametrize("kind", KINDS)
def test_the_probe_notices_a_vision_tower_of_other_weights(kind):
    model, words, eyes = loaded(kind)
    eyes = eyes.knowing(probe.picture())
    asks = probe.requests(model.config.get_text_config().vocab_size, 2048, eyes)
    assert [len(request.images) for request in asks] == [0, 0, 1, 0]
    for request in asks:
        eyes.places(request.prompt_ids, request.images)
    other, _ = checkpoint.load(folder(kind))
    looks = probe.Probe(model, 2048, probe.TOLERANCE[torch.float32], exact=True, eyes=eyes)
    assert looks.check(TransformersEngine(other, words, eyes=eyes).generate, 1) < 1e-4
    with torch.no_grad():
        for parameter in other.model.visual.parameters():
            parameter.mul_(1.2)
    with pytest.raises(probe.WeightsMismatch):
        looks.check(TransformersEngine(other, words, eyes=eyes).generate, 2)


@pytest.mark.parametrize("engine", [VllmEngine, VllmServers])
def test_an_architecture_that_vllm_shows_no_pictures_is_refused(engine, monkeypatch):
    model, words, eyes = loaded(KIND)
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    monkeypatch.setattr(support, "SIGHTED", ("Qwen3VLForConditionalGeneration",))
    with pytest.raises(support.UnsupportedError, match=r"Qwen2_5_VL\w+: vLLM is given pictures for Qwen3VL"):
        engine(model, words, eyes=eyes)
