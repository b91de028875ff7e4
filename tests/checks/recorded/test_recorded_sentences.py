"""What the pages say of recorded studies in sentences follows from the records."""

from __future__ import annotations

import json
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from recorded_cases import CHECKS, SUCCESS, Numbers, percent, pool_rows, said, written

from rlanything.config import parse
from rlanything.files.yaml_file import read_mapping


@cache
def numbers(name: str) -> dict[str, SimpleNamespace]:
    """A study's arms in percent (accepted tasks as they are), and its hypotheses as `h`, in points.

    `first`, `third` and `last` are sixths of the training of `full`.
    """
    found = json.loads((CHECKS / name / "study.json").read_text())
    arms = {arm: percent(metrics) for arm, metrics in found["arms"].items()}
    rows = {
        key: {k: v * (1 if k.startswith("p") else 100) for k, v in row["difference"].items()}
        for key, row in found["hypotheses"].items()
    }
    asked = SimpleNamespace(**{key: SimpleNamespace(**row) for key, row in rows.items()})
    parts = [
        percent({key: part[key] for key in ("accepted", "accuracy", "band")})
        for part in found.get("rewriting", {}).get("full", ())
    ]
    sixths = {"first": parts[0], "third": parts[2], "last": parts[-1]} if parts else {}
    return arms | sixths | {"h": asked}


