"""Models of real size on this machine's GPU, beside what the plan says of them: `python -m benchmarks.plan --gpu`.

The weights are random; sizes and shapes are those of the named checkpoints. Measured are the most bytes that PyTorch
had allocated at once, the seconds of an update, with and without kernels that add in a fixed order, and the seconds in
which the engine `transformers` reads prompts and writes replies. In the time of a prediction the GPU reaches the shares
of its peak that the plan assumes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from benchmarks.plan.checkpoints import made
from benchmarks.plan.compared import Compared
from benchmarks.plan.models import random_model
from benchmarks.plan.steps import predicted_step, update
from benchmarks.sampling import endless_tokenizer
from benchmarks.training import random_rows
from rlanything.config import LoraConfig, Precision
from rlanything.core.types import Request
from rlanything.engines import sampling
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.placement import Role, dtype, weight_bytes
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.fixed_order import fixed_order
from rlanything.learn.packing import Row, micro_batches
from rlanything.learn.recomputing import allow_recomputing, recomputing
from rlanything.planning.costs import hours
from rlanything.planning.costs.devices import Device
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.work.workload import Calls

LORA = LoraConfig(rank=16, alpha=32.0)
CUDA = torch.device("cuda")
UNITS = 64
"""Random trajectories, from which micro-batches are made."""
REPEATS = 3
TINY = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
}
"""Sizes of a model whose tensors take no time, so that only starting its kernels does."""


@dataclass(frozen=True)
class Step:
    """An update of two micro-batches of at most `tokens` tokens each."""

    name: str
    precision: Precision
    lora: bool = False
    recomputed: bool = False
    tokens: int = 2048
    tree: bool = False
    """Whether the rows are the reward model's."""

    def __str__(self) -> str:
        more = ("LoRA", self.lora), ("checkpointing", self.recomputed), ("tree", self.tree)
        words = [self.name.partition("/")[2], self.precision, f"{self.tokens:,} tokens"]
        return ", ".join(words + [word for word, true in more if true])


SMALL, MIDDLE, LARGE = (f"Qwen/Qwen2.5-{size}-Instruct" for size in ("0.5B", "1.5B", "7B"))
STEPS = (
    Step(SMALL, "32-true"),
    Step(SMALL, "bf16-mixed"),
    Step(SMALL, "bf16-mixed", tree=True),
    Step(SMALL, "bf16-mixed", tokens=8192),
    Step(MIDDLE, "bf16-mixed"),
    Step(MIDDLE, "bf16-mixed", recomputed=True, tokens=8192),
    Step(MIDDLE, "bf16-true"),
    Step(LARGE, "bf16-mixed", lora=True),
    Step(LARGE, "bf16-mixed", lora=True, recomputed=True, tokens=8192),
)


@dataclass(frozen=True)
class Replies:
    """`rows` prompts of `prompt` tokens at once, and replies of `reply` tokens."""

    name: str
    precision: Precision
    rows: int
    prompt: int = 1024
    reply: int = 64

    def __str__(self) -> str:
        short = self.name.partition("/")[2]
        return f"{short}, {self.precision}, {self.rows} prompts of {self.prompt}, replies of {self.reply}"


REPLIES = (
    Replies(SMALL, "32-true", 32),
    Replies(SMALL, "bf16-true", 32),
    Replies(MIDDLE, "bf16-true", 32),
    Replies(LARGE, "bf16-true", 32),
    Replies(LARGE, "bf16-true", 128),
)


def compare(device: Device) -> Iterator[Compared]:
    """Every comparison. device: what the plan knows of this machine's GPU."""
    for step in STEPS:
        yield from _freed(partial(compare_step, step, device))
    for replies in REPLIES:
        yield from _freed(partial(compare_replies, replies, device))
    yield from compare_layers()
    yield from compare_draws()


def _freed(work: Callable[[], Iterator[Compared]]) -> list[Compared]:
    """What `work` found, its tensors freed."""
    found = list(work())
    gc.collect()
    torch.cuda.empty_cache()
    return found


