"""How far the sampler's log-probs were from the trainer's, where a run computed them again."""

from __future__ import annotations

from rlanything.config import LearnConfig
from rlanything.report.formatting import markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import Curves
from rlanything.report.sections.parts import mean_of, model_rows

MEANS = {
    "mismatch_kl": ("KL", "{:.4g}"),
    "ratio_p01": ("ratio, 1 %", "{:.4g}"),
    "ratio_p50": ("50 %", "{:.4g}"),
    "ratio_p99": ("99 %", "{:.4g}"),
    "ratio_capped": ("capped", "{:.2%}"),
}
"""Metric -> column and style: of these the mean over iterations and seeds is shown."""
MASKED = {"ratio_masked": ("masked", "{:.2%}")}
"""With `learn.importance_mask` as well."""
LARGEST = "mismatch_max"
WORDS = (
    "A token's importance ratio is the trainer's probability over the one that was recorded when it was sampled. KL is "
    "the estimate k3 of KL(sampler || trainer). Quantiles of the ratios, KL and the share of ratios above {cap:g} "
    "(`learn.importance_cap`), which count as {cap:g}, are means over iterations and seeds. {masked}The last column is "
    "the largest difference of a log-prob in any iteration."
)
OUTSIDE = (
    "So is the share of tokens that taught nothing, as their ratio was outside of {low:g} to {high:g} "
    "(`learn.importance_mask`). "
)


def mismatch(data: ReportData) -> str:
    """The section; '' without `learn.importance: recomputed`."""
    return section(data.curves, data.config.learn)


def section(curves: Curves, learn: LearnConfig) -> str:
    """One row for each arm and model that has the metrics; '' where none has them. learn: the cap, and the mask."""
    means, masked = MEANS, ""
    if learn.importance_mask is not None:
        low, high = learn.importance_mask
        means, masked = MEANS | MASKED, OUTSIDE.format(low=low, high=high)
    rows = [
        [
            label,
            *(mean_of(runs, f"{model}/{name}", style) for name, (_, style) in means.items()),
            f"{max(max(run[f'{model}/{LARGEST}'].values()) for run in runs):.2g}",
        ]
        for label, model, runs in model_rows(curves, LARGEST)
    ]
    if not rows:
        return ""
    table = markdown_table(["arm, model", *(column for column, _ in means.values()), "largest"], rows)
    words = WORDS.format(cap=learn.importance_cap, masked=masked)
    return f"## Sampler and trainer\n\n{words}\n\n{table}"