SENTENCES = {
    "table1": (
        "agree with outcomes {h.reward_outcome.mean:.1f} points more often (p {h.reward_outcome.p:.3f})",
        "is not excluded either (p at least {h.tasks_in_domain.p_smallest:.2f} after",
    ),
    "study": (
        "Votes alone solve {step_only.in_domain:.1f} %, little more than the untrained policy "
        "({base.in_domain:.1f}) and",
        "(`oracle_75`) reaches {oracle_75.in_domain:.1f}, a perfect one "
        "{oracle_100.in_domain:.1f}, the reward model {policy.in_domain:.1f}.",
        "perfect votes are {oracle_100.in_domain - outcome.in_domain:.1f} points above outcomes here",
    ),
    "weak_reward": (
        "Balanced, {base.rm_process:.1f} % become {policy_reward.rm_process:.1f} %. Agreement with "
        "outcomes rises from {base.rm_outcome:.1f} to {policy_reward.rm_outcome:.1f} %.",
        "does, {base.rm_process_plain:.1f} % become {policy_reward.rm_process_plain:.1f} %. The paper has",
        "above 3 points is open (p {h.reward_process.p_smallest:.2f})",
        "({base.rm_process:.1f} -> {policy_reward.rm_process:.1f}, `weak_reward`)",
    ),
    "weak_reward_faster": (
        "Balanced, {base.rm_process:.1f} % become {policy_reward.rm_process:.1f} %. Counted "
        "plainly, {base.rm_process_plain:.1f} % become {policy_reward.rm_process_plain:.1f} %.",
        "it solves {policy.in_domain:.1f} % in-domain. With the one that learns it solves "
        "{policy_reward.in_domain:.1f} %.",
    ),
    "weak_reward_spread": (
        "above 3 points is clear too (p {h.frozen_in_domain.p_smallest:.3f})",
        "A loss of 6.7 points is not refuted (p {h.harm.p_smallest:.2f})",
    ),
    "pairwise": (
        "solves {policy_reward.in_domain:.1f} %, beside the frozen one {policy.in_domain:.1f} % "
        "(the base {base.in_domain:.1f} %)",
        "clearly above 3 points (p {h.harm.p_smallest:.3f})",
        "from {base.rm_process:.1f} to {policy_reward.rm_process:.1f} % (balanced), pairwise "
        "accuracy from {base.rm_pairwise:.1f} to {policy_reward.rm_pairwise:.1f} %, outcome "
        "accuracy from {base.rm_outcome:.1f} to {policy_reward.rm_outcome:.1f} %.",
        "about as little as `policy_reward` ({policy_learned.out_of_domain:.1f} and "
        "{policy_reward.out_of_domain:.1f} %). In-domain it lies between the two "
        "({policy_learned.in_domain:.1f} %)",
        "With three votes pairwise accuracy rose by {policy_reward.rm_pairwise - base.rm_pairwise:.1f} "
        "points",
    ),
    "pairwise_votes": (
        "of the same reward models it fell by {base.rm_pairwise - policy_reward.rm_pairwise:.1f}.",
    ),
    "many_votes": (
        "In the other study it fell from {base.rm_pairwise:.1f} to {policy_reward.rm_pairwise:.1f} %.",
    ),
    "votes_alone": (
        "solves {policy_reward_mixed.in_domain:.1f} % and not {policy_reward.in_domain:.1f} %, "
        "beside the frozen one {policy_mixed.in_domain:.1f} and {policy.in_domain:.1f} %.",
        "a loss of 3 points is not refuted (p {h.left.p_smallest:.3f})",
        "(p {h.remedy_in_domain.p_smallest:.3f} in-domain, {h.remedy_out_of_domain.p_smallest:.3f} "
        "out-of-domain)",
        "costs 3 points is not refuted (p {h.price.p_smallest:.4f})",
        "rises from {base.rm_process:.1f} % to {policy_reward.rm_process:.0f} or "
        "{policy_reward_mixed.rm_process:.0f} % (balanced), pairwise accuracy from "
        "{base.rm_pairwise:.1f} % to {policy_reward.rm_pairwise:.0f} to "
        "{policy_reward_mixed.rm_pairwise:.0f} %.",
    ),
    "below_chance": (
        "begins at {base.rm_process:.1f} % of balanced process accuracy, and "
        "{base.rm_process_plain:.1f} % counted plainly",
        "(p {h.paper.p_smallest:.3f}), and just not with `mixed` (p {h.learning_in_domain.p_smallest:.3f})",
        "right on {base.rm_process:.1f} % of the steps (balanced), learned to be right on "
        "{policy_reward.rm_process:.1f} %. Counted as in the paper it begins at {base.rm_process_plain:.1f} %",
        "({policy_reward.in_domain:.1f} and {outcome.in_domain:.1f} %). With it, it solves "
        "{policy_reward_mixed.in_domain:.1f} %",
        "In below_chance it rose from {base.rm_pairwise:.1f} to {policy_reward.rm_pairwise:.1f} %, and",
        "({base.rm_process:.1f} -> {policy_reward.rm_process:.1f}, `below_chance`)",
    ),
    "table1_fit": (
        "and not out-of-domain (p {h.votes_out_of_domain.p_smallest:.3f}). For the whole loop it is clear in both "
        "(out-of-domain p {h.whole_out_of_domain.p_smallest:.3f}).",
        "| `outcome` | {outcome.in_domain:.1f} | {outcome.out_of_domain:.1f} | | `policy` | "
        "{policy.in_domain:.1f} | {policy.out_of_domain:.1f} | | `policy_reward` | "
        "{policy_reward.in_domain:.1f} | {policy_reward.out_of_domain:.1f} | | `full` | "
        "{full.in_domain:.1f} | {full.out_of_domain:.1f} | | perfect votes | "
        "{oracle_100.in_domain:.1f} | {oracle_100.out_of_domain:.1f} |",
    ),
    "paper_start": (
        "begins at {base.rm_process:.1f} % of balanced process accuracy, and {base.rm_process_plain:.1f} % counted",
        "above the 10 points on steps (p {h.whole_process.p_smallest:.3f})",
        "| `policy` | {policy.in_domain:.1f} | {policy.out_of_domain:.1f} | {policy.rm_process:.1f} | "
        "| `policy_reward` | {policy_reward.in_domain:.1f} | {policy_reward.out_of_domain:.1f} | "
        "{policy_reward.rm_process:.1f} | | `full` | {full.in_domain:.1f} | {full.out_of_domain:.1f} | "
        "{full.rm_process:.1f} |",
    ),
    "paper_start_mixed": (
        "each of 3 points (p {h.reward_in_domain.p_smallest:.3f} and {h.tasks_in_domain.p_smallest:.3f}).",
        "| `policy_mixed` | {policy_mixed.in_domain:.1f} | {policy_mixed.out_of_domain:.1f} | "
        "{policy_mixed.rm_process:.1f} | "
        "| `policy_reward_mixed` | {policy_reward_mixed.in_domain:.1f} | {policy_reward_mixed.out_of_domain:.1f} | "
        "{policy_reward_mixed.rm_process:.1f} | | `full_mixed` | {full_mixed.in_domain:.1f} | "
        "{full_mixed.out_of_domain:.1f} | "
        "{full_mixed.rm_process:.1f} |",
    ),
    "paper_start_lambda": (
        "| `outcome` | {outcome.in_domain:.1f} | {outcome.out_of_domain:.1f} | – | "
        "| `policy` | {policy.in_domain:.1f} | {policy.out_of_domain:.1f} | {policy.rm_process:.1f} | "
        "| `policy_reward` | {policy_reward.in_domain:.1f} | {policy_reward.out_of_domain:.1f} | "
        "{policy_reward.rm_process:.1f} | | `full` | {full.in_domain:.1f} | {full.out_of_domain:.1f} | "
        "{full.rm_process:.1f} | | `full_mixed` | {full_mixed.in_domain:.1f} | {full_mixed.out_of_domain:.1f} | "
        "{full_mixed.rm_process:.1f} |",
    ),
    "lambda_and_mixed": (
        "`mixed` adds {h.mixed_with_smaller_lambda.mean:.1f} points with lambda 0.3 and "
        "{h.mixed_with_lambda_one.mean:.1f} with lambda 1; with `mixed`, lambda 0.3 adds "
        "{h.lambda_with_mixed.mean:.1f} over lambda 1",
        "| `base` | {base.in_domain:.1f} | {base.out_of_domain:.1f} | {base.rm_process:.1f} | | `base_cooled` | "
        "{base_cooled.in_domain:.1f} | {base_cooled.out_of_domain:.1f} | – | | `outcome` | {outcome.in_domain:.1f} | "
        "{outcome.out_of_domain:.1f} | – | | `full` | {full.in_domain:.1f} | {full.out_of_domain:.1f} | "
        "{full.rm_process:.1f} | | `full_mixed` | {full_mixed.in_domain:.1f} | {full_mixed.out_of_domain:.1f} | "
        "{full_mixed.rm_process:.1f} | | `full_one` | {full_one.in_domain:.1f} | {full_one.out_of_domain:.1f} | "
        "{full_one.rm_process:.1f} | | `full_one_mixed` | {full_one_mixed.in_domain:.1f} | "
        "{full_one_mixed.out_of_domain:.1f} | {full_one_mixed.rm_process:.1f} |",
    ),
    "larger_models": (
        "| `outcome` | {outcome.in_domain:.1f} | {outcome.out_of_domain:.1f} | – | – | | `policy` | "
        "{policy.in_domain:.1f} | {policy.out_of_domain:.1f} | {policy.rm_process:.1f} | – | | `full` | "
        "{full.in_domain:.1f} | {full.out_of_domain:.1f} | {full.rm_process:.1f} | {full.accepted_tasks:.1f} |",
    ),
    "strong_reward_faster": (
        "In-domain a gain of 3 points is refuted (p {h.reward_in_domain.p_smallest:.3f}).",
        "The base judges {base.rm_process:.1f} % of the steps rightly (balanced), after training "
        "{policy_reward.rm_process:.1f} %. Pairs of steps fall from {base.rm_pairwise:.1f} to "
        "{policy_reward.rm_pairwise:.1f} %",
    ),
    "votes_apart": (
        "from the advantages alone is refuted (p {h.advantages_in_domain.p_smallest:.3f}).",
        "clear in both panels (p {h.votes_in_domain.p_smallest:.3f} and {h.votes_out_of_domain.p_smallest:.3f}).",
    ),
    "arms_fit": (
        "for independent errors (p <0.001), and barely for shared ones (p {h.biased_votes.p_smallest:.4f}).",
        "Votes alone solve {step_only.in_domain:.1f} %, outcomes alone {outcome.in_domain:.1f} %. The untrained "
        "policy solves {base.in_domain:.1f} %.",
        "The cooled base solves {base_cooled.in_domain:.1f} % too",
    ),
    "slow_learning": (
        "({base.rm_process:.1f} -> {policy_reward.rm_process:.1f}, `slow_learning`)",
        "and here, slowly, from {base.rm_pairwise:.1f} to {policy_reward.rm_pairwise:.1f} %.",
    ),
    "fast_learning": (
        "({base.rm_process:.1f} -> {policy_reward.rm_process:.1f}, `fast_learning`)",
        "hardly changes there: {base.rm_pairwise:.1f} to {policy_reward.rm_pairwise:.1f} % of the pairs",
    ),
    "rewriting": (
        "{full.accepted_tasks:.1f} are accepted in a seed of 48 slots, 9 to 13 in every five iterations",
        "on accepted tasks rises from {first.accuracy:.0f} to {last.accuracy:.0f} %.",
        "in the band falls from {first.band:.0f} to {last.band:.0f} %.",
        "A gain of 3 points in-domain is refuted (p {h.rewriting_in_domain.p_smallest:.3f})",
    ),
    "long": (
        "in the paper's order ({outcome.in_domain:.1f}, {policy.in_domain:.1f}, {full.in_domain:.1f})",
        "from {first.accuracy:.0f} % in the first ten iterations to {third.accuracy:.0f} % in the third ten",
        "falls**, from {first.band:.0f} % to {last.band:.0f} %",
        "(p {h.reward_outcome.p:.3f}), which is too small to matter",
    ),
    "transfer": (
        "`policy` solves {policy.in_domain - base_cooled.in_domain:.0f} points more than the "
        "cooled base, on the held-out types {base_cooled.held_out - policy.held_out:.0f} less",
        "are open (p {h.votes_in_domain.p:.2f})",
        "is that on trained ones ({base.rm_process_plain_held_out_reward:.1f} and "
        "{base.rm_process_plain_reward_panel:.1f})",
    ),
}
"""Study -> what the pages say of it, its numbers left open."""


