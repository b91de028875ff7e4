"""Declared sweeps, and trials whose results are drawn from a known law instead of trained."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from rlanything.cli import main
from rlanything.core.seeds import derive_seed
from rlanything.runs import workers
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.declare.starts import Start
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.study.study import SweepStudy
from rlanything.sweep.trials.board import Board

ROOT = Path(__file__).parents[2]
LAMBDA = {"low": 0.25, "high": 4.0, "log": True}
BAND = {
    "between": ["adaptation.alpha_low", "adaptation.alpha_high"],
    "centre": [0.4, 0.6],
    "width": [0.2, 0.8],
}
BASE = {
    "signals.lambda": 0.5,
    "adaptation.alpha_low": 0.2,
    "adaptation.alpha_high": 0.8,
    "adaptation.acceptance": "strict",
    "judge.m": 3,
}
"""What the project's default scale has for the keys that these sweeps set."""

GAMES = 40


def declared(**changes: Any) -> Sweep:
    """A sweep over lambda and both thresholds."""
    data: dict[str, Any] = {"space": {"signals.lambda": LAMBDA, "band": BAND}}
    if changes.get("sampler") != "grid":  # which has as many trials as points
        data["budget"] = {"trials": 12}
    return Sweep.model_validate({**data, **changes})


def make(
    sweep: Sweep, folder: Path, url: str | None = None, name: str = "case", points: Sequence[Start] = ()
) -> Board:
    """An opened study and what all workers see of it."""
    return Board(SweepStudy(name, sweep, BASE, folder, url, points))


def truth(sets: dict[str, Any]) -> float:
    """Success at a point: best at lambda 1, worse away from it; the thresholds change nothing."""
    return 0.65 - 0.12 * abs(math.log2(float(sets["signals.lambda"])))


Truth = Callable[[dict[str, Any]], float]


def write_results(
    folder: Path, sweep: Sweep, sets: dict[str, Any], seeds: range, truth: Truth = truth
) -> None:
    """What training and evaluation leave, drawn for every seed."""
    (folder / "evaluation").mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(json.dumps(sets))
    for arm in sweep.arms:
        found = {str(seed): _seed(folder, arm, sets, seed, truth(sets)) for seed in seeds}
        text = json.dumps({"arm": arm, "seeds": found})
        (folder / "evaluation" / f"{arm}.json").write_text(text)


def _seed(folder: Path, arm: str, sets: dict[str, Any], seed: int, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(derive_seed(0, json.dumps(sets, sort_keys=True), seed))
    share += rng.normal(0, 0.02)

    def panel() -> dict[str, list[int]]:
        return {f"game {i}": [int(v) for v in rng.random(3) < share] for i in range(GAMES)}

    run = folder / "runs" / arm / f"seed-{seed}"
    (run / "buffer").mkdir(parents=True, exist_ok=True)
    (run / "buffer" / "events.jsonl").write_text("")
    row = {
        "iteration": 0, "status/ok": 10.0, "status/truncated": 6.0, "episode_steps": 5.0, "votes": 20.0,
        "band_coverage": 0.5,
    }  # fmt: skip
    (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    return {
        "in_domain": panel(),
        "out_of_domain": panel(),
        "rm_process": {"game 0": {"good": [3, 4], "bad": [2, 4]}},
        "rm_outcome": {"game 0": [5, 8]},
        "accepted_tasks": int(rng.integers(5, 20)),
    }


def play(board: Board, truth: Truth = truth, *, confirm: bool = True) -> list[FrozenTrial]:
    """Run the whole budget with drawn results, each point once; `confirm`: the winner and baselines on fresh seeds."""
    sweep = board.sweep
    while True:
        with board.study.lock():
            trial = board.study.ask()
        if trial is None:
            break
        twin = board.same_point(trial.number)
        if twin is not None:
            board.study.note(trial.number, same_as=board.source(twin.number))
            board.study.tell(trial.number, twin.values, TrialState.COMPLETE)
            continue
        sets = trial.user_attrs[SETS]
        write_results(board.trial(trial.number), sweep, sets, range(sweep.seeds), truth)
        board.study.note(trial.number, seconds=60.0)
        board.study.tell(trial.number, board.objectives(trial.number), TrialState.COMPLETE)
    for number in board.to_confirm() if confirm else ():
        seeds = range(sweep.seeds + sweep.confirm)
        write_results(board.fresh.folder(number), sweep, board.sets(number), seeds, truth)
    return board.study.trials()


class Forked(workers.Child):
    """A command as a worker starts it, in a process that is forked from a server, which has imported everything.

    To import takes longer than to train. Its output is this process's."""

    returncode: int | None = None

    def poll(self) -> int | None:
        if not self._process.is_alive():
            self.returncode = self.result()
        return self.returncode


def forked(root: Path, command: Sequence[str], log: Path, _inherit: Sequence[int]) -> Forked:
    log.touch()
    return Forked(workers.await_starter(), main, [["--root", str(root), *command]])
