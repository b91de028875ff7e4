"""CPU seconds of every engine on the same work, and how many completions have the native engine's ids.

Turns of episodes, actions chosen among a few, and votes on the steps of trajectories, as in `benchmarks.sampling`. The
models are random and the text is random ids. The engines take turns, so that a change of the machine's load meets all
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import torch
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from benchmarks.machine import cpu_seconds, say
from benchmarks.sampling import Ids, Respond, Workload, endless_tokenizer, episodes, vote_requests
from rlanything.core.protocols import Engine
from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import support
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.served.engine import VllmServers

SIZES = {"0.4M": (96, 288, 3, 3, 1), "5M": (256, 704, 6, 8, 2), "18M": (448, 1216, 8, 14, 2)}
"""Hidden size, intermediate size, layers, heads and key-value heads by name. Heads have size 32."""
WORK = Workload(tasks=8, rollouts=8, turns=4, trajectories=4, steps=6)
REPEATS = 2


@dataclass
class Measured:
    """One engine on one kind of work. seconds: CPU seconds of each repeat. equal: share of the native engine's ids."""

    seconds: list[float] = field(default_factory=list)
    equal: float = 1.0

    @property
    def best(self) -> float:
        """The least CPU seconds."""
        return min(self.seconds)


Results = dict[str, dict[str, Measured]]
"""Kind of work -> engine -> what was measured."""


def model_of(size: str) -> PreTrainedModel:
    """A random Qwen2 of one of `SIZES`."""
    hidden, intermediate, layers, heads, kv_heads = SIZES[size]
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=1024,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


NATIVE = "native"
OPENINGS: dict[str, Callable[[PreTrainedModel], Engine]] = {
    NATIVE: lambda model: NativeEngine(model, endless_tokenizer()),
    "transformers": lambda model: TransformersEngine(model, endless_tokenizer()),
    "vllm": lambda model: VllmEngine(model, endless_tokenizer(), cache_gib=1.0),
    "vllm_servers": lambda model: VllmServers(model, endless_tokenizer(), cache_gib=1.0),
}
"""The engines by name. The native one comes first, because the others are compared with it."""


def engines(model: PreTrainedModel, names: Collection[str] = tuple(OPENINGS)) -> Iterator[tuple[str, Engine]]:
    """The native engine, and those of `names` that are installed. The caller closes them."""
    for name, opening in OPENINGS.items():
        if name != NATIVE and name not in names:
            continue
        if name.startswith("vllm"):
            try:
                support.check_installed()
            except support.UnsupportedError as error:
                say(str(error))
                return
        yield name, opening(model)


def measure(
    size: str, work: Workload = WORK, repeats: int = REPEATS, names: Collection[str] = tuple(OPENINGS)
) -> Results:
    """Every kind of work on every engine, `repeats` times in turn. A first, smaller round is not counted.

    names: the engines beside the native one.
    """
    results: Results = {"turns": {}, "actions": {}, "votes": {}}
    with ExitStack() as stack:
        opened = dict(engines(model_of(size), names))
        for engine in opened.values():
            stack.callback(engine.close)
            engine.generate(vote_requests(Workload(trajectories=1, steps=1)))
        expected: dict[str, list[Ids]] = {}
        for repeat in range(repeats):
            for name, engine in opened.items():
                say(f"{size}: {name}, round {repeat + 1} of {repeats}")
                for kind, do in kinds(work).items():
                    engine.sync(1)
                    seconds, ids = timed(engine, do)
                    found = results[kind].setdefault(name, Measured())
                    found.seconds.append(seconds)
                    found.equal = share(ids, expected.setdefault(kind, ids))
    return results


def kinds(work: Workload) -> dict[str, Callable[[Respond], object]]:
    """The work by name, as functions of what responds to requests."""
    votes = vote_requests(work)
    return {
        "turns": lambda respond: episodes(respond, work),
        "actions": partial(episodes, work=work, constrained=True),
        "votes": lambda respond: respond(votes),
    }


def timed(engine: Engine, do: Callable[[Respond], object]) -> tuple[float, list[Ids]]:
    """CPU seconds of one kind of work, and all ids that were sampled."""
    sampled: list[Ids] = []

    def respond(requests: Sequence[Request]) -> list[Ids]:
        ids = [completion.ids for completion in engine.generate(requests)]
        sampled.extend(ids)
        return ids

    start = cpu_seconds()
    do(respond)
    return cpu_seconds() - start, sampled


def share(ids: Sequence[Ids], expected: Sequence[Ids]) -> float:
    """The share of equal completions."""
    return sum(one == other for one, other in zip(ids, expected, strict=True)) / len(expected)
