"""LoRA's weights kept apart in vLLM: one vLLM for all models over the same frozen weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial

import engine_cases as cases
import pytest
from lora_cases import KEY, REQUESTS, learned, moved
from sight_cases import KINDS, NAMES, PICTURES, folder, prompt
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlanything.config import LoraConfig
from rlanything.config.algorithm import MATRICES
from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.lora.injection import inject
from rlanything.engines.lora.merging import merge
from rlanything.engines.lora.sharing import twin
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import bases, instance, support
from rlanything.engines.vllm.budget import SHARED
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.instance import Settings
from rlanything.engines.vllm.probe import WeightsMismatch

PART = LoraConfig(rank=16, alpha=8.0, targets=("q_proj", "gate_proj", "down_proj"))
"""A part of what vLLM packs into one matrix, and another rank."""


@pytest.fixture(autouse=True)
def _needs_peft():
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")


@pytest.fixture
def models() -> list[PreTrainedModel]:
    """A policy and a reward model with LoRA, and the model that rewrites tasks, over the same frozen weights."""
    base = cases.qwen2().requires_grad_(False)
    policy, reward, plain = twin(base), twin(base), twin(base)
    return [learned(policy), learned(reward, PART), plain]


@contextmanager
def opened(*models: PreTrainedModel) -> Iterator[list[VllmEngine]]:
    with ExitStack() as stack:
        kept = {"lora": "apart", "cache_gib": 1.0}  # engines share one vLLM where all of this is the same
        yield [stack.enter_context(cases.opened("vllm", model, **kept)) for model in models]


def check(engine: VllmEngine, model: PreTrainedModel, requests: list[Request] = REQUESTS) -> None:
    """What it samples are the ids and log-probs of the model."""
    plain = cases.qwen2()
    merge(model, plain)
    found = engine.generate(requests)
    with cases.opened("transformers", plain) as reference:
        assert cases.ids(found) == cases.ids(reference.generate(requests))
    assert cases.worst_error(model, requests, found) < cases.TOLERANCE["vllm"]


def loras(engine: VllmEngine) -> set[int]:
    """The numbers of LoRA's weights that vLLM has."""
    return engine._base.instance._llm.llm_engine.list_loras()


def test_one_vllm_serves_all_models_of_the_same_frozen_weights(models, monkeypatch):
    policy, reward, plain = models
    loaded, load = [], instance.Instance.load
    monkeypatch.setattr(
        instance.Instance, "load", lambda self, weights: (loaded.append(self), load(self, weights))
    )
    choices, long = ((7, 8, 2), (7, 9, 2), (5, 2)), tuple(range(40, 140))
    requests = [*REQUESTS, *(Request(long, seed, 6, choices=choices) for seed in range(4))]
    with opened(*models) as engines:
        for version in range(3):
            for engine, model in zip(engines, models, strict=True):
                engine.sync(version)
                for _ in range(
                    2
                ):  # also with cached prefixes; the other models were asked for the same prompts
                    check(engine, model, requests)
                assert {c.version for c in engine.generate(requests)} == {version}
            assert len(loras(engines[0])) == 2
            moved(policy, version)
            moved(reward, version + 7)
        assert len(loaded) == 1  # the frozen weights were given once
        engines[0].sync(3)
        engines[0]._stop()  # an error in one engine stops vLLM for all of them
        moved(reward, 20)
        engines[1].sync(4)
        check(engines[1], reward)
        check(engines[0], policy)
        assert len(loaded) == 2
        engines[0].close()
        assert len(loras(engines[1])) == 1
        check(engines[1], reward)
        check(engines[2], plain)


def test_every_target_of_the_configuration_is_a_matrix_that_vllm_takes():
    base = cases.qwen2().requires_grad_(False)
    models = [learned(twin(base), LoraConfig(rank=4, targets=(target,))) for target in MATRICES]
    with opened(*models) as engines:
        for engine, model in zip(engines, models, strict=True):
            check(engine, model)


def test_a_server_takes_loras_weights_alone(models):
    policy = models[1]
    with cases.opened("vllm_servers", policy, lora="apart") as engine:
        for version in range(3):
            engine.sync(version)
            check(engine, policy)
            assert [path.name for path in (engine._instance._store.model / "lora").iterdir()] == [
                f"{version + 1}"
            ]
            moved(policy, version)
        (server,) = engine._instance._servers
        server._lora = "a name from before it began anew"  # vLLM itself says that it does not know it
        engine.sync(3)
        check(engine, policy)


@pytest.fixture
def seeing():
    """A model with LoRA that sees nothing, and one over the same frozen weights with eyes; tokenizer and eyes."""
    frozen, words = checkpoint.load(folder(KINDS[0]))
    blind, sighted = (twin(frozen.requires_grad_(False)) for _ in range(2))
    return (
        learned(blind),
        sighted,
        words,
        sight.load(str(folder(KINDS[0])), None, sighted, PICTURES.__getitem__),
    )


def test_engines_that_share_one_vllm_have_eyes_of_their_own(seeing):
    blind, sighted, words, eyes = seeing
    shown = [
        Request(prompt(KINDS[0], *names), seed, 6, images=names)
        for seed, names in enumerate([(NAMES[0],), (NAMES[1], NAMES[2]), ()])
    ]
    unseen = [replace(request, images=()) for request in shown]  # the same ids
    plain, _ = checkpoint.load(folder(KINDS[0]))
    merge(blind, plain)
    with ExitStack() as stack:
        kept = {"words": words, "lora": "apart", "cache_gib": 1.0}
        first = stack.enter_context(cases.opened("vllm", blind, **kept))
        second = stack.enter_context(cases.opened("vllm", sighted, eyes=eyes, **kept))
        assert first._base is second._base is not None
        for _ in range(2):  # also with cached prefixes, which the other engine was asked for
            for engine, reference, requests in (
                (first, TransformersEngine(plain, words), unseen),
                (second, TransformersEngine(sighted, words, eyes=eyes), shown),
            ):
                found, expected = engine.generate(requests), reference.generate(requests)
                assert cases.ids(found) == cases.ids(expected)
                for one, other in zip(found, expected, strict=True):
                    assert one.logprobs == pytest.approx(other.logprobs, abs=cases.TOLERANCE["vllm"])


