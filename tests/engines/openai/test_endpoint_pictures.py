"""Pictures behind an endpoint: what is sent and stored, and how what cannot be shown ends."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from threading import current_thread

import pytest
from endpoint_picture_cases import SHOWN
from endpoint_server import MODEL, Endpoint, serving
from hypothesis import given
from hypothesis import strategies as st
from image_cases import chunk, png

from rlanything.config import Endpoint as Section
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.types import Completion, Request
from rlanything.engines.openai import text_ids
from rlanything.engines.openai.answers import Fault, Refused, Reply, read
from rlanything.engines.openai.engine import OpenAIEngine
from rlanything.engines.openai.kept import request_id
from rlanything.engines.openai.pictures import Pictures, named, plain
from rlanything.files.images import ImageStore

CHAT = text_ids.TextChat()
NAMES = [image.sha256 for image in SHOWN]
REFUSAL = "Invalid content type. image_url is only supported by certain models."


def said(*words: str | int) -> list[dict]:
    """The content of a message: texts, and the numbers of pictures."""
    return [
        {"type": "text", "text": word}
        if isinstance(word, str)
        else {"type": "image", "image": NAMES[word], "width": 40, "height": 30}
        for word in words
    ]


def ask(*words: str | int, seed: int = 1) -> Request:
    prompt = CHAT.start([{"role": "system", "content": "judge"}, {"role": "user", "content": said(*words)}])
    return Request(prompt, seed, 64, 0.8, images=tuple(NAMES[w] for w in words if isinstance(w, int)))


def engine(
    server: Endpoint,
    store: ImageStore | None,
    keep: Path | None = None,
    lines: list[str] | None = None,
    **changes,
) -> OpenAIEngine:
    told = [] if lines is None else lines
    find = None if store is None else store.get
    return OpenAIEngine(Section(**server.section(**changes)), "reward", keep, told.append, find)


def seen(body: dict) -> str:
    """What a model with eyes would read of the last message: its texts, and the pictures by their content."""
    parts = body["messages"][-1]["content"]
    if isinstance(parts, str):
        return parts
    texts = [
        part["text"]
        if part["type"] == "text"
        else Image(base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"))).sha256[
            :8
        ]
        for part in parts
    ]
    return " ".join(texts)


def text(found: Completion) -> str:
    return CHAT.decode(found.ids)


def test_pictures_are_sent_as_they_are_at_their_places_among_the_texts(store):
    with serving(answer=seen) as server:
        found = engine(server, store).generate([ask("before", 0, "then", 2, 1), ask("words alone", seed=2)])
    names = [name[:8] for name in NAMES]
    assert text(found[0]) == f"before {names[0]} then {names[2]} {names[1]}"
    assert text(found[1]) == "words alone"
    (body,) = [body for body in server.seen if body["seed"] == 1]
    assert body["messages"][0] == {"role": "system", "content": "judge"}
    url = f"data:image/png;base64,{base64.b64encode(SHOWN[0].png).decode()}"
    parts = body["messages"][1]["content"]
    assert parts[:2] == [{"type": "text", "text": "before"}, {"type": "image_url", "image_url": {"url": url}}]
    assert [part["type"] for part in parts] == ["text", "image_url", "text", "image_url", "image_url"]


def test_a_kept_reply_is_found_by_the_pictures_names_and_holds_none_of_their_bytes(store, tmp_path):
    keep = tmp_path / "replies"
    with serving(answer=seen) as server:
        first = engine(server, store, keep).generate([ask("what?", 0), ask("what?", 1)])
        assert first[0] != first[1], "the same ids, another picture"
        asked = len(server.seen)
        assert asked == 2
    gone = engine(server, None, keep)  # neither server nor pictures are there
    assert gone.generate([ask("what?", 1), ask("what?", 0)]) == first[::-1]
    encoded = [base64.b64encode(image.png)[:40] for image in SHOWN]
    kept = b"".join(path.read_bytes() for path in keep.rglob("*.json"))
    assert kept
    assert not any(one in kept for one in encoded)


def test_the_name_of_a_request_without_pictures_is_what_it_was():
    """Replies that were kept before there were pictures are found."""
    with serving() as server:
        body = engine(server, None)._body(
            Request(CHAT.start([{"role": "user", "content": "hello"}]), 1, 64, 0.8)
        )
    said = {"messages": [{"role": "user", "content": "hello"}], "model": MODEL}
    plain = {**said, "max_tokens": 64, "temperature": 0.8, "seed": 1}
    assert request_id("x", body) == request_id("x", plain)


def test_a_request_that_is_too_long_ends_the_work_before_anything_is_asked(tmp_path):
    large = Image(png()[:-12] + chunk(b"teXt", bytes(1_000_000)) + png()[-12:])
    store = ImageStore(tmp_path)
    store.add([large, *SHOWN])
    part = {"type": "image", "image": large.sha256, "width": 4, "height": 3}
    prompt = CHAT.start([{"role": "user", "content": [part]}])
    requests = [ask("small", 0), Request(prompt, 1, 64, 0.8, images=(large.sha256,))]
    words = r"endpoints\.reward\.max_request_mb = 1: a request has 1\.3 MB, with 1 pictures.*model\.images\.reward"
    with serving(answer=seen) as server:
        with pytest.raises(ConfigError, match=words):
            engine(server, store, max_request_mb=1).generate(requests)
        assert server.seen == []
        assert text(engine(server, store, max_request_mb=2).generate(requests)[1]) == large.sha256[:8]


def test_a_missing_picture_ends_the_work_before_anything_is_asked(store):
    store.path(NAMES[1]).unlink()
    with serving(answer=seen) as server:
        with pytest.raises(ConfigError, match=rf"{NAMES[1]}\.png: no such file"):
            engine(server, store).generate([ask("a", 0), ask("b", 1)])
        store.path(NAMES[2]).write_bytes(SHOWN[0].png)
        with pytest.raises(ConfigError, match=rf"{NAMES[2]}\.png: its content has another sha256"):
            engine(server, store).generate([ask("c", 2)])
        with pytest.raises(ValueError, match="is sent text alone"):
            engine(server, None).generate([ask("a", 0)])
    assert server.seen == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, REFUSAL),  # OpenAI
        (400, "At most 0 image(s) may be provided in one prompt."),  # vLLM
        (400, "messages[0].content must be a string"),  # Groq
        (404, "No endpoints found that support image input"),  # OpenRouter
        (422, "unknown variant `image_url`, expected `text`"),  # DeepSeek
        (500, "image input is not supported - hint: you may need to provide the mmproj"),  # llama.cpp
    ],
)
def test_an_endpoint_that_refuses_pictures_is_told_by_the_models_name_at_once(store, status, words):
    told = (
        rf"endpoints\.reward\.model = '{MODEL}': the endpoint refuses the pictures of a request \({status}: "
    )
    with serving([f"say {status} {words}"]) as server:
        with pytest.raises(ConfigError, match=told) as refused:
            engine(server, store, concurrency=1).generate([ask("a", 0), ask("b", 1)])
        assert words in str(refused.value)
        assert "show fewer or smaller pictures (model.images.reward)" in str(refused.value)
        assert len(server.seen) == 1


def test_a_request_with_pictures_that_the_server_finds_too_long_ends_the_run_and_is_not_kept(store, tmp_path):
    """Once the server's limit is raised, the same request is asked again."""
    keep = tmp_path / "replies"
    told = (
        r"endpoints\.reward\.base_url = .*: a request with pictures is too long for the endpoint \(413: too large\); "
        r"show fewer or smaller pictures \(model\.images\.reward\)"
    )
    with serving(["say 413 too large", "say 413 too large"], answer=seen) as server:
        with pytest.raises(ConfigError, match=told):
            engine(server, store, keep).generate([ask("a", 0)])
        assert not list(keep.rglob("*.json"))
        words = Request(CHAT.start([{"role": "user", "content": "words"}]), 1, 64, 0.8)
        assert engine(server, store, keep).generate([words])[0].ids == (), (
            "without pictures: an invalid reply"
        )
        assert text(engine(server, store, keep).generate([ask("a", 0)])[0]) == f"a {NAMES[0][:8]}"


