"""What the pages say in sentences of reports, and of checks of finished runs, has the numbers of the records."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from recorded_cases import ROOT, Numbers, percent, said


@cache
def report(folder: str) -> dict[str, SimpleNamespace]:
    """A report's arms in percent; `arm_over_other` has differences in points, and p as `metric_p`."""
    found = json.loads((ROOT / folder / "summary.json").read_text())
    names = {arm: percent(metrics) for arm, metrics in found.items()}
    for arm, metrics in found.items():
        pairs: dict[str, dict[str, float]] = {}
        for metric, value in metrics.items():
            others = {**value.get("vs", {}), **({"base": value["vs_base"]} if value["vs_base"] else {})}
            for other, difference in others.items():
                row = pairs.setdefault(f"{arm}_over_{other}", {})
                row |= {metric: 100 * difference["mean"], f"{metric}_p": difference["p"]}
        names |= {pair: SimpleNamespace(**row) for pair, row in pairs.items()}
    return names


SENTENCES = {
    ("report", "README.md"): (
        "above the cooled base by {outcome_over_base_cooled.in_domain:.1f} points in-domain (p "
        "{outcome_over_base_cooled.in_domain_p:.2f}). Out-of-domain it is not clear "
        "({outcome_over_base_cooled.out_of_domain:+.1f} points, p {outcome_over_base_cooled.out_of_domain_p:.2f})",
        "by {policy_over_outcome.in_domain:.1f} to {full_over_outcome.in_domain:.1f} points "
        "(p at most {policy_over_outcome.in_domain_p:.2f} by Holm)",
        "({policy_reward_over_outcome.out_of_domain:+.1f} points, p {policy_reward_over_outcome.out_of_domain_p:.2f})",
    ),
    ("report/epyc", "README.md"): (
        "to {policy_over_outcome.in_domain:.1f} points to outcomes in-domain, and the whole loop",
        "to {full_over_outcome.in_domain:.1f}, each clearly.",
        "have {outcome_over_base_cooled.in_domain:.1f}, ",
    ),
    ("report/xeon-avx512-earlier", "README.md"): (
        "there votes add {policy_over_outcome.in_domain:.1f} to",
        "the whole loop {full_over_outcome.in_domain:.1f} to",
        ", {outcome_over_base_cooled.in_domain:.1f} and ",
    ),
    ("report/xeon-avx512", "README.md"): ("and {outcome_over_base_cooled.in_domain:.1f} points in-domain.",),
    ("report/xeon-avx512-earlier", "docs/default_experiment.md"): (
        "[+0.3, +8.5], p {outcome_over_base_cooled.in_domain_p:.2f} |",
        "[+5.0, +13.4], p {policy_over_outcome.in_domain_p:.3f} |",
        "[-8.3, +5.6], p {policy_reward_over_policy.in_domain_p:.2f} |",
        "[-8.5, +10.1], p {full_over_policy_reward.in_domain_p:.2f} |",
        "[+1.1, +16.1], p {full_over_outcome.in_domain_p:.2f} |",
    ),
    ("report/xeon-avx512", "docs/default_experiment.md"): (
        "[-5.7, +5.7], p {outcome_over_base_cooled.in_domain_p:.2f} |",
        "[+6.6, +17.8], p {policy_over_outcome.in_domain_p:.3f} |",
        "[-4.0, +10.7], p {policy_reward_over_policy.in_domain_p:.2f} |",
        "[-11.1, +7.9], p {full_over_policy_reward.in_domain_p:.2f} |",
        "[+5.4, +22.6], p {full_over_outcome.in_domain_p:.2f} |",
        "are in the second (p {full_over_outcome.out_of_domain_p:.3f} each)",
    ),
    ("report/epyc", "docs/default_experiment.md"): (
        "[-1.4, +9.9], p {outcome_over_base_cooled.in_domain_p:.2f} |",
        "[+7.4, +18.8], p {policy_over_outcome.in_domain_p:.3f} |",
        "[-4.0, +5.8], p {policy_reward_over_policy.in_domain_p:.2f} |",
        "[-8.1, +10.3], p {full_over_policy_reward.in_domain_p:.2f} |",
        "over `outcome` is {policy_over_outcome.out_of_domain_p:.3f} on the EPYC.",
    ),
    ("report/coding", "README.md"): (
        "For programs, unit tests by the reward model add {policy_over_outcome.in_domain:.0f} and",
        "Cooled, the base policy solves {base_cooled.in_domain:.1f} % of the in-domain problems. Outcomes bring "
        "{outcome.in_domain:.1f} %, written tests in addition {policy.in_domain:.1f} %",
        "the whole loop {full.in_domain:.1f} %",
        "in `full` {full.ut:.1f} % of its tests are right, of the base's {base.ut:.1f} %",
        ", p {full_over_base.ut_p:.2f})",
    ),
    ("report/coding", "docs/coding.md"): (
        "and {policy_over_outcome.out_of_domain:.1f} out-of-domain [+7.5, +32.2] (p "
        "{policy_over_outcome.out_of_domain_p:.3f})",
        "[+12.4, +34.4] (p {full_over_outcome.out_of_domain_p:.3f})",
        "The cooled base is {base_cooled_over_base.in_domain:.1f} points above the base in-domain, which is not "
        "clear, and {base_cooled_over_base.out_of_domain:.1f} out-of-domain (p "
        "{base_cooled_over_base.out_of_domain_p:.3f}). `outcome` is {outcome_over_base_cooled.in_domain:.1f} points "
        "above it in-domain (p < 0.001) and {outcome_over_base_cooled.out_of_domain:.1f} out-of-domain (p "
        "{outcome_over_base_cooled.out_of_domain_p:.3f})",
        "After the correction p is {full_over_base.ut_p:.2f}",
        "`full` accepts {full.accepted_tasks:.1f} rewrites on average",
    ),
    ("report/web", "README.md"): (
        "solves {base.in_domain:.1f} % of the tasks",
        "`full` solves {full.in_domain:.1f} %",
        "and {full.out_of_domain:.1f} % of kinds that it never saw",
        "Outcomes alone bring {outcome.in_domain:.1f} and {outcome.out_of_domain:.1f} %",
    ),
    ("report/web", "docs/gui.md"): (
        "above the base in-domain (p at most {policy_over_base.in_domain_p:.3f})",
        "process accuracy stays ({base.rm_process_plain:.1f} to {full.rm_process_plain:.1f} %). "
        "{full.accepted_tasks:.0f} rewrites are accepted in a run",
        "[-9.6, -0.7] (p {policy_reward_over_policy.in_domain_p:.2f})",
        "[+4.6, +13.4] (p {full_over_policy_reward.in_domain_p:.3f})",
    ),
}
"""Report and page -> what the page says of it, its numbers left open."""


