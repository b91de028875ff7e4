"""Whole trainings on a GPU, over the tasks and models of the golden runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_cases as golden
import pytest

from rlanything.runs.layout import Layout

ARM = "full"
ON_GPU: dict[str, Any] = {
    "train__accelerator": "cuda",
    "engine": {"_target_": "rlanything.engines.transformers.TransformersEngine", "max_batch": 64},
}
HALF = {"train__precision": "bf16-mixed", "learn__importance": "recomputed"}
LORA = {"lr": 1e-3, "lora": {"rank": 4, "alpha": 8.0}}
CASES: dict[str, dict[str, Any]] = {
    "float32": {},
    "bfloat16": HALF,
    "LoRA in bfloat16": {**HALF, "learn__policy": LORA, "learn__reward": LORA, "learn__kl_reference": "base"},
}


def files(root: Path) -> dict[Path, bytes]:
    run = Layout(root).run(ARM, 0)
    return {path.relative_to(run): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_two_runs_and_one_that_was_killed_leave_the_same_bytes(tmp_path, case):
    if "LoRA" in case:
        pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    changes = {**ON_GPU, **CASES[case]}
    found = []
    for name, killed in (("one", False), ("other", False), ("killed", True)):
        root = golden.project(tmp_path / name)
        if killed:
            with golden.killed_in(1):
                golden.run(root, ARM, **changes)
        lines = golden.run(root, ARM, **changes)
        found.append(files(root))
        assert any(line.get("metrics", {}).get("policy/rows") for line in lines)
    one, other, killed_run = found
    assert [name for name in one if one[name] != other.get(name)] == []
    assert [name for name in one if one[name] != killed_run.get(name)] == []


def test_in_float32_a_gpu_samples_what_the_cpu_sampled(tmp_path):
    """Rounding differs, so a token may fall to the other side of a border; the first iteration has no other reason."""
    engine = {"engine": ON_GPU["engine"]}
    known = golden.run(golden.project(tmp_path / "cpu"), ARM, **engine)
    found = golden.run(golden.project(tmp_path / "gpu"), ARM, **ON_GPU)
    first = [
        [line["actions"] for line in lines if line["iteration"] == 0 and "actions" in line]
        for lines in (known, found)
    ]
    assert first[0]
    assert first[1] == first[0]


def test_the_mismatch_between_sampler_and_trainer_is_measured(tmp_path):
    """In bfloat16 the trainer's log-probs are others than the sampler's; in float32 they agree to rounding."""
    found = {}
    for name, more in (("float32", {"learn__importance": "recomputed"}), ("bfloat16", HALF)):
        lines = golden.run(golden.project(tmp_path / name), ARM, **ON_GPU, **more)
        found[name] = [
            line["metrics"]["policy/mismatch_max"]
            for line in lines
            if "policy/mismatch_max" in line.get("metrics", {})
        ]
    assert found["float32"]
    assert max(found["float32"]) < 1e-3 < max(found["bfloat16"]) < 1.0
