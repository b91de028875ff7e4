"""What tests of runs with LoRA share: the configuration, and the parts of a run over the golden tasks and models."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import golden_cases as golden
import torch

from rlanything.core.types import Request
from rlanything.runs.parts import Parts, RunId, make_parts

ARM = "full"
LORA = {"lr": 1e-3, "lora": {"rank": 4, "alpha": 8.0}}
BOTH: dict[str, Any] = {
    "learn__policy": LORA,
    "learn__reward": LORA,
    "learn__kl_reference": "base",
    "learn__importance": "recomputed",
}


def parts(root: Path, engines: ExitStack, **changes: Any) -> Parts:
    config = golden.configuration(**{**BOTH, **changes})
    return make_parts(config, RunId(root, ARM, 0, root / "live"), engines)


REQUESTS = [Request(tuple(range(5, 12 + n)), n, 6) for n in range(4)]


def storages(*models: torch.nn.Module | None) -> set[int]:
    return {p.data_ptr() for model in models if model is not None for p in model.parameters()}