@pytest.mark.parametrize(
    ("folder", "page", "sentence"),
    [(folder, page, text) for (folder, page), texts in SENTENCES.items() for text in texts],
)
def test_a_sentence_has_the_numbers_of_its_report(folder, page, sentence):
    assert Numbers().vformat(sentence, (), report(folder)) in said(page)


def test_what_is_called_clear_is_clear():
    """Arms that a page calls above another one have a corrected p below 0.05 there."""
    default, coding, web = (report(folder) for folder in ("report", "report/coding", "report/web"))
    for arm in ("policy", "policy_reward", "full"):
        assert default[f"{arm}_over_outcome"].in_domain_p < 0.05
        beyond = default[f"{arm}_over_outcome"].out_of_domain_p < 0.05
        assert beyond == (arm == "policy_reward")
        assert coding[f"{arm}_over_outcome"].in_domain_p < 0.05
        assert web[f"{arm}_over_outcome"].in_domain_p > 0.05
    assert default["outcome_over_base_cooled"].in_domain_p < 0.05
    assert default["outcome_over_base_cooled"].out_of_domain_p > 0.05
    for later, before in (("policy_reward", "policy"), ("full", "policy_reward")):
        assert default[f"{later}_over_{before}"].in_domain_p > 0.05
        assert default[f"{later}_over_{before}"].out_of_domain_p > 0.05
    assert max(abs(default[f"{arm}_over_base"].rm_process_plain) for arm in ("policy_reward", "full")) < 1


