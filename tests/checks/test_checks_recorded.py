"""What docs/checks.md says of the recorded study beyond its page follows from its stored results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
BASE = ROOT / "checks" / "study" / "evaluation" / "base.json"


def test_the_reward_models_errors_are_mostly_the_same_in_every_draw_of_votes():
    """Each seed judges the same steps with votes of its own.

    A count of right verdicts is a sum over steps, so its variance over seeds is the sum of p (1 - p), p being a step's
    probability of a right verdict. Twice that is how often two draws disagree.
    """
    seeds = json.loads(BASE.read_text())["seeds"].values()
    counts = [[[task[c] for c in ("good", "bad")] for task in s["rm_process"].values()] for s in seeds]
    hits, steps = np.moveaxis(np.array(counts, dtype=float), -1, 0)
    assert (steps == steps[0]).all()
    total = steps[0].sum()
    wrong, variance = 1 - hits.sum((1, 2)).mean() / total, hits.var(0, ddof=1).sum() / total
    said = " ".join((ROOT / "docs" / "checks.md").read_text().split())
    assert f"another draw misjudges {100 * (1 - variance / wrong):.0f} %" in said
    assert f"where independent errors would be {100 * wrong:.0f} %" in said
    assert (
        f"disagree on {200 * variance:.1f} % of the steps and not on {200 * wrong * (1 - wrong):.0f} %"
        in said
    )


def test_a_majority_of_three_votes_of_which_every_fourth_is_wrong():
    wrong = 0.25**3 + 3 * 0.25**2 * 0.75
    assert f"is wrong on {100 * wrong:.1f} % of the steps" in (ROOT / "docs" / "checks.md").read_text()