def test_the_same_words_to_a_text_and_faults_that_pass_are_as_before(store):
    body = json.dumps({"error": {"message": REFUSAL}}).encode()
    for status, words, shows, kind in (
        (400, REFUSAL, False, Refused),
        (500, "the image could not be fetched", True, Fault),
        (500, "Error while processing the image. If it persists, contact support", True, Fault),
        (400, "invalid API revision", True, Refused),
        (404, "model `llama-3.2-11b-vision` does not exist", True, Refused),
        (402, "Insufficient credits for image input", True, Refused),
        (429, "too many images", True, Fault),
        (400, "the image exceeds the context length", True, Reply),
    ):
        body = json.dumps({"error": {"message": words}}).encode()
        found = read(status, {}, body, None, str, shows=shows)
        assert isinstance(found, kind)
        assert not (isinstance(found, Refused) and found.of_pictures)
    with serving(["500", "drop"], answer=seen) as server:
        assert text(engine(server, store).generate([ask("a", 0)])[0]) == f"a {NAMES[0][:8]}"
    assert len({json.dumps(body) for body in server.seen}) == 1, "each attempt has the picture"
    with serving(always="500") as server, pytest.raises(MachineError, match="failed in 4 attempts"):
        engine(server, store).generate([ask("a", 0)])