@pytest.mark.parametrize(
    ("name", "sentence"), [(name, text) for name, texts in SENTENCES.items() for text in texts]
)
def test_a_sentence_has_the_numbers_of_its_study(name, sentence):
    assert Numbers().vformat(sentence, (), numbers(name)) in said(
        "docs/studies.md", "docs/study_records.md", "README.md"
    )


def gains(arm: str, over: str, metric: str) -> dict[str, dict[str, Any]]:
    """Experiment -> its difference of two arms, of the pooled ones."""
    (row,) = (r for r in pool_rows() if (r["arm"], r["over"], r["metric"]) == (arm, over, metric))
    return {one["experiment"].removeprefix("checks/"): one for one in row["differences"]}


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def test_what_a_reward_model_that_learns_costs_where_it_does_not_begin_below_chance_and_learns_fast():
    found = gains("policy_reward", "policy", "in_domain")
    rate = {name: parse(read_mapping(CHECKS / name / "params.yaml")).learn.reward.lr for name in found}
    fast = {name for name in found if rate[name] >= 1e-4 and found[name]["first_reward"] > 0.5}
    lost = [-100 * found[name]["mean"] for name in fast if found[name]["high"] < 0]
    range_of = f"{min(lost):.0f} to {max(lost):.0f}"
    often = f"in {WORDS[len(lost)]} of {WORDS[len(fast)]} other studies"
    assert f"{often} it cost {range_of}." in said("README.md")
    at_five_times = [
        -100 * found[name]["mean"] for name in fast if rate[name] < 2e-4 and found[name]["high"] < 0
    ]
    low, high = f"{min(at_five_times):.0f}", f"{max(at_five_times):.0f}"
    assert f"| -{low} to -{high} |" in said("docs/studies.md")
    below = {"paper_start", "paper_start_lambda", "below_chance"}
    named = {*below, "weak_reward_faster", "pairwise", "votes_alone", "fast_learning"}
    others = [100 * found[name]["mean"] for name in found if name not in named]
    ends = f"between {min(others):.1f} and {max(others):+.1f}."
    assert f"The other {WORDS[len(others)]}, two of them fast too, lie {ends}" in said(
        "docs/check_results.md"
    )
    assert len(fast - named) == 2


