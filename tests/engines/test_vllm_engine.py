"""The engine `vllm`: wrong weights are noticed, its limits are named before work starts."""

from __future__ import annotations

import json
import random
import weakref
from dataclasses import replace
from pathlib import Path

import engine_cases as cases
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from rlanything.core.errors import UserError
from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.vllm import instance, support
from rlanything.engines.vllm.asking import _deciding
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.instance import BLOCK, GRAPHS, Settings
from rlanything.engines.vllm.probe import DrawsMismatch, WeightsMismatch
from rlanything.engines.vllm.served import process
from rlanything.engines.vllm.surroundings import restored

REQUESTS = [Request((5, 6, 7), seed, 6) for seed in range(8)]


@pytest.fixture
def model():
    return cases.qwen2()


@pytest.fixture
def engine(model):
    with cases.opened("vllm", model, max_batch=16) as engine:
        yield engine


def learn(model) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.03)


def test_a_missing_tied_head_is_noticed(engine, model, monkeypatch):
    engine.generate(REQUESTS)
    learn(model)
    load = instance.Instance.load
    headless = {name: weight for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    monkeypatch.setattr(instance.Instance, "load", lambda self, weights: load(self, headless))
    with pytest.raises(WeightsMismatch, match=r"log-probs differ by 0\.\d+, and rounding explains 0\.001"):
        engine.sync(1)
    monkeypatch.undo()
    completions = engine.generate(REQUESTS)  # nothing samples with the wrong weights: it starts anew
    assert cases.worst_error(model, REQUESTS, completions) < cases.TOLERANCE["vllm"]


def test_weights_that_nothing_trains_are_taken_over_once(engine, model, monkeypatch):
    loaded, load = [], instance.Instance.load
    monkeypatch.setattr(
        instance.Instance, "load", lambda self, weights: (loaded.append(self), load(self, weights))
    )
    engine.rename(1)
    first = engine.generate(REQUESTS)
    engine.rename(2)
    second = engine.generate(REQUESTS)
    assert ({c.version for c in first}, {c.version for c in second}) == ({1}, {2})
    assert cases.ids(first) == cases.ids(second)
    assert cases.worst_error(model, REQUESTS, second) < cases.TOLERANCE["vllm"]
    assert len(loaded) == 1
    engine.sync(3)
    assert len(loaded) == 2


def test_a_second_update_that_changes_nothing_is_noticed(engine, model, monkeypatch):
    engine.generate(REQUESTS)
    learn(model)
    engine.sync(1)
    monkeypatch.setattr(instance.Instance, "load", lambda self, weights: None)
    learn(model)
    with pytest.raises(WeightsMismatch):
        engine.sync(1)


def test_a_stale_prefix_cache_is_noticed(engine, model, monkeypatch):
    generate = instance.Instance.generate
    monkeypatch.setattr(
        instance.Instance,
        "generate",
        lambda self, asked, salt, **more: generate(self, asked, "always the same", **more),
    )
    engine.generate(REQUESTS)
    learn(model)
    with pytest.raises(WeightsMismatch):
        engine.sync(1)


def test_tokens_that_no_other_engine_draws_are_noticed(engine, monkeypatch):
    with restored("cpu"):
        from rlanything.engines.vllm.draw import Row

    engine.generate(REQUESTS)
    uniform = Row.uniform.fget
    monkeypatch.setattr(Row, "uniform", property(lambda self: 1 - uniform(self)))
    with pytest.raises(DrawsMismatch, match=r"it drew id \d+ where they draw \d+ \(seed 0"):
        engine.sync(1)
    monkeypatch.undo()
    engine.generate(REQUESTS)


def test_a_tolerance_can_be_declared(model, monkeypatch):
    with cases.opened("vllm", model, tolerance=1e-9) as strict, pytest.raises(WeightsMismatch, match="1e-09"):
        strict.generate(REQUESTS)


def test_a_full_cache_and_short_passes_change_nothing(model):
    """Prompts are read in parts, and requests lose their cache and start again."""
    rng = random.Random(0)
    requests = [
        Request(cases.words(rng, 100, 300), seed, 60, choices=cases.actions(rng, 6) if seed % 3 == 0 else ())
        for seed in range(24)
    ]
    with cases.opened("vllm", model, max_batch=16, max_batched_tokens=64, cache_gib=0.003) as engine:
        completions = engine.generate(requests)
    expected = NativeEngine(model, cases.tokenizer()).generate(requests)
    assert cases.ids(completions) == cases.ids(expected)
    assert [c.allowed for c in completions] == [c.allowed for c in expected]


def test_a_context_of_its_own_needs_less_memory_and_refuses_what_is_longer(model):
    cases.needs_vllm()
    with pytest.raises(UserError, match=r"cache_gib = 0\.0005: it needs .* or a smaller engine\.context"):
        VllmEngine(model, cases.tokenizer(), cache_gib=0.0005)
    fitting = Request(cases.words(random.Random(0), 56, 56), 3, 8)
    with cases.opened(
        "vllm", model, context=64, max_batch=4, max_batched_tokens=64, cache_gib=0.0005
    ) as engine:
        found = engine.generate([fitting])
        with pytest.raises(ValueError, match="64"):
            engine.generate([replace(fitting, max_tokens=9)])
    assert cases.ids(found) == cases.ids(NativeEngine(model, cases.tokenizer()).generate([fitting]))


def test_without_a_prefix_cache_the_samples_are_the_same(engine, model):
    expected = engine.generate(REQUESTS)
    with cases.opened("vllm", model, prefix_caching=False) as other:
        assert cases.ids(other.generate(REQUESTS)) == cases.ids(expected)


def test_a_common_beginning_is_read_once_whoever_asks_until_the_weights_change(engine, model):
    """The turns of an episode, the votes on a step and the rollouts of a task begin alike, in calls of their own."""
    start = cases.words(random.Random(5), 4 * BLOCK, 4 * BLOCK)
    turn = start + cases.words(random.Random(6), BLOCK, BLOCK)
    engine.generate([Request(start, 0, 2, session="0")])
    own = engine._instance._llm.llm_engine
    step, cached = own.step, []

    def looked_at():
        found = step()
        cached.extend(output.num_cached_tokens for output in found)
        return found

    own.step = looked_at
    engine.generate([Request(start, 1, 2, session="1")])
    engine.generate([Request(turn, 2, 2, session="0")])
    assert cached == [3 * BLOCK, 4 * BLOCK], "but for the block whose last token is computed"
    learn(model)
    engine.sync(1)
    cached.clear()
    engine.generate([Request(start, 1, 2)])
    engine.generate([Request(start, 2, 2, group="g")])
    assert cached == [0, 3 * BLOCK]


def test_graphs_come_without_a_compiler_and_change_no_sample(engine, model):
    """On a CPU there are none: what is seen here is that vLLM takes the settings, and compiles nothing."""
    expected = engine.generate(REQUESTS)
    with cases.opened("vllm", model, eager=False) as other:
        assert other.generate(REQUESTS) == expected
        chosen = other._instance._llm.llm_engine.vllm_config
    assert not chosen.model_config.enforce_eager
    assert chosen.compilation_config.mode == 0
    assert not chosen.kernel_config.enable_jit_warmup


def served(*, eager: bool) -> list[str]:
    settings = Settings("cuda", "bfloat16", 512, 8, 64, 1 << 20, True, eager)
    return process.arguments(Path("m"), Path("s"), settings)


def test_a_server_is_given_the_same_graphs():
    words = served(eager=False)
    page = Path("docs/vllm.md").read_text()  # what a server needs that somebody else starts
    for name, value in GRAPHS.items():
        option = f"--{name.replace('_', '-')}"
        text = words[words.index(option) + 1]
        assert json.loads(text) == value
        assert f"{option} '{text}'" in page
    assert "--enforce-eager" not in words
    assert "--enforce-eager" in served(eager=True)
    assert "--compilation-config" not in served(eager=True)


def test_vllm_reads_the_graphs_of_a_server_as_those_of_a_process():
    cases.needs_vllm()
    with restored("cpu"):
        from vllm.config import CompilationConfig, KernelConfig
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        read = make_arg_parser(FlexibleArgumentParser()).parse_args(served(eager=False))
    assert read.compilation_config == CompilationConfig(**GRAPHS["compilation_config"])
    assert read.compilation_config.cudagraph_mode.name == "FULL_DECODE_ONLY"
    assert read.kernel_config == KernelConfig(**GRAPHS["kernel_config"])


def test_a_batch_draws_what_its_rows_draw_alone():
    """Free and constrained, greedy and not; a row that is not finite leaves the others as they are."""
    cases.needs_vllm()
    with restored("cpu"):
        from rlanything.engines.vllm.draw import OwnDraw, Row

    logits = torch.randn(12, 50, generator=torch.Generator().manual_seed(0)) * 3
    logits[4, 6], logits[5, 9], logits[6, 3] = float("nan"), float("inf"), float("nan")

    def row(number: int) -> Row:
        choices = ((9, 8, 2), (9, 7, 2), (3, 2)) if number % 2 else ()
        given = {"seed": number, "offset": 0, "temperature": number % 3 / 2, "choices": choices, "end": 0}
        return Row({**given, "never": 7 if number % 4 else None}, 5, [])

    def drawn(numbers: list[int]) -> torch.Tensor:
        processor = OwnDraw(None, logits.device, False)
        processor._rows = {at: row(number) for at, number in enumerate(numbers)}
        return processor.apply(logits[numbers])

    alone = torch.cat([drawn([number]) for number in range(12)])
    for numbers in (list(range(12)), [0, 2, 4, 6], [1, 3, 5, 11], [8, 10]):
        assert torch.equal(drawn(numbers).nan_to_num(9.0), alone[numbers].nan_to_num(9.0))
    assert [int(line.isnan().sum()) for line in alone] == [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    assert all(int(line.isfinite().sum() + line.isnan().sum()) == 1 for line in alone)


@pytest.mark.parametrize(
    "choices",
    [
        ((9, 2, 7, 2), (9, 2, 8, 2), (4, 2)),  # the end of turn inside a choice
        ((9, 9, 9, 5), (9, 9, 9, 9, 5), (9, 9, 4)),  # the same id decides at one place and not at another
        tuple((token, 2) for token in range(3, cases.VOCABULARY))
        + tuple((token,) for token in range(3)),  # every id is in a choice
        ((5, 6, 7, 8, 2), (5, 6, 7, 9, 2)),
    ],
)
def test_choices_of_every_shape(engine, model, choices):
    requests = [Request((20, 30, seed + 40), seed, 5, choices=choices) for seed in range(12)]
    requests += [replace(request, max_tokens=3) for request in requests]
    expected = NativeEngine(model, cases.tokenizer()).generate(requests)
    found = engine.generate(requests)
    assert cases.ids(found) == cases.ids(expected)
    assert [(c.allowed, c.finished) for c in found] == [(c.allowed, c.finished) for c in expected]
    assert cases.worst_error(model, requests, found) < cases.TOLERANCE["vllm"]


def test_ids_that_decide():
    assert _deciding(((9, 9, 5), (9, 4, 5), (3, 5))) == (3, 4)
    assert _deciding(((5, 1), (5, 2), (6, 5))) == (1, 2, 6)


def test_nothing_is_started_before_it_is_asked(model):
    with cases.opened("vllm", model) as engine:
        engine.sync(1)
        engine.release(["a"])
        only = Request((5, 6), 0, 4, choices=((7, 2),))
        assert engine.generate([only])[0].ids == (7, 2)
        assert engine._instance is None


def test_a_closed_engine_leaves_nothing_of_its_copy_of_the_weights(engine, model):
    engine.generate(REQUESTS)
    learn(model)
    engine.sync(1)
    (layers,) = engine._instance._llm.apply_model(
        lambda copy: [weakref.ref(layer) for layer in copy.modules()]
    )
    engine.close()
    assert len(layers) > 20
    assert [layer() for layer in layers if layer() is not None] == []


def test_a_closed_engine_says_so(model):
    with cases.opened("vllm", model) as engine:
        engine.close()
        with pytest.raises(ValueError, match="the engine is closed"):
            engine.generate(REQUESTS)


def heads(size: int) -> Qwen2ForCausalLM:
    shape = {**cases.SIZES, "hidden_size": 4 * size}
    return Qwen2ForCausalLM(Qwen2Config(**shape, num_key_value_heads=2))


def test_heads_that_vllm_does_not_have(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    with pytest.raises(ValueError, match=r"heads of size 24: on a CPU vLLM has 32, 64, .*nearest: 32"):
        VllmEngine(heads(24), cases.tokenizer())
    support.check_heads(24, "cuda", "")


def test_vllm_must_be_installed_in_its_version(model, monkeypatch):
    monkeypatch.setattr(support, "version", lambda: None)
    with pytest.raises(
        ValueError, match=r"vLLM is not installed; install it with `pip install '\.\[vllm\]'`"
    ):
        VllmEngine(model, cases.tokenizer())
    monkeypatch.setattr(support, "version", lambda: "0.33.0")
    with pytest.raises(ValueError, match=r"vLLM 0\.33\.0 is installed, and the engine needs 0\.32"):
        VllmEngine(model, cases.tokenizer())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cache_gib": 0}, "cache_gib must be above 0, got 0"),
        ({"cache_gib": "all"}, "cache_gib = 'all': must be a number"),
        ({"max_batched_tokens": 8}, "max_batched_tokens must be at least max_batch = 256, got 8"),
        ({"dtype": "float23"}, "dtype = 'float23': unknown; did you mean 'float32'?"),
        ({"eager": "no"}, "eager = 'no': must be true or false"),
        ({"tolerance": -1.0}, "tolerance must be above 0, or null, got -1.0"),
    ],
)
def test_values_that_are_not_allowed(model, arguments, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        VllmEngine(model, cases.tokenizer(), **arguments)
