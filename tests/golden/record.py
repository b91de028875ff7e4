"""Records the golden runs: `python tests/golden/record.py --reason "why the numbers move"`.

Refuses a tree with changes that are not committed, because a record names the revision that it was made by. Shows the
first number that moved in each arm. `--arm` names an arm that is meant to move, once for each; all arms are run, only
those are written, and none is when another one moved. `--start` makes the tasks and models that the runs start from
anew, first.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import golden_cases as golden
import torch
from torch import Tensor

from rlanything.config import parse
from rlanything.core.ids import canonical_json
from rlanything.engines import checkpoint, sampling
from rlanything.engines.placement import Role
from rlanything.files.atomic import write_text
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import IterationResult, Loop
from rlanything.planning import compose
from rlanything.runs import build
from rlanything.stages import tasks
from rlanything.stages.bootstrap.stage import make_models

OVERRIDES = (
    "scale=smoke",
    "+arm@arms.step_only=step_only",
    "arms.step_only.reward_from=policy_reward",
    "tasks.train=12",
    "tasks.panels.in_domain.tasks=3",
    "tasks.panels.out_of_domain.tasks=3",
    "model.embedded.hidden=32",
    "model.embedded.heads=4",
    "model.embedded.kv_heads=2",
    "model.embedded.intermediate=96",
    "model.embedded.layers=2",
    "model.embedded.vocab=640",
    "model.embedded.positions=2048",
    "bootstrap.policy.episodes=1500",
    "bootstrap.policy.steps=500",
    "bootstrap.policy.batch=16",
    "bootstrap.reward.episodes=300",
    "bootstrap.reward.steps=300",
    "bootstrap.reward.batch=16",
    "bootstrap.adapter.episodes=1000",
    "bootstrap.adapter.steps=700",
    "bootstrap.adapter.batch=24",
    "rollout.max_steps=8",
    "evaluate.max_steps=8",
    "evaluate.curve_tasks=3",
    "evaluate.every=3",
    "signals.lambda=0.5",
    "signals.advantage_scale=task",
    "learn.reward.lr=5e-4",
    "signals.reward_min=0",
    "signals.reward_max=1",
    "signals.policy_min=0",
    "signals.policy_max=1",
    "adaptation.alpha_low=0.3",
    "adaptation.alpha_high=0.7",
    "adaptation.attempts=2",
    "adaptation.temperature=1.3",
    "train.iterations=3",
)
"""Small enough for seconds, and every part does something: votes disagree, rewrites are taken and refused."""
STILL = "nothing moved"


def main(words: Sequence[str], root: Path = golden.ROOT) -> None:
    """Record every arm, or exit with the reason why not."""
    parser = argparse.ArgumentParser(description="Record the golden runs.")
    parser.add_argument("--reason", required=True, help="why the numbers move, for whoever meets them next")
    parser.add_argument("--start", action="store_true", help="make tasks and models anew as well (minutes)")
    parser.add_argument(
        "--arm", action="append", choices=golden.ARMS, help="record this arm alone; repeat it"
    )
    given = parser.parse_args(words)
    if len(given.reason.split()) < 3:
        parser.error(f"--reason {given.reason!r}: say in a sentence why the numbers move")
    changed = uncommitted(root)
    if changed:
        listed = "\n".join(f"    {name}" for name in changed)
        sys.exit(f"a record names the revision that it was made by; commit or remove first:\n{listed}")
    if given.start:
        make_start(golden.START)
    write_text(golden.START / "params.yaml", compose.text(compose.compose(OVERRIDES, golden.ROOT), OVERRIDES))
    record(git(root, "rev-parse", "HEAD").strip(), given.reason, given.arm or golden.ARMS)


def git(root: Path, *words: str) -> str:
    """What a git command prints."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def uncommitted(root: Path) -> list[str]:
    """Files that differ from HEAD or are not in it, those that a record consists of excepted."""
    names = [line[3:] for line in git(root, "status", "--porcelain", "--untracked-files=all").splitlines()]
    own = tuple(f"{place.relative_to(golden.ROOT)}/" for place in (golden.START, golden.RECORDS))
    return [name for name in names if not name.startswith(own)]


def make_start(folder: Path) -> None:
    """Tasks and trained models; weights are rounded to bfloat16, half the size and the same on every machine."""
    config = parse(compose.compose(OVERRIDES, golden.ROOT))
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "experiments").symlink_to(golden.ROOT / "experiments")
        tasks.make_tasks(config, root)
        make_models(config, root)
        for name in ("policy", "reward", "adapter"):
            model = getattr(config.model, name)
            loaded, tokenizer = build.load(config, model, root, Role.FROZEN, name)
            checkpoint.save(loaded.to(torch.bfloat16), tokenizer, root / model.path)
        for part in ("data", "models"):
            shutil.rmtree(folder / part, ignore_errors=True)
            shutil.copytree(root / part, folder / part)


def record(revision: str, reason: str, arms: Sequence[str]) -> None:
    """Run every arm, show what moved, then write the records of `arms`, or exit when another arm moved."""
    header = {
        "revision": revision,
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "reason": reason,
    }
    texts, others = {}, []
    with tempfile.TemporaryDirectory() as name:
        root = golden.project(Path(name))
        for arm in golden.ARMS:
            with narrowest() as draws:
                lines = golden.run(root, arm)
            for line, draw in zip((x for x in lines if "metrics" in x), draws, strict=False):
                line["narrowest"] = float(f"{draw:.3g}")
            what = moved(arm, lines)
            print(f"{arm}: {what}")
            if arm not in arms and what != STILL:
                others.append(arm)
            texts[arm] = "".join(canonical_json({"arm": arm, **x}) + "\n" for x in (header, *lines))
    if others:
        sys.exit(f"no record is written: {', '.join(others)} moved, which --arm does not name")
    for arm in arms:
        write_text(golden.RECORDS / f"{arm}.jsonl", texts[arm])


def moved(arm: str, lines: Sequence[golden.Line]) -> str:
    """What is not as it was recorded before, in words."""
    if not (golden.RECORDS / f"{arm}.jsonl").is_file():
        return "recorded for the first time"
    found = golden.first_difference(golden.read(arm)[1], lines)
    return str(found) if found else STILL


@contextmanager
def narrowest() -> Iterator[list[float]]:
    """For each iteration, how much probability lay between its most delicate draw and another token."""
    draws, margins = [1.0], []
    draw, collect = sampling.draw, Loop.collect

    def watched(logits: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        chosen, logprobs = draw(logits, uniform, temperature)
        edges = (logits.float() / temperature[:, None]).softmax(-1).cumsum(-1, dtype=torch.float64)
        edges = edges / edges[:, -1:]
        inner = torch.where((edges > 0) & (edges < 1 - 1e-12), (edges - uniform[:, None]).abs(), 1.0)
        draws.append(float(inner.min()))
        return chosen, logprobs

    def collected(loop: Loop, state: LoopState) -> IterationResult:
        result = collect(loop, state)
        margins.append(min(draws))
        draws[:] = [1.0]
        return result

    with mock.patch.object(sampling, "draw", watched), mock.patch.object(Loop, "collect", collected):
        yield margins


if __name__ == "__main__":
    main(sys.argv[1:])