def compare_step(step: Step, device: Device) -> Iterator[Compared]:
    """Bytes and milliseconds of an update, as the trainer makes it."""
    role = Role.FROZEN if step.lora else Role.TRAINED
    model, size = made(step.name, dtype(step.precision, role), CUDA)
    if step.lora:
        inject(model, LORA, 0, "learn.policy.lora")
    if step.recomputed:
        allow_recomputing(model)
    rows = micro_batches(random_rows(UNITS)[step.tree], step.tokens)[:2]
    optimizer = torch.optim.AdamW(trained(model).values(), lr=1e-6, foreach=True)

    def learn() -> None:
        with recomputing(model, step.recomputed):
            update(model, optimizer, rows, step.precision)

    with fixed_order(CUDA):
        learn()
        torch.cuda.reset_peak_memory_stats()
        spent = _seconds(learn)
    peak = torch.cuda.max_memory_allocated()
    lora = LORA if step.lora else None
    said = predicted_step(size, _widest(rows), step.precision, recomputed=step.recomputed, lora=lora)
    yield Compared(f"{step}: MB of a step", said / 1e6, peak / 1e6)
    wanted = 1000 * _predicted(step, size, rows, device)
    yield Compared(f"{step}: ms of a step", wanted, 1000 * spent)
    yield Compared(f"{step}: ms, sums in any order", wanted, 1000 * _seconds(learn))


def _widest(rows: list[list[Row]]) -> list[Row]:
    return max(rows, key=lambda micro: len(micro) * max(len(row.ids) for row in micro))


def _predicted(step: Step, size: Size, rows: list[list[Row]], device: Device) -> float:
    """Seconds of an update, as the plan says it."""
    tokens = sum(len(row.ids) for micro in rows for row in micro)
    half = step.precision != "32-true"
    return hours.updating(
        size, tokens, len(rows), device, half=half, lora=step.lora, again=int(step.recomputed)
    )


def compare_replies(replies: Replies, device: Device) -> Iterator[Compared]:
    """Milliseconds to read prompts and to write replies."""
    model, size = made(replies.name, dtype(replies.precision, Role.TRAINED), CUDA)
    tokenizer = endless_tokenizer()
    engine = TransformersEngine(model, tokenizer, max_batch=replies.rows)
    prompt = tuple(range(10, 10 + replies.prompt))
    asked = [Request(prompt, seed, replies.reply) for seed in range(replies.rows)]
    engine.generate([Request(prompt, 0, 4)])
    spent = _seconds(lambda: engine.generate(asked), repeats=2)
    count, longest = replies.rows, replies.prompt + replies.reply
    calls = Calls("", "", count, count, count * replies.prompt, count * replies.reply, longest)
    width = weight_bytes(replies.precision, Role.TRAINED)
    least = hours.starting(size, device)
    said = hours.sampling(calls, size, device, most=replies.rows, width=width, least=least)
    yield Compared(f"{replies}: ms", 1000 * said, 1000 * spent)


def compare_layers(layers: int = 28, tokens: int = 32) -> Iterator[Compared]:
    """Milliseconds of a layer in a decoding step that only starts kernels."""
    with CUDA:
        model = random_model("qwen2", **TINY, num_hidden_layers=layers).eval()
    engine = TransformersEngine(model, endless_tokenizer())
    asked = [Request(tuple(range(10, 40)), seed, tokens) for seed in range(4)]
    spent = _seconds(lambda: engine.generate(asked)) / tokens / layers
    yield Compared("ms to start a layer", 1000 * hours.LAYER_S, 1000 * spent)


def compare_draws(rows: int = 32, vocabulary: int = 151_936) -> Iterator[Compared]:
    """Milliseconds to draw a token for each row, on one thread of the CPU (in place of a prediction) and on the GPU."""
    logits = torch.randn(rows, vocabulary, device=CUDA)
    uniform = torch.from_numpy(sampling.uniforms(range(rows), 1)[:, 0])

    def draw(place: torch.device) -> None:
        sampling.draw(logits.to(place), uniform.to(place), torch.ones(rows))

    host, gpu = (_seconds(partial(draw, place)) for place in (torch.device("cpu"), CUDA))
    yield Compared(
        f"ms to draw {rows} of {vocabulary:,} ids: on the CPU, on the GPU", 1000 * host, 1000 * gpu
    )


def _seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of a few calls."""
    spent = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return min(spent)
