"""How far divisions of the work and other processors move the numbers of a golden run: prints a table.

    python tests/golden/measure.py

Each line is arm `full` run once more in a process of its own, with what it names, and compared with the record: whether
every token and decision is the recorded one, how many log-probs and metrics are equal to the last recorded digit (the
ninth), and the largest difference, as a share of 1 + |recorded|. Then, over many episodes and votes of the untrained
models, how many tokens come out differently when an engine takes a few rows at once. Takes some minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import golden_cases as golden
import yaml
from golden_parts import Parts

from rlanything.core.types import Judgement, Trajectory
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.runs.layout import Layout

ARM = "full"
GENERATE = {"_target_": "rlanything.engines.transformers.TransformersEngine", "max_batch": 16}
VARIANTS: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "as recorded": ({}, {}),
    "engine.max_batch=1": ({"engine__max_batch": 1}, {}),
    "engine.max_batch=17": ({"engine__max_batch": 17}, {}),
    "engine=transformers": ({"engine": GENERATE}, {}),
    "learn.micro_batch_tokens=1": ({"learn__micro_batch_tokens": 1}, {}),
    "train.devices=2": ({"train__devices": 2}, {}),
    "OMP_NUM_THREADS=4": ({}, {"OMP_NUM_THREADS": "4"}),
    "ATEN_CPU_CAPABILITY=avx2": ({}, {"ATEN_CPU_CAPABILITY": "avx2"}),
    "ATEN_CPU_CAPABILITY=default": ({}, {"ATEN_CPU_CAPABILITY": "default"}),
    "MKL_CBWR=AVX2": ({}, {"MKL_CBWR": "AVX2"}),
    "MKL_CBWR=COMPATIBLE": ({}, {"MKL_CBWR": "COMPATIBLE"}),
    "ONEDNN_MAX_CPU_ISA=SSE41": ({}, {"ONEDNN_MAX_CPU_ISA": "SSE41"}),
}
"""Name -> (changes of the configuration, environment)."""


def main() -> None:
    """Print the table."""
    _, recorded = golden.read(ARM)
    print(f"{'':30} {'tokens, decisions':20} {'equal digits':>14} {'largest':>9}")
    for name, (changes, environment) in VARIANTS.items():
        now = run(changes, environment)
        found = golden.first_difference(recorded, now)
        same = "all equal" if found is None or not found.sampled else "differ"
        pairs = list(floats(recorded, now))
        equal = sum(old == new for old, new in pairs)
        largest = max(abs(old - new) / (1.0 + abs(old)) for old, new in pairs)
        print(f"{name:30} {same:20} {f'{equal} of {len(pairs)}':>14} {largest:9.1g}", flush=True)
    flips(seeds=60, rows=17)


def flips(seeds: int, rows: int) -> None:
    """Print how many episodes and votes begin to differ, and how many tokens were drawn."""
    sampled = differ = 0
    with tempfile.TemporaryDirectory() as name:
        parts = Parts(golden.project(Path(name)))
        work = [Assignment(k, task, 4) for k, task in enumerate(parts.tasks)]
        for seed in range(seeds):
            sampling = Sampling(seed, "act", 0, 1.0, 5)
            parts.limit(256)
            played = parts.rollout_worker.roll_out(work, sampling)
            judged = parts.judge.judge(played, seed, 0)
            parts.limit(rows)
            again = parts.rollout_worker.roll_out(work, sampling)
            votes = zip(drawn(judged), drawn(parts.judge.judge(played, seed, 0)), strict=True)
            episodes = zip(map(actions, played), map(actions, again), strict=True)
            for one, other in (*episodes, *votes):
                sampled += sum(map(len, one))
                differ += one != other
    print(f"engine.max_batch={rows}: {differ} of {sampled} tokens begin something different")


def actions(trajectory: Trajectory) -> list[tuple[int, ...]]:
    """The sampled ids of an episode, step by step."""
    return [step.response_ids for step in trajectory.steps]


def drawn(judgements: Sequence[Sequence[Judgement]]) -> list[list[tuple[int, ...]]]:
    """The sampled ids of every vote."""
    return [[vote.response_ids] for part in judgements for judgement in part for vote in judgement.votes]


def run(changes: dict[str, object], environment: dict[str, str]) -> list[golden.Line]:
    """The golden run in a project, and in processes, of its own."""
    launcher = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={changes.get('train__devices', 1)}",
    ]
    with tempfile.TemporaryDirectory() as name:
        root = golden.project(Path(name))
        data = golden.configuration(**changes).model_dump(mode="json", by_alias=True)
        (root / "params.yaml").write_text(yaml.safe_dump(data))
        command = [
            *(launcher if "train__devices" in changes else []),
            "-m",
            "rlanything",
            "train",
            "--arm",
            ARM,
        ]
        settings = {**os.environ, "PYTHONPATH": str(golden.ROOT), "OMP_NUM_THREADS": "1", **environment}
        subprocess.run(
            [sys.executable, *command], cwd=root, env=settings, check=True, stderr=subprocess.DEVNULL
        )
        return golden.kept(Layout(root).run(ARM, 0))


def floats(recorded: Sequence[golden.Line], now: Sequence[golden.Line]) -> Iterator[tuple[float, float]]:
    """Pairs of log-probs and metrics."""
    for old, new in zip(recorded, now, strict=True):
        for field in ("logprobs", "metrics"):
            for _, before, after in golden.pairs(old.get(field), new.get(field)):
                if isinstance(before, float) and isinstance(after, float):
                    yield before, after


if __name__ == "__main__":
    main()
