"""LoRA's weights merged for vLLM, and sent alone: `python -m benchmarks.engines.lora`.

Two models with LoRA share the frozen weights of a random one, as policy and reward model do. Printed are bytes and
seconds of an update of one of them, CPU seconds of sampling, and the largest difference of a log-prob from the model
that trains. vLLM must be installed. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from transformers import PreTrainedModel

from benchmarks.engines.measure import SIZES, WORK, kinds, model_of, timed
from benchmarks.machine import machine, say
from benchmarks.sampling import Workload, endless_tokenizer, vote_requests
from rlanything.config import LoraConfig
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.lora.merging import merged_state
from rlanything.engines.lora.sharing import twin
from rlanything.engines.vllm.copying import DTYPES, CopyingEngine
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.probe import logprobs
from rlanything.engines.vllm.served.engine import VllmServers
from rlanything.engines.vllm.support import APART, MERGED

ENGINES = {"vllm": VllmEngine, "vllm_servers": VllmServers}
REPEATS = 3
STEP = 1e-3
"""How far LoRA's weights move in an update: about what AdamW does to them in a hundred steps of 1e-5."""


@dataclass(frozen=True)
class Measured:
    """One way to give vLLM LoRA's weights.

    sent: bytes of an update. update: its seconds on the clock, the median, with the probe. sampling: CPU seconds by
    the kind of work, the least. error: of a log-prob.
    """

    sent: int
    update: float
    sampling: dict[str, float]
    error: float


def measure(
    size: str,
    engine: str,
    dtype: str = "float32",
    rank: int = 16,
    work: Workload = WORK,
    repeats: int = REPEATS,
) -> dict[str, Measured]:
    """`merged` and `apart` -> what was measured. size: of `SIZES`."""
    models = two_models(size, dtype, rank)
    found = {}
    for way in (MERGED, APART):
        say(f"{size}: {engine}, {way}")
        with opened(engine, models, way) as engines:
            updates = [updated(engines, models, turn) for turn in range(repeats)]
            sampling = {
                kind: min(timed(engines[0], do)[0] for _ in range(repeats))
                for kind, do in kinds(work).items()
            }
            wrong = error(engines[0], models[0], work)
            found[way] = Measured(bytes_sent(models[0], way, dtype), median(updates), sampling, wrong)
    return found


def two_models(size: str, dtype: str, rank: int) -> list[PreTrainedModel]:
    """Two models with LoRA of their own, over the same frozen weights."""
    base = model_of(size).to(DTYPES[dtype]).requires_grad_(False)  # type: ignore[arg-type]
    models = [twin(base), twin(base)]
    for seed, model in enumerate(models):
        inject(model, LoraConfig(rank=rank), seed, "lora")
    return models


@contextmanager
def opened(name: str, models: Sequence[PreTrainedModel], way: str) -> Iterator[list[CopyingEngine]]:
    """An engine for each model, started."""
    engines = [ENGINES[name](model, endless_tokenizer(), lora=way, cache_gib=1.0) for model in models]
    try:
        for engine in engines:
            engine.generate(vote_requests(Workload(trajectories=1, steps=1)))
        yield engines
    finally:
        for engine in engines:
            engine.close()


@torch.no_grad()
def updated(engines: Sequence[CopyingEngine], models: Sequence[PreTrainedModel], turn: int) -> float:
    """Change both models and let vLLM take them over. Returns the seconds of one of them."""
    torch.manual_seed(turn)
    for model in models:
        for value in trained(model).values():
            value.add_(torch.randn_like(value) * STEP)
    start = time.perf_counter()
    for engine in engines:
        engine.sync(turn + 1)
    return (time.perf_counter() - start) / len(engines)


def bytes_sent(model: PreTrainedModel, way: str, dtype: str) -> int:
    """Bytes of an update: of the whole state in vLLM's number format, or of LoRA's weights as they are."""
    if way == APART:
        return sum(value.nbytes for value in trained(model).values())
    return sum(value.numel() * DTYPES[dtype].itemsize for value in merged_state(model).values())


def error(engine: CopyingEngine, model: PreTrainedModel, work: Workload) -> float:
    """The largest difference of a log-prob between vLLM and the model that trains."""
    requests = vote_requests(work)[:16]
    return max(
        float((logprobs(model, request, completion) - torch.tensor(completion.logprobs)).abs().max())
        for request, completion in zip(requests, engine.generate(requests), strict=True)
    )


def table(size: str, engine: str, dtype: str, found: dict[str, Measured]) -> Table:
    """One row for each way."""
    kinds_of_work = list(next(iter(found.values())).sampling)
    names = "MB sent", "update s", *(f"{kind} CPU s" for kind in kinds_of_work), "log-prob error"
    made = Table("parameters", "engine", "format", "lora", *names, box=box.ASCII)
    for way, one in found.items():
        numbers = f"{one.sent / 1e6:.2f}", f"{one.update:.2f}", *(f"{s:.2f}" for s in one.sampling.values())
        made.add_row(size, engine, dtype, way, *numbers, f"{one.error:.1e}")
    return made


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the models that are named, and print a table for each."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engines.lora", description=__doc__.split("\n")[0]
    )
    parser.add_argument("sizes", nargs="*", default=["5M"], metavar="SIZE", help=f"of {', '.join(SIZES)}")
    parser.add_argument("--engine", choices=ENGINES, default="vllm", help="default: %(default)s")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="of the frozen weights; default: float32"
    )
    parser.add_argument("--rank", type=int, default=16, help="of LoRA; default: %(default)s")
    args = parser.parse_args(argv)
    for size in args.sizes:
        if size not in SIZES:
            parser.error(f"{size}: must be of {', '.join(SIZES)}")
    torch.set_num_threads(1)
    started = time.monotonic()
    console = Console(width=150)
    for size in args.sizes:
        console.print(table(size, args.engine, args.dtype, measure(size, args.engine, args.dtype, args.rank)))
    console.print(f"{machine()}; {time.monotonic() - started:.0f} s in all", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
