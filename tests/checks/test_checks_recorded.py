"""What the pages of studies and docs/check_results.md say of recorded studies follows from their stored results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CHECKS = ROOT / "checks"
TABLES = (
    *(
        "study",
        "table1_fit",
        "votes_apart",
        "paper_start",
        "paper_start_mixed",
        "paper_start_lambda",
        "lambda_and_mixed",
        "arms_fit",
        "weak_reward",
        "weak_reward_faster",
        "weak_reward_spread",
        "strong_reward_faster",
        "rewriting",
    ),
    *("pairwise", "pairwise_votes", "many_votes", "votes_alone", "below_chance"),
    *("slow_learning", "fast_learning", "five_times", "five_times_fit", "larger_models", "coding_table1"),
)
"""Studies of which docs/study_records.md has every hypothesis in a row: difference with its interval, p, verdict."""


def said() -> str:
    """The words of the pages of studies and of docs/check_results.md, with single spaces."""
    pages = (
        (ROOT / "docs" / page).read_text() for page in ("studies.md", "study_records.md", "check_results.md")
    )
    return " ".join(" ".join(pages).split())


def errors(study: str) -> tuple[float, float]:
    """Of the base's reward model: the share of steps that it misjudges, and how often two draws of votes disagree.

    Each seed judges the same steps with votes of its own. A count of right verdicts is a sum over steps, so its
    variance over seeds is the sum of p (1 - p), p being a step's probability of a right verdict. Twice that is how
    often two draws disagree.
    """
    base = CHECKS / study / "evaluation" / "base.json"
    seeds = json.loads(base.read_text())["seeds"].values()
    counts = [[[task[c] for c in ("good", "bad")] for task in s["rm_process"].values()] for s in seeds]
    hits, steps = np.moveaxis(np.array(counts, dtype=float), -1, 0)
    assert (steps == steps[0]).all()
    total = steps[0].sum()
    return 1 - hits.sum((1, 2)).mean() / total, 2 * hits.var(0, ddof=1).sum() / total


@pytest.mark.parametrize("study", ["study", "weak_reward"])
def test_how_far_the_reward_models_errors_are_the_same_in_every_draw_of_votes(study):
    wrong, apart = errors(study)
    again, independent = 100 * (1 - apart / 2 / wrong), 100 * wrong
    assert (
        f"another draw misjudges {again:.0f} %, where independent errors would be {independent:.0f} %"
        in said()
    )


def test_how_often_two_draws_of_votes_disagree():
    wrong, apart = errors("study")
    chance = 200 * wrong * (1 - wrong)
    assert f"disagree on {100 * apart:.1f} % of the steps and not on {chance:.0f} %" in said()


def test_a_majority_of_three_votes_of_which_every_fourth_is_wrong():
    wrong = 0.25**3 + 3 * 0.25**2 * 0.75
    assert f"is wrong on {100 * wrong:.1f} % of the steps" in said()


@pytest.mark.parametrize("study", TABLES)
def test_a_table_has_every_hypothesis_with_its_numbers(study):
    found = json.loads((CHECKS / study / "study.json").read_text())["hypotheses"].values()
    after = said().split(f"`checks/{study}/` holds the record")[1]
    section = re.split("## Result|holds the record", after)[0]
    rows = re.findall(r"\| (\S+ \[\S+ \S+) \| (\S+) \| ((?:holds|refuted|open)[^|]*) \|", section)
    assert sorted(rows) == sorted(map(row, found))


def test_the_reward_models_that_were_asked_for_many_votes_came_out_of_the_same_training():
    first, again = (
        json.loads((CHECKS / study / "evaluation" / "policy_reward.json").read_text())["seeds"]
        for study in ("pairwise", "pairwise_votes")
    )
    played = ("in_domain", "out_of_domain", "episode_steps")
    assert [[s[key] for key in played] for s in first.values()] == [
        [s[key] for key in played] for s in again.values()
    ]


def row(hypothesis: dict) -> tuple[str, str, str]:
    """What stands in the table."""
    points = hypothesis["difference"]
    mean, low, high = (100 * points[key] for key in ("mean", "low", "high"))
    p = points["p"]
    small = "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]", small, hypothesis["verdict"]


def of_votes() -> dict[str, tuple[float, float]]:
    """Experiment -> what `policy` gains over `outcome` in-domain: the lower end, and p by the experiment's own Holm.

    One that asked no such question in its study has p 1.
    """
    pooled = json.loads((CHECKS / "pool" / "pool.json").read_text())["comparisons"]
    key = ("policy", "outcome", "in_domain")
    (row,) = (one for one in pooled if (one["arm"], one["over"], one["metric"]) == key)
    return {
        one["experiment"]: (one["low"], own_p(ROOT / one["experiment"], key)) for one in row["differences"]
    }


def own_p(folder: Path, key: tuple[str, str, str]) -> float:
    if (folder / "ladder.json").is_file():
        return json.loads((folder / "ladder.json").read_text())["panels"]["in_domain"]["policy"]["gain"]["p"]
    asked = json.loads((folder / "study.json").read_text())["hypotheses"].values()
    found = [h["difference"]["p"] for h in asked if (h["arm"], h["over"], h["metric"]) == key]
    return found[0] if found else 1.0


def test_in_how_many_experiments_votes_help():
    found = of_votes()
    words = (
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    )
    every, above = words[len(found) - 1], words[sum(low > 0 for low, _ in found.values()) - 1]
    clear = [name.removeprefix("checks/") for name, (_, p) in found.items() if p < 0.05]
    names = ", ".join(f"`{name}`" for name in clear)
    number = words[len(clear) - 1]
    assert f"Of {every} experiments {number} show it alone, by their own correction ({names})" in said()
    assert f"in {above} the interval is above 0" in said()
    readme = (ROOT / "README.md").read_text()
    assert (
        f"Alone, {number} of the {every} experiments show it clearly in-domain, and so do the runs above"
        in readme
    )
