"""How far the log-probs of sampled tokens are from the trainer's, by precision: `python -m benchmarks.precision`.

A random Qwen2 of a few million parameters continues random prompts with the engine `transformers`. The trainer's
forward pass reads the same tokens in its own number formats, as `learn.module` does it. What differs is rounding alone:
the true ratio of every token is 1.

`sampler` is what samples: the weights as they lie (today's engines), or the same under the trainer's autocast.
"""

from __future__ import annotations

import argparse
import contextlib
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from benchmarks.sampling import endless_tokenizer
from rlanything.config import LearnConfig, Precision
from rlanything.core.types import Completion, Request, ScoredTrajectory, Status, Step, Trajectory
from rlanything.engines.placement import Role, dtype
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.losses import k3, pack, target_logprobs
from rlanything.learn.packing import micro_batches, policy_rows

CASES: tuple[tuple[Precision, bool], ...] = (
    ("32-true", False),
    ("bf16-mixed", False),
    ("bf16-mixed", True),
    ("bf16-true", False),
)
"""(precision, whether the sampler runs under the trainer's autocast)."""
EPSILON = LearnConfig().epsilon
MICRO_BATCH = 4096


@dataclass(frozen=True)
class Workload:
    """Sizes of a measurement; lengths are in tokens. spread: of the random weights: with it, how sure the model is."""

    prompts: int = 48
    prompt: int = 96
    reply: int = 64
    vocab: int = 1024
    hidden: int = 256
    layers: int = 8
    spread: float = 0.06
    device: str = "cpu"


@dataclass(frozen=True)
class Mismatch:
    """|difference| of a token's log-probs, and its ratio exp(trainer - sampler)."""

    precision: Precision
    autocast: bool
    tokens: int
    entropy: float
    """Mean of -log p of the sampled tokens: how unsure the model is."""
    mean: float
    half: float
    most: float
    """The 99th percentile."""
    largest: float
    clipped: float
    """Share of tokens whose ratio is outside 1 +- epsilon although nothing was learned."""
    low: float
    high: float
    """First and 99th percentile of the ratio."""
    episode: float
    """Mean over replies of |sum of the differences|: what a ratio of whole replies would be off by, in nats."""
    kl: float
    """Mean k3 estimate: `policy/mismatch_kl`."""


def measure(precision: Precision, autocast: bool, work: Workload | None = None) -> Mismatch:
    """The mismatch of one case."""
    work = work or Workload()
    model = _model(work, precision)
    engine = TransformersEngine(model, endless_tokenizer(), max_batch=16)
    requests = _requests(work)
    with _autocast(precision, work.device) if autocast else contextlib.nullcontext():
        said = engine.generate(requests)
    sampled, trained = _both(model, requests, said, precision)
    return _compared(precision, autocast, sampled, trained, work)


def _model(work: Workload, precision: Precision) -> PreTrainedModel:
    torch.manual_seed(0)
    heads = work.hidden // 32
    config = Qwen2Config(
        vocab_size=work.vocab,
        hidden_size=work.hidden,
        intermediate_size=3 * work.hidden,
        num_hidden_layers=work.layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 4),
        max_position_embeddings=4096,
        initializer_range=work.spread,
        tie_word_embeddings=True,
    )
    model: PreTrainedModel = Qwen2ForCausalLM(config).eval()
    # Weights that went through a checkpoint in bfloat16, as published ones did: what differs is arithmetic alone.
    model.to(torch.bfloat16)  # type: ignore[arg-type]  # transformers hides Module.to
    model.to(dtype(precision, Role.TRAINED)).to(work.device)  # type: ignore[arg-type]
    return model


def _requests(work: Workload) -> list[Request]:
    rng = random.Random(0)
    lengths = [rng.randrange(work.prompt // 2, work.prompt + 1) for _ in range(work.prompts)]
    prompts = [tuple(rng.randrange(10, work.vocab) for _ in range(length)) for length in lengths]
    return [Request(prompt, seed, work.reply, 1.0) for seed, prompt in enumerate(prompts)]


def _autocast(precision: Precision, device: str) -> AbstractContextManager[Any]:
    if precision != "bf16-mixed":
        return contextlib.nullcontext()
    return torch.autocast(device, dtype=torch.bfloat16)


@torch.no_grad()
def _both(
    model: PreTrainedModel, requests: Sequence[Request], said: Sequence[Completion], precision: Precision
) -> tuple[Tensor, Tensor]:
    """Log-probs of every sampled token: the sampler's, and the trainer's."""
    rows = []
    for request, reply in zip(requests, said, strict=True):
        step = Step(request.prompt_ids, reply.ids, reply.logprobs, (), "", True, "")
        trajectory = Trajectory("", 0, 0, 0, "", (step,), 1, Status.OK)
        rows += policy_rows(ScoredTrajectory(trajectory, (1.0,)), "step")
    sampled, trained = [], []
    for group in micro_batches(rows, MICRO_BATCH):
        batch = pack(group, model.device)
        with _autocast(precision, model.device.type):
            trained.append(target_logprobs(model, batch).float().cpu())
        sampled.append(batch.old_n.cpu())
    return torch.cat(sampled).double(), torch.cat(trained).double()


def _compared(
    precision: Precision, autocast: bool, sampled: Tensor, trained: Tensor, work: Workload
) -> Mismatch:
    difference = trained - sampled
    ratio, distance = difference.exp(), difference.abs()
    return Mismatch(
        precision,
        autocast,
        len(difference),
        float(-sampled.mean()),
        float(distance.mean()),
        float(distance.median()),
        float(distance.quantile(0.99)),
        float(distance.max()),
        float(((ratio - 1).abs() > EPSILON).double().mean()),
        float(ratio.quantile(0.01)),
        float(ratio.quantile(0.99)),
        float(difference.unflatten(0, (-1, work.reply)).sum(1).abs().mean()),
        float(k3(difference).mean()),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--hidden", type=int, default=Workload().hidden, help="width of the model")
    parser.add_argument("--layers", type=int, default=Workload().layers)
    parser.add_argument("--spread", type=float, default=Workload().spread, help="of the random weights")
    args = parser.parse_args()
    torch.set_num_threads(1)
    work = Workload(device=args.device, hidden=args.hidden, layers=args.layers, spread=args.spread)
    names = ("mean", "median", "99 %", "largest", "ratio 1 %", "99 %", f"outside {EPSILON}", "a reply", "k3")
    table = Table("precision", "sampler", "tokens", "-log p", *names)
    for precision, autocast in CASES:
        found = measure(precision, autocast, work)
        values = (found.mean, found.half, found.most, found.largest)
        table.add_row(
            precision,
            "autocast" if autocast else "as it lies",
            f"{found.tokens:,}",
            f"{found.entropy:.2f}",
            *(f"{value:.1e}" for value in values),
            f"{found.low:.4f}",
            f"{found.high:.4f}",
            f"{found.clipped:.2%}",
            f"{found.episode:.1e}",
            f"{found.kl:.1e}",
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
