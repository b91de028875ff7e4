"""How far the sampler's log-probs were from the trainer's, where a run computed them again."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.report.formatting import NONE, code, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import Curves, Run

MODELS = {"policy": "policy", "reward": "reward model"}
MEANS = {
    "mismatch_kl": "KL",
    "ratio_p01": "ratio, 1 %",
    "ratio_p50": "50 %",
    "ratio_p99": "99 %",
    "ratio_capped": "capped",
}
"""Metric -> column: of these the mean over iterations and seeds is shown."""
LARGEST = "mismatch_max"
WORDS = (
    "A token's importance ratio is the trainer's probability over the one that was recorded when it was sampled. KL is "
    "the estimate k3 of KL(sampler || trainer). Quantiles of the ratios, KL and the share of ratios above {cap:g} "
    "(`learn.importance_cap`), which count as {cap:g}, are means over iterations and seeds. The last column is the "
    "largest difference of a log-prob in any iteration."
)


def mismatch(data: ReportData) -> str:
    """The section; '' without `learn.importance: recomputed`."""
    return section(data.curves, data.config.learn.importance_cap)


def section(curves: Curves, cap: float) -> str:
    """One row for each arm and model that has the metrics; '' where none has them. cap: of the ratios."""
    rows = [
        [
            f"{code(arm)}, {words}",
            *_cells([run for run in runs.values() if f"{model}/{LARGEST}" in run], model),
        ]
        for arm, runs in curves.items()
        for model, words in MODELS.items()
        if any(f"{model}/{LARGEST}" in run for run in runs.values())
    ]
    if not rows:
        return ""
    table = markdown_table(["arm, model", *MEANS.values(), "largest"], rows)
    return f"## Sampler and trainer\n\n{WORDS.format(cap=cap)}\n\n{table}"


def _cells(runs: Sequence[Run], model: str) -> list[str]:
    """The cells of one row."""
    cells = []
    for name in MEANS:
        found = [sum(series.values()) / len(series) for run in runs if (series := run.get(f"{model}/{name}"))]
        value = sum(found) / len(found) if found else None
        cells.append(NONE if value is None else f"{value:.2%}" if name == "ratio_capped" else f"{value:.4g}")
    return [*cells, f"{max(max(run[f'{model}/{LARGEST}'].values()) for run in runs):.2g}"]
