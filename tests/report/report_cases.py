"""A made-up project: evaluation and metrics files with known effects, written where the report looks for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlanything.config import Config, parse

if TYPE_CHECKING:
    from rlanything.report.report_data import ReportData

GAINS = {"base": 0.0, "outcome": 0.5, "policy": 0.7, "policy_reward": 0.9, "full": 1.2}
"""Log-odds above the base."""
RM = {"policy_reward": 0.06, "full": 0.1}
SWITCHES = {
    "outcome": (False, False, False),
    "policy": (True, False, False),
    "policy_reward": (True, True, False),
    "full": (True, True, True),
}


def config(**changes: Any) -> Config:
    """A small valid configuration; `changes` replace whole sections."""
    supervised = {"episodes": 8, "steps": 8}
    data: dict[str, Any] = {
        "seed": 7,
        "scale": "smoke",
        "env": {
            "_target_": "envs.alfworld.family.AlfworldFamily",
            "_code_": "envs/alfworld",
            "secret": "do not print",
        },
        "engine": {"_target_": "rlanything.engines.native.NativeEngine"},
        "tasks": {
            "train": 16,
            "panels": {
                "in_domain": {"tasks": 24, "measures": ["policy"]},
                "out_of_domain": {"tasks": 24, "measures": ["policy"]},
                "reward_panel": {"tasks": 12, "measures": ["reward"]},
            },
        },
        "model": {
            "embedded": {},
            **{role: {"path": f"models/{role}"} for role in ("policy", "reward", "adapter")},
            "prompts": "experiments/prompts/embedded",
            "action_format": "verbatim",
        },
        "bootstrap": dict.fromkeys(("policy", "reward", "adapter"), supervised),
        "rollout": {"tasks": 8},
        "judge": {},
        "signals": {"lambda": 0.5},
        "adaptation": {"max_tokens": 48},
        "learn": {},
        "arms": {
            arm: {"step_votes": votes, "train_reward": reward, "adapt": adapt}
            for arm, (votes, reward, adapt) in SWITCHES.items()
        },
        "train": {"iterations": 24, "seeds": 3},
        "evaluate": {},
    }
    return parse({**data, **changes})


def evaluation(arm: str, seeds: int = 3, tasks: int = 24, repeats: int = 3) -> dict[str, Any]:
    """The evaluation file of an arm: outcomes follow the task's difficulty plus the arm's gain."""
    panel = np.random.default_rng(1).normal(0.0, 1.0, size=(2, tasks)) - 0.4
    found = {str(seed): _seed(arm, seed, panel, repeats) for seed in range(seeds)}
    return {"arm": arm, "seeds": found}


def judged(good: int, bad: int) -> dict[str, object]:
    """A judge's labels: verdicts that agree with them on `good` of six good steps and `bad` of two bad ones."""
    left_out = {"labelled": 8, "ties": 1, "invalid": 2, "unasked": 0}
    return {"rm_process": {"t": {"good": [good, 6], "bad": [bad, 2]}}, "left_out": left_out}