def test_what_is_called_clear_on_other_processors_is_clear():
    cooled = {"epyc": False, "xeon-avx512-earlier": True, "xeon-avx512": False}
    beyond = {"xeon-avx512": ("policy_reward", "full")}
    for name, clear in cooled.items():
        found = report(f"report/{name}")
        assert (found["outcome_over_base_cooled"].in_domain_p < 0.05) == clear
        for arm in ("policy", "policy_reward", "full"):
            assert found[f"{arm}_over_outcome"].in_domain_p < 0.05
            assert (found[f"{arm}_over_outcome"].out_of_domain_p < 0.05) == (arm in beyond.get(name, ()))
        for later, before in (("policy_reward", "policy"), ("full", "policy_reward")):
            assert found[f"{later}_over_{before}"].in_domain_p > 0.05


def corrupted(key: str) -> Iterator[dict[str, float]]:
    kinds = json.loads((ROOT / "checks" / "corruption" / "corruption.json").read_text())["kinds"]
    for arms in kinds.values():
        yield from (found["difference"] for row in arms.values() if (found := row[key]))


def widest(found: list[dict[str, float]], *keys: str) -> str:
    return f"{max(abs(100 * difference[key]) for difference in found for key in keys):.1f}"


def test_what_damage_changes():
    later, beyond = list(corrupted("loss")), [*corrupted("alarm_over_base"), *corrupted("loss_over_base")]
    page = said("docs/check_results.md")
    assert (
        f"no difference exceeds {widest(later, 'mean')} points, and no interval goes beyond "
        f"{widest(later, 'low', 'high')}." in page
    )
    assert (
        f"No difference from the base's reward model exceeds {widest(beyond, 'mean')} points, with intervals that "
        f"reach {widest(beyond, 'low', 'high')}."
    ) in page


def chosen(key: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    pairs = json.loads((ROOT / "report/coding/selection/selection.json").read_text())["pairs"]
    for arm, methods in pairs.items():
        yield from ((arm, name, row[key]) for name, row in methods.items() if row.get(key))


def test_what_choosing_among_programs_brings():
    methods = ("best_of_n", "mpsc", "s_star")
    over_base = [row for arm, name, row in chosen("over_base") if name in methods and arm != "outcome"]
    low, high = (f"{100 * end(row['mean'] for row in over_base):.1f}" for end in (min, max))
    page = said("docs/check_results.md")
    assert f"are {low} to {high} points above it (p at most {max(row['p'] for row in over_base):.3f})" in page
    over_single = [row for _, name, row in chosen("over_single") if name in methods]
    low, high = (f"{100 * end(row['mean'] for row in over_single):.0f}" for end in (min, max))
    p = max(row["p"] for row in over_single)
    assert (
        f"every method gains {low} to {high} points over a single program, with every pair (p at most {p:.3f})"
        in page
    )


def kinds(seed: int) -> tuple[int, Counter[str]]:
    """How many slots of a recorded run of `full` have another kind of task at the end, and what each kind gained."""
    text = (ROOT / "report" / "buffers" / f"full-seed-{seed}.html").read_text()
    changed = re.findall(r'"head": "task_type: (\w+) -\\u003e (\w+)"', text)
    gained = Counter(new for _, new in changed)
    gained.subtract(old for old, _ in changed)
    return len(changed), gained


def test_how_kinds_of_tasks_shift():
    found = [kinds(seed) for seed in range(4)]
    page = said("docs/check_results.md")
    assert f"counts another kind of task in {found[0][0]} of 57 replaced slots" in page
    first, *others, last = (gained["pick_two_obj_and_place"] for _, gained in found)
    assert f"has {54 + first} slots instead of 54" in page
    assert f"In the four runs it gains {first}, {', '.join(map(str, others))} and {last}." in page
    for way in ("heat", "cool", "clean"):
        assert all(gained[f"pick_{way}_then_place_in_recep"] < 0 for _, gained in found)
