"""How far an iteration's updates moved the models, and how often the clipped surrogate held them back."""

from __future__ import annotations

from rlanything.report.formatting import markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import Curves
from rlanything.report.sections.parts import mean_of, model_rows

MOVED = "kl"
WORDS = (
    "An iteration takes {updates} steps. KL is the estimate k3 of the distance from the sampled model to the one that "
    "learns, mean over the steps. Clipped is the weighted share of tokens whose ratio had left 1 ± {epsilon:g} "
    "(`learn.epsilon`), where the clip may stop the gradient. Norm is that of the gradient before it is cut. All three "
    "are means over iterations and seeds."
)


def updates(data: ReportData) -> str:
    """The section; '' where nothing was trained."""
    learn = data.config.learn
    return section(data.curves, learn.updates, learn.epsilon)


def section(curves: Curves, steps: int, epsilon: float) -> str:
    """One row for each arm and model that trained. steps, epsilon: `learn.updates` and `learn.epsilon`."""
    rows = [
        [
            label,
            mean_of(runs, f"{model}/{MOVED}", "{:.2g}"),
            mean_of(runs, f"{model}/clipped", "{:.2%}"),
            mean_of(runs, f"{model}/grad_norm", "{:.2g}"),
        ]
        for label, model, runs in model_rows(curves, MOVED)
    ]
    if not rows:
        return ""
    table = markdown_table(["arm, model", "KL", "clipped", "norm"], rows)
    return f"## Updates\n\n{WORDS.format(updates=steps, epsilon=epsilon)}\n\n{table}"