def _seed(arm: str, seed: int, panel: np.ndarray, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng([len(arm), seed])
    odds = panel + GAINS.get(arm, 0.3) + 0.1 * rng.normal() * (arm != "base")
    outcomes = rng.random((*odds.shape, repeats)) < (1 / (1 + np.exp(-odds)))[..., None]
    skill = 0.66 + RM.get(arm, 0.0)
    judge = rng if arm in RM else np.random.default_rng(seed)
    hits = judge.binomial(30, skill, size=(12, 3)).tolist()
    rates = outcomes.mean(axis=(1, 2))
    accepted = int(rng.integers(90, 110)) if arm == "full" else 0
    return {
        "in_domain": {f"in-{t}": outcomes[0, t].astype(int).tolist() for t in range(odds.shape[1])},
        "out_of_domain": {f"out-{t}": outcomes[1, t].astype(int).tolist() for t in range(odds.shape[1])},
        "rm_process": {f"rm-{t}": {"good": [2 * g, 60], "bad": [b, 30]} for t, (g, b, _) in enumerate(hits)},
        "rm_pairwise": {f"rm-{t}": [g + o, 60] for t, (g, _, o) in enumerate(hits)},
        "rm_outcome": {f"rm-{t}": [o, 30] for t, (_, _, o) in enumerate(hits)},
        "success_within": {
            name: [float(rate * k / 10) for k in range(1, 11)]
            for name, rate in zip(("in_domain", "out_of_domain"), rates, strict=True)
        },
        "accepted_tasks": accepted,
        **(
            {"solvable": {f"new-{t}": [0, 0, int(t % 9 != 0)] if t % 20 else [] for t in range(accepted)}}
            if accepted
            else {}
        ),
    }


def metrics(arm: str, seed: int, iterations: int = 24) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl of a run that goes well."""
    rng = np.random.default_rng([len(arm), seed, 5])
    return [_line(arm, i, iterations, rng) for i in range(iterations + 1)]


def _line(arm: str, i: int, iterations: int, rng: np.random.Generator) -> dict[str, Any]:
    done, learned = i / iterations, 1 - np.exp(-3 * i / iterations)
    line: dict[str, Any] = {
        "iteration": i,
        "accepted_total": 4.0 * i + int(rng.integers(0, 4)) if arm == "full" else 0.0,
    }
    if i < iterations:
        line |= {
            "accuracy": 0.4 + 0.1 * learned + 0.04 * rng.normal(),
            "response_tokens": 6.0 + done,
            **({"accepted_accuracy": 0.5 - 0.1 * done} if arm == "full" and i else {}),
            "band_coverage": 0.5 + (0.2 * learned if arm == "full" else -0.1 * done) + 0.05 * rng.normal(),
            "proposals": 3.0,
            "invalid_proposals": 0.1,
            "accept_rate": float("nan") if i % 5 else 0.6,
        }
    if i < iterations and arm != "outcome":
        line |= {
            "mu": (mu := 1.2 + 0.15 * learned * (arm in RM) + 0.03 * rng.normal()),
            "mean_vote": 0.1,
            "invalid_votes": 0.01,
            **_votes(arm, mu, done),
        }
    if i % 6 == 0:
        gain = 0.23 * GAINS.get(arm, 0.3) * learned
        line |= {
            "panel/in_domain": 0.4 + gain + 0.03 * rng.normal(),
            "panel/out_of_domain": 0.36 + gain + 0.03 * rng.normal(),
        }
    if i % 6 == 0 and (i == 0 or arm in RM):
        skill = 0.66 + RM.get(arm, 0.0) * learned
        line |= {
            "panel/rm_process": (balanced := skill + 0.01 * rng.normal()),
            "panel/rm_process_plain": balanced - 0.02,
            "panel/rm_pairwise": balanced + 0.05,
            "panel/rm_outcome": skill - 0.05 + 0.01 * rng.normal(),
        }
    return line


def _votes(arm: str, mu: float, done: float) -> dict[str, float]:
    """What follows from the votes of an iteration, and what an arm that trains its reward model learns from."""
    return {
        "p_plus": (mu + 0.1) / 2,
        "p_minus": (mu - 0.1) / 2,
        "precision": 0.4 + 0.05 * done,
        "precision_bound": 0.03,
        "unanimous": 0.8 - 0.1 * done,
        "votes": 960.0,
        "reward_tokens": 1920.0,
        **({"task_force_ratio": 0.5 + done, "one_sided_tasks": 0.2} if arm in RM else {}),
    }


def rollouts(arm: str, iteration: int) -> list[dict[str, Any]]:
    """The stored lines of an iteration: two tasks of which one succeeds. The votes on the other rise."""
    good = min(3, iteration // 2 + (arm == "full"))
    verdicts = {0: [1] * good + [-1] * (3 - good), 1: [1, 1, None]}
    return [
        {
            "proposal": False,
            "trajectory": {"task_id": f"{slot}" * 64, "slot": slot, "outcome": 2 * slot - 1, "status": "ok"},
            "judgements": [{"votes": [{"verdict": v} for v in verdicts[slot]]} for _ in range(2)],
        }
        for slot in (0, 1)
    ]


def write_rollouts(root: Path, arm: str, seed: int, iterations: int = 6) -> None:
    """runs/<arm>/seed-<n>/rollouts/, with an empty file for the iteration that only measures."""
    folder = root / "runs" / arm / f"seed-{seed}" / "rollouts"
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(iterations + 1):
        lines = rollouts(arm, i) if i < iterations else []
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"iter_{i + 1:04d}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def write_evaluation(root: Path, data: dict[str, Any]) -> Path:
    """evaluation/<arm>.json"""
    path = root / "evaluation" / f"{data['arm']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def cooled(root: Path, arms: tuple[str, ...] = tuple(GAINS)) -> ReportData:
    """What the report of a project is made from whose base was measured at its best temperature too."""
    from rlanything.report.report_data import gathered
    from rlanything.report.results.evaluations import read_evaluations

    project(root, arms)
    shares = {"1.0": 0.2, "0.5": 0.4, "0.2": 0.3}
    write_evaluation(root, {**evaluation("base_cooled"), "temperature": 0.5, "shares": shares})
    return gathered(config(), root, read_evaluations(root, ("base_cooled", *config().arms)))


def write_metrics(root: Path, arm: str, seed: int, lines: list[dict[str, Any]]) -> Path:
    """runs/<arm>/seed-<n>/metrics.jsonl"""
    path = root / "runs" / arm / f"seed-{seed}" / "metrics.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def project(root: Path, arms: tuple[str, ...] = tuple(GAINS), seeds: int = 3) -> Path:
    """A whole project with the inputs of the report."""
    for arm in arms:
        write_evaluation(root, evaluation(arm, seeds))
        for seed in range(seeds if arm != "base" else 0):
            write_metrics(root, arm, seed, metrics(arm, seed))
            if arm != "outcome":
                write_rollouts(root, arm, seed)
    return root


GOLDEN = Path(__file__).parent / "golden"


def steady(markdown: str) -> str:
    """The document without its list of settings, which changes with every new setting."""
    before, rest = markdown.split("## Settings\n", 1)
    return before + rest[rest.index("## How to read this") :]


def regenerate() -> None:
    """Rewrite the golden files: `python tests/report/report_cases.py`, then look at the difference."""
    import tempfile

    from rlanything.report import document, exports
    from rlanything.report.report_data import gather

    with tempfile.TemporaryDirectory() as folder:
        material = gather(config(), project(Path(folder)))
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / "summary.json").write_text(exports.summary_json(material.cells))
    (GOLDEN / "report.md").write_text(steady(document.report_md(material)))


if __name__ == "__main__":
    regenerate()
