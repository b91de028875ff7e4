"""What the plan predicts beside what is measured: parameters, bytes of weights, memory and time of a training step.

    python -m benchmarks.plan

Small random models on the CPU, two of which read pictures. One update of two micro-batches is measured after a first
one that made the optimizer's state. The peak is the largest sum of what PyTorch's profiler saw allocated and freed.
Times are of one thread, against the speed that the plan measures of this machine.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pillow
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLForConditionalGeneration,
)

from benchmarks.training import random_rows
from rlanything.config import Checkpoint, LoraConfig
from rlanything.core.images import Image
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.placement import Role, dtype
from rlanything.engines.sight.eyes import Eyes
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import NO_BRANCH, Row
from rlanything.learn.recomputing import allow_recomputing, recomputing
from rlanything.planning.costs.activations import activations
from rlanything.planning.costs.devices import this_cpu
from rlanything.planning.costs.low_rank import lora_weights
from rlanything.planning.costs.sizes import Size, read_size
from rlanything.rehearsal import sighted

ARCHITECTURES: dict[str, tuple[type[Any], type[Any]]] = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config),
    "llama": (LlamaForCausalLM, LlamaConfig),
}
PRECISIONS = ("32-true", "bf16-mixed", "bf16-true")
ROWS = 4
"""Rows of a micro-batch of conversations; trees are long and come alone."""
SEEING: dict[str, tuple[type[Any], Callable[..., Any], int]] = {
    "qwen2_5_vl": (Qwen2_5_VLForConditionalGeneration, sighted.qwen2_5_vl, 14),
    "qwen3_vl": (Qwen3VLForConditionalGeneration, sighted.qwen3_vl, 16),
}
"""Models that read pictures, and the pixels of a side of a patch."""
MARKS = dict(zip(sighted.KEYS, range(1000, 1004), strict=True))
PATCHES = 14
"""Patches along a side of their pictures."""
TOWER = {"depth": 4, "hidden_size": 192, "intermediate_size": 720, "num_heads": 4}
"""Sizes of their towers: wide enough that layers take more than pixels, as in large models."""


@dataclass(frozen=True)
class Compared:
    """A prediction and a measurement, in bytes or counts."""

    what: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """Predicted / measured."""
        return self.predicted / self.measured


def random_model(name: str, **sizes: Any) -> PreTrainedModel:
    """A small random model of an architecture; `sizes` replace entries of its configuration."""
    model, config = ARCHITECTURES[name]
    usual = {
        "vocab_size": 1024,
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 24,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(0)
    made: PreTrainedModel = model(config(**{**usual, **sizes}))
    return made


def seeing_model(name: str) -> tuple[PreTrainedModel, Eyes, list[Row]]:
    """A small random model that reads pictures, its eyes, and a micro-batch of rows that show two pictures each."""
    model, configure, patch = SEEING[name]
    text = {
        "vocab_size": 1024,
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 4096,
    }
    config = configure(tie_word_embeddings=True, **MARKS, **text)
    for key, value in TOWER.items():
        setattr(config.vision_config, key, value)
    torch.manual_seed(0)
    made: PreTrainedModel = model(config)
    side = PATCHES * patch
    pictures = {image.sha256: image for image in (Image(_png(side, shade)) for shade in (60, 90))}
    eyes = Eyes(sighted.processor(patch), made, pictures.__getitem__)
    return made, eyes, [_row(eyes.token, eyes.tokens(side, side), list(pictures), k) for k in range(ROWS)]


def _row(token: int, count: int, names: list[str], number: int) -> Row:
    """Text with two pictures of `count` tokens within it, and eight targets at its end."""
    row, shown = Row(images=names), (token,) * count
    for ids in (range(10, 40 + number), shown, range(50, 60), shown, range(60, 90)):
        row.read(tuple(ids), len(row.ids), None, NO_BRANCH, NO_BRANCH)
    for source in range(len(row.ids) - 9, len(row.ids) - 1):
        row.learn(source, row.ids[source + 1], (), -1.0, 1.0, 1.0)
    return row


def _png(side: int, shade: int) -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (side, side), (shade, shade, shade)).save(file, "PNG")
    return file.getvalue()


def sizes_of(model: PreTrainedModel, folder: Path) -> Size:
    """What the plan reads of a saved model, from its config.json and header."""
    model.save_pretrained(str(folder))
    return read_size(Checkpoint(path=str(folder)), "model.policy", folder)


def measure_step(
    model: PreTrainedModel,
    rows: Sequence[Sequence[Row]],
    precision: str,
    *,
    recomputed: bool = False,
    lora: LoraConfig | None = None,
    eyes: Eyes | None = None,
) -> int:
    """Most bytes at once in an update of `rows` (two micro-batches), with weights, gradients and moments.

    recomputed: with gradient checkpointing. lora: what trains; None: all weights. eyes: of a model that reads pictures.
    """
    role = Role.FROZEN if lora else Role.TRAINED
    model.to(dtype(precision, role)).eval()  # type: ignore[arg-type]  # transformers hides Module.to
    if lora is not None:
        inject(model, lora, 0, "learn.policy.lora")
    if recomputed:
        allow_recomputing(model)
    with recomputing(model, recomputed):
        return _measured(model, rows, precision, eyes)


def _measured(
    model: PreTrainedModel, rows: Sequence[Sequence[Row]], precision: str, eyes: Eyes | None
) -> int:
    optimizer = torch.optim.AdamW(trained(model).values(), lr=1e-6, foreach=True)
    _update(model, optimizer, rows, precision, eyes)
    state = [v for s in optimizer.state.values() for v in s.values()]
    optimizer.zero_grad()  # the profiler does not see that memory is freed which it did not see allocated
    base = sum(t.nbytes for t in (*model.parameters(), *state))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        _update(model, optimizer, rows, precision, eyes)
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = base
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return int(most)


def predicted_step(
    size: Size,
    rows: Sequence[Row],
    precision: str,
    *,
    recomputed: bool = False,
    lora: LoraConfig | None = None,
) -> float:
    """The same as the plan says it: of the largest micro-batch, or of the optimizer's step."""
    width = max(len(row.ids) for row in rows)
    targets = sum(len(row.target) for row in rows)
    weight = size.parameters * dtype(precision, Role.TRAINED).itemsize
    tokens, tree = width * len(rows), rows[0].branched
    shown = sum(row.ids.count(MARKS["image_token_id"]) for row in rows if row.images)
    needed = activations(
        size, precision, tokens, width, targets, tree=tree, recomputed=recomputed, lora=lora, shown=shown
    )
    if lora is not None:
        own = 4 * lora_weights(size, lora)
        return size.parameters * dtype(precision, Role.FROZEN).itemsize + 4 * own + max(needed, own)
    copies = 2 * size.parameters if precision == "bf16-mixed" else 0
    return 4 * weight + max(needed + copies, weight)


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
    learn = _fastest(lambda: _update(model, optimizer, [rows[:ROWS], rows[ROWS:]], "32-true"))
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
    """The bytes of a step of a model that reads pictures."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        size = sizes_of(seeing_model(name)[0], Path(folder))
    for precision, recomputed in product(PRECISIONS, (False, True)):
        model, eyes, rows = seeing_model(name)
        peak = measure_step(model, [rows, rows], precision, recomputed=recomputed, eyes=eyes)
        said = predicted_step(size, rows, precision, recomputed=recomputed)
        how = ", checkpointing" if recomputed else ""
        found.append(Compared(f"{name}, {precision}, pictures{how}: bytes of a step", said, peak))
    return found


def main() -> None:
    """Print the table."""
    table = Table("", "predicted", "measured", "predicted / measured")
    for row in [*compare(), *(timed for kind in TIMED for timed in compare_times(kind))]:
        table.add_row(row.what, f"{row.predicted:,.0f}", f"{row.measured:,.0f}", f"{row.ratio:.3f}")
    Console().print(table)


def _update(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    rows: Sequence[Sequence[Row]],
    precision: str,
    eyes: Eyes | None = None,
) -> None:
    """One update as the module makes it: both micro-batches, the clipped gradient, the step."""
    optimizer.zero_grad()
    with _autocast(precision):
        for micro in rows:
            batch = pack(micro, eyes=eyes)
            (-(batch.weight_n * target_logprobs(model, batch)).sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def _autocast(precision: str) -> AbstractContextManager[Any]:
    return torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bf16-mixed" else nullcontext()


if __name__ == "__main__":
    main()