def test_the_seeds_and_hypotheses_of_a_study():
    page = said("docs/studies.md", "docs/study_records.md")
    listed = re.findall(r"\| ((?:\[`\w+`\]\(\S+\)(?:, )?)+) \| ([\d, ]+) \|", page)
    seeds = {
        name: int(number)
        for names, numbers in listed
        for name, number in zip(re.findall(r"`(\w+)`", names), numbers.split(", "), strict=True)
    }
    published = {path.parent.name for path in CHECKS.glob("*/study.json")}
    assert published <= set(seeds)
    asked = 0
    for section in page.split("## Result")[1:]:
        _, *records = re.split(r"`checks/(\w+)/` holds the record", section)
        for name, text in zip(records[::2], records[1::2], strict=True):
            found = json.loads((CHECKS / name / "study.json").read_text())
            declared = found["declared"]
            assert seeds[name] == declared["seeds"], name
            own = re.search(r"`seed=(\d+)`", text) if records[::2] == [name] else None
            assert own is None or f"seed={own[1]}" in declared["overrides"], name
            number = re.search(r"(?:all|`,|,) (\d+) hypotheses", text)
            assert number is None or int(number[1]) == len(found["hypotheses"]), name
            asked += number is not None
    assert asked >= 10


@pytest.mark.parametrize("name", ["table1", "long"])
def test_a_table_with_two_panels_has_the_hypotheses_about_success(name):
    """Some rows have no p."""
    section = (
        said("docs/study_records.md").split(f"`checks/{name}/` holds the record")[1].split("## Result")[0]
    )
    rows = re.findall(r"([+-]\d\S+ \[\S+ \S+\])(?:, p (\S+))?: (holds|refuted[^|]*|open) \|", section)
    found = json.loads((CHECKS / name / "study.json").read_text())["hypotheses"].values()
    about = [row for row in found if row["metric"] in SUCCESS]
    assert len(rows) == len(about)
    for interval, p, verdict in rows:
        (row,) = (row for row in about if written(row["difference"]) == interval)
        assert verdict == row["verdict"]
        value = row["difference"]["p"]
        assert not p or p == (f"{value:.3f}" if value < 0.1 else f"{value:.2f}")
