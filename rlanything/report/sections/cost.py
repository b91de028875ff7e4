"""What a run cost in tokens and rows, phase by phase, and what its curves are worth at equal tokens."""

from __future__ import annotations

from rlanything.report import endpoints, tables
from rlanything.report.formatting import NONE, code, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import Run, total
from rlanything.report.results.equal_tokens import EqualTokens

COLUMNS = {
    "rollouts": ("status/ok", "status/truncated", "status/env_error", "status/timeout"),
    "rollout: tokens": ("policy_tokens",),
    "judge: votes": ("votes",),
    "judge: tests": ("tests",),
    "judge: tokens": ("reward_tokens",),
    "adapt: rewrites asked for": ("proposals",),
    "learn: rows of the policy": ("policy/rows",),
    "learn: rows of the reward model": ("reward/rows",),
}
"""Column -> the keys of metrics.jsonl that it adds up; one that no arm has is left out."""
WORDS = (
    "A run, mean over seeds: what was sampled and trained on, by phase. Measuring is not counted. Seconds differ from "
    "machine to machine and from day to day, so they are no part of a result and not on this page: "
    "`.rla/timings/<arm>/seed-<n>.jsonl` has those of the newest run by phase. Tokens of the adapter are not counted."
)


def cost(data: ReportData) -> str:
    """The section."""
    runs = {arm: list(found.values()) for arm, found in data.curves.items()}
    shown = [
        name
        for name, keys in COLUMNS.items()
        if any(key in run for found in runs.values() for run in found for key in keys)
    ]
    rows = [[code(arm), *(_mean(found, COLUMNS[name]) for name in shown)] for arm, found in runs.items()]
    table = f"{WORDS}\n\n{markdown_table(['arm', *shown], rows)}" if shown else "Nothing was trained.\n"
    return f"## Cost\n\n{table}{_equal_tokens(data)}{endpoints.section(data.config, data.curves)}"


def _mean(runs: list[Run], keys: tuple[str, ...]) -> str:
    sums = [sum(total(run, key) for key in keys) for run in runs if any(key in run for key in keys)]
    return f"{sum(sums) / len(sums):,.0f}" if sums else NONE


def _equal_tokens(data: ReportData) -> str:
    found = data.equal_tokens
    if found is None:
        return ""
    return (
        "\n### Accuracy at equal tokens\n\n"
        "An iteration costs one arm more tokens than another. Here every curve is read where its run had sampled as "
        f"many as the cheapest run did in all ({found.budget:,.0f}), on the line between two points, mean over seeds. "
        "Tokens are those that the policy and the reward model sampled while training; measuring is not counted, nor "
        f"are the adapter's replies.{_free_of_charge(data, found)}\n\n"
        + tables.token_table(found, data.contents)
    )


def _free_of_charge(data: ReportData, found: EqualTokens) -> str:
    """Which arms have a reward model whose training another arm's tokens have paid for."""
    sources = {arm: of.reward_from for arm, of in data.config.arms.items() if arm in found.arms}
    return "".join(
        f" {code(arm)} has the reward model that {code(source)} has trained free of charge: the tokens of that "
        "training are not in its count."
        for arm, source in sources.items()
        if source is not None
    )
