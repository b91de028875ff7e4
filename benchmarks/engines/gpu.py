"""Engines beside each other on this machine's GPU: `python -m benchmarks.engines --gpu`.

The model has the sizes of a checkpoint, and random weights in bfloat16. Every engine is given the same requests: first
once without counting, because the first call loads kernels and starts vLLM, then a few times. Before each of these the
weights are taken over again, so that no prompt is found in the cache of an earlier call. Seconds are those on the
clock. All engines are measured in one process, one after the other, so their ratios are of one machine.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from rich import box
from rich.table import Table
from transformers import PreTrainedModel

from benchmarks.machine import say
from benchmarks.plan.checkpoints import known, made
from benchmarks.sampling import endless_tokenizer
from rlanything.config import LoraConfig
from rlanything.core.protocols import Engine
from rlanything.core.types import Request
from rlanything.engines.lora.injection import inject
from rlanything.engines.lora.sharing import twin
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import support
from rlanything.engines.vllm.budget import GIB
from rlanything.engines.vllm.copying import token_bytes
from rlanything.engines.vllm.engine import VllmEngine

CHECKPOINT = "Qwen/Qwen2.5-0.5B-Instruct"
REPEATS = 3


@dataclass(frozen=True)
class Asked:
    """How much is asked. Every second prompt begins with `trunk` tokens that are always the same.

    count: requests. trunk, tail: the first and the most other tokens of a prompt. reply: tokens.
    """

    count: int = 256
    trunk: int = 500
    tail: int = 500
    reply: int = 128

    def requests(self, vocabulary: int) -> list[Request]:
        """Random ids. Every request has a seed of its own."""
        rng = random.Random(0)

        def ids(count: int) -> tuple[int, ...]:
            return tuple(rng.randrange(vocabulary) for _ in range(count))

        trunk = ids(self.trunk)
        return [
            Request((trunk if seed % 2 else ()) + ids(rng.randint(1, self.tail)), seed, self.reply)
            for seed in range(self.count)
        ]


@dataclass(frozen=True)
class Timed:
    """One engine. first: seconds of the call that is not counted, with the start. seconds: of the fastest other one.

    tokens: that the fastest call wrote.
    """

    first: float
    seconds: float
    tokens: int

    @property
    def speed(self) -> float:
        """Written tokens a second."""
        return self.tokens / self.seconds


Opening = Callable[[PreTrainedModel, Asked], Engine]


def _transformers(model: PreTrainedModel, asked: Asked) -> Engine:
    return TransformersEngine(model, endless_tokenizer(), max_batch=asked.count)


def _vllm(model: PreTrainedModel, asked: Asked, *, eager: bool, lora: str | None = None) -> Engine:
    """Its cache holds all requests at once, and at least one of the model's full context.

    lora: how vLLM is sent LoRA's weights of rank 16 beside every matrix (`support.LORA`); None: there are none.
    """
    longest = asked.count * (asked.trunk + asked.tail + asked.reply)
    most = max(longest, model.config.get_text_config().max_position_embeddings)
    cache = 1.1 * most * token_bytes(model, model.dtype) / GIB
    options = {"max_batch": asked.count, "cache_gib": cache, "eager": eager}
    if lora is None:
        return VllmEngine(model, endless_tokenizer(), **options)
    low_rank = twin(model.requires_grad_(False))
    inject(low_rank, LoraConfig(), 0, "lora")
    return VllmEngine(low_rank, endless_tokenizer(), **options, lora=lora)


TRANSFORMERS = "transformers"
ENGINES: dict[str, Opening] = {
    TRANSFORMERS: _transformers,
    "vllm, eager": partial(_vllm, eager=True),
    "vllm, graphs": partial(_vllm, eager=False),
}
LORA: dict[str, Opening] = {
    f"vllm, graphs, LoRA {way}": partial(_vllm, eager=False, lora=way)
    for way in (support.MERGED, support.APART)
}
"""Measured with `--lora`. With merged weights vLLM does the work of a model without LoRA."""


def checkpoints() -> list[str]:
    """Names of the checkpoints whose sizes are known and that read text."""
    return [name for name, fields in known().items() if "vision_config" not in fields]


def compare(name: str, *, lora: bool = False) -> dict[str, Timed]:
    """Every engine that is installed, on this machine's GPU. name: of a checkpoint. lora: also vLLM with LoRA."""
    model, _ = made(name, torch.bfloat16, torch.device("cuda"))
    engines = ENGINES | LORA if lora else dict(ENGINES)
    try:
        support.check_installed()
    except support.UnsupportedError as error:
        say(str(error))
        engines = {TRANSFORMERS: ENGINES[TRANSFORMERS]}
    return measure(model, engines, Asked())


def measure(
    model: PreTrainedModel, engines: dict[str, Opening], asked: Asked, repeats: int = REPEATS
) -> dict[str, Timed]:
    """The same requests to every engine, one engine after the other, on the model's device."""
    requests = asked.requests(model.config.get_text_config().vocab_size)
    found = {}
    for name, opening in engines.items():
        say(f"{name}: once, and {repeats} times")
        engine = opening(model, asked)
        try:
            first, _ = _timed(engine, requests)
            seconds, tokens = min(_timed(engine, requests, version + 1) for version in range(repeats))
        finally:
            engine.close()
        found[name] = Timed(first, seconds, tokens)
        say(f"{name}: {first:.2f} s with its start, then {seconds:.2f} s, {found[name].speed:,.0f} tokens/s")
        gc.collect()
    return found


def _timed(engine: Engine, requests: Sequence[Request], version: int = 0) -> tuple[float, int]:
    """Seconds on the clock and tokens written. Ids are on the CPU at the end, so nothing is still to be computed."""
    if version:  # under a new name of the weights no prompt is found in vLLM's cache
        engine.sync(version)
    start = time.perf_counter()
    completions = engine.generate(requests)
    return time.perf_counter() - start, sum(len(completion.ids) for completion in completions)


def table(name: str, found: dict[str, Timed]) -> Table:
    """One row for each engine."""
    made_of = Table(
        "checkpoint", "engine", "first call s", "s", "tokens/s", "times transformers", box=box.ASCII
    )
    base = found[TRANSFORMERS].speed
    for engine, one in found.items():
        numbers = f"{one.first:.2f}", f"{one.seconds:.2f}", f"{one.speed:,.0f}", f"{one.speed / base:.2f}"
        made_of.add_row(name, engine, *numbers)
    return made_of