def test_the_rate_limit_counts_a_picture_by_its_tokens_and_not_by_its_bytes(tmp_path):
    screen = Image(png(640, 320))
    store = ImageStore(tmp_path)
    store.add([screen])
    part = {"type": "image", "image": screen.sha256, "width": 640, "height": 320}
    prompt = CHAT.start([{"role": "user", "content": [part]}])
    assert text_ids.tokens_of_pictures(prompt) == 20 * 10
    lines: list[str] = []
    with serving(answer=seen) as server:
        asking = engine(server, store, lines=lines, tokens_per_minute=120_000)
        booked: list[float] = []
        take = asking._asking._tokens.take
        asking._asking._tokens.take = lambda tokens: (booked.append(tokens), take(tokens))[1]
        asking.generate([Request(prompt, 1, 64, 0.8, images=(screen.sha256,))])
    assert 264 < booked[0] < 400


def test_pictures_are_measured_without_being_encoded_and_encoded_beside_the_event_loop(tmp_path):
    """So that a large picture does not delay the answers to other requests."""
    plainest = png()
    padded = [Image(plainest[:-12] + chunk(b"teXt", bytes(n)) + plainest[-12:]) for n in range(3)]
    store = ImageStore(tmp_path)
    store.add(padded)
    asked_in: list[str] = []

    def find(name: str) -> Image:
        asked_in.append(current_thread().name)
        return store.get(name)

    measured = Pictures("reward", 1, find)
    for image in padded:
        parts = [{"type": "image", "image": image.sha256}]
        body = {"messages": named([{"role": "user", "content": parts}])}
        measured.check([body])
        assert measured._url.cache_info().currsize == 0
        gained = measured._length(image.sha256) - len(f"sha256:{image.sha256}")
        assert len(plain(body)) + gained == len(Pictures("reward", 1, store.get).data(body))
    part = {"type": "image", "image": padded[0].sha256, "width": 4, "height": 3}
    prompt = CHAT.start([{"role": "user", "content": [part]}])
    asked_in.clear()
    with serving(answer=seen) as server:
        asking = OpenAIEngine(Section(**server.section()), "reward", None, [].append, find)
        asking.generate([Request(prompt, 1, 64, 0.8, images=(padded[0].sha256,))])
    assert asked_in[0] == current_thread().name
    assert current_thread().name not in asked_in[1:]
    assert len(asked_in) == 2


parts = st.lists(st.text(st.characters(codec="utf-8"), min_size=1) | st.integers(0, 2), max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["system", "user"]), parts), min_size=1, max_size=3))
def test_texts_and_pictures_come_back_from_their_ids_in_their_order(conversation):
    prompt = CHAT.start([{"role": role, "content": said(*words)} for role, words in conversation])
    names = [NAMES[word] for _, words in conversation for word in words if isinstance(word, int)]
    for (role, words), found in zip(conversation, text_ids.messages(prompt, names), strict=True):
        assert found["role"] == role
        content = found["content"]
        if isinstance(content, str):
            assert content == "".join(map(str, words))
            continue
        pictures = [part["image"] for part in content if part["type"] == "image"]
        assert pictures == [NAMES[word] for word in words if isinstance(word, int)]
        joined = "".join(part.get("text", "|") for part in content)
        assert joined == "".join("|" if isinstance(word, int) else word for word in words)
    if names:
        with pytest.raises(
            ValueError, match=f"places for {len(names)} pictures, and {len(names) - 1} are named"
        ):
            text_ids.messages(prompt, names[1:])
