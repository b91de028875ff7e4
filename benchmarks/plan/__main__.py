"""What the plan predicts beside what is measured: parameters, bytes of weights, memory and time of a training step.

    python -m benchmarks.plan

Small random models on the CPU, two of which read pictures. One update of two micro-batches is measured after a first
one that made the optimizer's state. The peak is the largest sum of what PyTorch's profiler saw allocated and freed.
Times are of one thread, against the speed that the plan measures of this machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.machine import say
from benchmarks.plan import gpu
from benchmarks.plan.compared import Compared
from benchmarks.plan.models import ARCHITECTURES, ROWS, SEEING, random_model, seeing_model, sizes_of
from benchmarks.plan.steps import PRECISIONS, measure_step, predicted_step, update
from benchmarks.training import random_rows
from rlanything.config import LoraConfig
from rlanything.core.errors import MachineError
from rlanything.planning.costs.devices import DEVICES, Device, of_this_machine, this_cpu

LORA = LoraConfig(rank=4, alpha=8.0)


WIDE = {"hidden_size": 512, "intermediate_size": 1408, "num_attention_heads": 8, "head_dim": 64}
"""Sizes at which products take most of the time, as they do in large models."""
EMBEDDED = {
    "hidden_size": 96,
    "intermediate_size": 288,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 32,
}
"""Sizes of the embedded models (`experiments/model/embedded.yaml`)."""
TIMED = {"wide": WIDE, "embedded": EMBEDDED}


def compare_times(kind: str) -> list[Compared]:
    """Milliseconds of an update and of the forward pass of a prompt, for the sizes `TIMED[kind]`."""
    torch.set_num_threads(1)
    rows, _ = random_rows(2 * ROWS)
    model = random_model("qwen2", **TIMED[kind])
    with tempfile.TemporaryDirectory() as folder:
        size = sizes_of(model, Path(folder))
    products = size.parameters - size.embedding
    here = this_cpu()
    speed = here.of_flops * here.full_flops / 1000
    tokens = sum(len(row.ids) for row in rows)
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-6, foreach=True)
    ids = torch.tensor([rows[0].ids])
    with torch.no_grad():
        read = _fastest(lambda: model(ids, logits_to_keep=1))
    learn = _fastest(lambda: update(model, optimizer, [rows[:ROWS], rows[ROWS:]], "32-true"))
    return [
        Compared(f"{kind}: ms to read a prompt", 2 * products * ids.shape[1] / speed, read),
        Compared(f"{kind}: ms of a training step", 6 * products * tokens / speed, learn),
    ]


def _fastest(work: Callable[[], object]) -> float:
    """Milliseconds of the fastest of a few calls."""
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        spent.append(1000 * (time.perf_counter() - start))
    return min(spent)


def compare() -> list[Compared]:
    """Every comparison."""
    policy, reward = random_rows(2 * ROWS)
    found = []
    for name in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            size = sizes_of(random_model(name), Path(folder))
        found.append(Compared(f"{name}: parameters", size.parameters, random_model(name).num_parameters()))
        for precision in PRECISIONS:
            kinds = (("conversations", policy[:ROWS]), ("tree", reward[:1]))
            for (kind, micro), recomputed in product(kinds, (False, True)):
                peak = measure_step(random_model(name), [micro, micro], precision, recomputed=recomputed)
                said = predicted_step(size, micro, precision, recomputed=recomputed)
                how = ", checkpointing" if recomputed else ""
                found.append(Compared(f"{name}, {precision}, {kind}{how}: bytes of a step", said, peak))
    return [*found, *(row for name in SEEING for row in compare_pictures(name))]


def compare_pictures(name: str) -> list[Compared]:
    """The bytes of a step of a model that reads pictures, with all weights and with LoRA."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        size = sizes_of(seeing_model(name)[0], Path(folder))
    for precision, recomputed, lora in product(PRECISIONS, (False, True), (None, LORA)):
        model, eyes, rows = seeing_model(name)
        peak = measure_step(model, [rows, rows], precision, recomputed=recomputed, lora=lora, eyes=eyes)
        said = predicted_step(size, rows, precision, recomputed=recomputed, lora=lora)
        how = f"{', LoRA' if lora else ''}{', checkpointing' if recomputed else ''}"
        found.append(Compared(f"{name}, {precision}, pictures{how}: bytes of a step", said, peak))
    return found


def here() -> list[Compared]:
    """Everything that is compared on a CPU."""
    return [*compare(), *(timed for kind in TIMED for timed in compare_times(kind))]


def _known(parser: argparse.ArgumentParser) -> Device:
    """This machine's GPU. Ends the program where there is none that the plan knows."""
    device = of_this_machine()
    if device is None:
        known = ", ".join(one.name for one in DEVICES)
        parser.error(f"--gpu: PyTorch finds no GPU here that the plan knows; it knows {known}")
    return device


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code. What was measured before the device had no more room is printed too."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__.split("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="models of real size on this machine's GPU")
    args = parser.parse_args(argv)
    table = Table("", "predicted", "measured", "predicted / measured")
    problem = ""
    try:
        for row in gpu.compare(_known(parser)) if args.gpu else here():
            numbers = [f"{value:,.{0 if value >= 100 else 2}f}" for value in (row.predicted, row.measured)]
            say(f"{row.what}: {' '.join(numbers)}")
            table.add_row(row.what, *numbers, f"{row.ratio:.3f}")
    except (MachineError, torch.OutOfMemoryError) as error:
        problem = str(error)
    Console(width=140 if args.gpu else None).print(table)
    if problem:
        say(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
