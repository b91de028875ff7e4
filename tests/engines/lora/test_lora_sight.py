"""LoRA of models that read pictures: which matrices have its weights, and what engines sample with them."""

from __future__ import annotations

from contextlib import ExitStack

import engine_cases as cases
import pytest
import torch
from lora_cases import KEY, SMALL, learned, moved
from sight_cases import KINDS, NAMES, PICTURES, folder, prompt
from torch.nn import Linear
from transformers import PreTrainedModel

from rlanything.config import LoraConfig
from rlanything.config.algorithm import MATRICES
from rlanything.core.errors import ConfigError
from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.lora.merging import merge
from rlanything.engines.lora.sharing import twin
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine

SHOWN = [(NAMES[0],), (NAMES[1], NAMES[2]), (), (NAMES[3], NAMES[0])]


@pytest.fixture(autouse=True)
def _needs_peft():
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")


def base(kind: str) -> PreTrainedModel:
    """A frozen model that reads pictures."""
    return checkpoint.load(folder(kind))[0].requires_grad_(False)


def with_eyes(kind: str, model: PreTrainedModel):
    """A model, its tokenizer, and its eyes."""
    words = checkpoint.load(folder(kind))[1]
    return model, words, sight.load(str(folder(kind)), None, model, PICTURES.__getitem__)


def requests(kind: str) -> list[Request]:
    return [
        Request(prompt(kind, *names, text="what next?" + "?" * k), 10 + k, 6, images=names)
        for k, names in enumerate(SHOWN * 2)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_names_matrices_of_the_decoder_and_none_of_the_vision_tower(kind):
    """The tower of Qwen2.5-VL has matrices of the same names, such as `up_proj`."""
    model = base(kind)
    tower = {
        n.rpartition(".")[2] for n, m in model.base_model.visual.named_modules() if isinstance(m, Linear)
    }
    assert bool(tower & set(MATRICES)) == (kind == "qwen2_5_vl")
    inject(model, SMALL, 0, KEY)
    names = list(trained(model))
    assert len(names) == 2 * 2 * len(MATRICES)  # factors, layers
    assert all(name.startswith("model.language_model.layers.") for name in names)
    state = model.base_model.visual.state_dict()
    assert all(
        torch.equal(value, state[name]) for name, value in base(kind).base_model.visual.state_dict().items()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_of_the_vision_tower_alone_is_no_target(kind):
    """The configuration takes no such name. This is what the model's own matrices say."""
    wanted = LoraConfig.model_construct(rank=2, alpha=4.0, targets=("qkv",))
    with pytest.raises(
        ConfigError, match=rf"{KEY}\.targets = qkv: .* has no such matrix; it has down_proj, gate_proj"
    ):
        inject(base(kind), wanted, 0, KEY)


@pytest.mark.parametrize("lora", ["merged", "apart"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, "vllm") for kind in KINDS),
        pytest.param(KINDS[0], "vllm_servers", marks=pytest.mark.slow),
    ],
)
def test_vllm_samples_with_loras_weights_of_a_model_that_sees(kind, name, lora):
    """As `transformers` does with merged weights, before and after an update; in one vLLM beside the base itself."""
    cases.needs_vllm()
    frozen = base(kind)
    model, plain = learned(twin(frozen)), checkpoint.load(folder(kind))[0]
    asked = requests(kind)
    with ExitStack() as stack:
        words, eyes = with_eyes(kind, model)[1:]
        kept = {"lora": lora, "cache_gib": 1.0}
        engine = stack.enter_context(cases.opened(name, model, words, eyes=eyes, **kept))
        others = []
        if name == "vllm":
            other, _, seen = with_eyes(kind, twin(frozen))
            others = [(other, seen, stack.enter_context(cases.opened(name, other, words, eyes=seen, **kept)))]
            assert engine._base is others[0][2]._base
            assert (engine._base is None) == (lora == "merged")
        for version in range(2):
            engine.sync(version)
            merge(model, plain)
            own = sight.load(str(folder(kind)), None, plain, PICTURES.__getitem__)
            for reference, seen, sampler in [(plain, own, engine), *others]:
                expected = TransformersEngine(reference, words, eyes=seen).generate(asked)
                for _ in range(
                    2
                ):  # also with what is cached; the other engine was asked for the same prompts
                    found = sampler.generate(asked)
                    assert cases.ids(found) == cases.ids(expected)
                    for one, two in zip(found, expected, strict=True):
                        assert one.logprobs == pytest.approx(two.logprobs, abs=cases.TOLERANCE[name])
            moved(model, version)