def test_the_eyes_of_an_engine_arrive_at_the_vllm_that_it_shares(seeing, made, monkeypatch):
    blind, sighted, words, eyes = seeing
    given = []

    class Looking:
        """vLLM that notes whose eyes it is given, and stops there."""

        def __init__(self, model: PreTrainedModel, settings: Settings) -> None:
            assert settings.sighted

        def load(self, weights: dict) -> None: ...

        def add_lora(self, model: PreTrainedModel) -> int:
            return 1

        def drop_lora(self, number: int) -> None: ...

        def generate(self, asked: list, salt: str, lora: int | None = None, eyes: object = None) -> list:
            given.append((lora, eyes))
            raise MemoryError("no room")

        def close(self) -> None: ...

    monkeypatch.setattr(bases, "Instance", Looking)
    first, second = made(blind, tokenizer=words), made(sighted, tokenizer=words, eyes=eyes)
    assert first._base is second._base
    alone = made(deepcopy(sighted), tokenizer=words, eyes=eyes)
    monkeypatch.setattr("rlanything.engines.vllm.engine.Instance", Looking)
    assert alone._base is None
    for engine in (first, second, alone):
        with pytest.raises(MemoryError):
            engine.generate([Request((5, 6, 7), 1, 4)])
    assert given == [(1, None), (None, second._eyes), (None, alone._eyes)]
    assert None not in (second._eyes, alone._eyes)


def test_memory_is_given_back_also_where_vllm_does_not_end(made, monkeypatch):
    class Stuck:
        """vLLM that is asked nothing, and does not end."""

        def __init__(self, model: PreTrainedModel, settings: Settings) -> None: ...

        def close(self) -> None:
            raise RuntimeError("it does not end")

    monkeypatch.setattr("rlanything.engines.vllm.engine.Instance", Stuck)
    engine = made(cases.qwen2())
    engine._instance = engine._start()
    assert engine in SHARED._taken
    with pytest.raises(RuntimeError, match="it does not end"):
        engine.close()
    assert engine not in SHARED._taken
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.generate(REQUESTS)


def test_a_prompt_with_pictures_is_no_prompt_without_eyes():
    place = sight.Place(NAMES[0], 0, 1, PICTURES.__getitem__)
    with pytest.raises(ValueError, match="a prompt shows pictures, and this engine has no eyes"):
        instance._prompt(instance.Ask((9,), 1, (), {}, pictures=(place,)), "weights 1", None)


def test_an_update_that_vllm_does_not_take_over_ends_the_run_however_small_it_is(models, monkeypatch):
    policy = models[0]
    with opened(policy) as (engine,):
        engine.generate(REQUESTS)
        monkeypatch.setattr(instance.Instance, "add_lora", lambda self, model: self._given)
        monkeypatch.setattr(instance.Instance, "drop_lora", lambda self, number: None)
        moved(policy, 3, by=1e-5)
        with pytest.raises(WeightsMismatch, match="has not taken over an update"):
            engine.sync(1)
        monkeypatch.undo()
        moved(policy, 4)
        check(engine, policy)


@pytest.fixture
def made(monkeypatch) -> partial:
    """Makes engines that never start."""
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    return partial(VllmEngine, tokenizer=cases.tokenizer(), lora="apart", cache_gib=0.1)


def test_engines_share_where_the_frozen_weights_and_the_settings_are_the_same(models, made):
    policy, reward, plain = models
    first, second, third = made(policy), made(reward), made(plain)
    assert first._base is second._base is third._base is not None
    assert list(first._base.members.values()) == [8, 16, 0]
    assert made(reward, max_batch=8)._base is not first._base
    other = made(learned(cases.qwen2().requires_grad_(False)))
    assert other._base is not None
    assert other._base is not first._base
    assert made(policy, lora="merged")._base is None
    assert made(cases.qwen2())._base is None  # all of its weights may train


def test_vllm_that_did_not_take_over_the_frozen_weights_does_not_run_on(models, made, monkeypatch):
    closed = []

    class Broken:
        """vLLM that has no room for the weights."""

        def __init__(self, model: PreTrainedModel, settings: Settings) -> None:
            assert (settings.lora_rank, settings.loras) == (16, 2)

        def load(self, weights: dict) -> None:
            raise MemoryError("no room")

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(bases, "Instance", Broken)
    first, second = made(models[0]), made(models[1])
    for count, engine in enumerate((first, second), 1):
        with pytest.raises(MemoryError, match="no room"):
            engine.generate(REQUESTS)
        assert engine._base.instance is None
        assert len(closed) == count


def test_too_high_a_rank_is_refused_before_vllm_starts(made):
    shape = {**cases.SIZES, "hidden_size": 640, "intermediate_size": 640, "num_hidden_layers": 1}
    model = Qwen2ForCausalLM(Qwen2Config(**shape))
    inject(model, LoraConfig(rank=513, targets=("gate_proj",)), 0, KEY)
    with pytest.raises(
        ValueError, match=r"the rank of LoRA = 513: vLLM takes LoRA's weights alone up to rank 512"
    ):
        made(model)
    made(model, lora="merged")
