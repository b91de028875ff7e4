"""How an arm looks: the same colour, marker and dash in every figure, distinguishable without colour too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlanything.report.results.arms import ARMS, ordered


@dataclass(frozen=True)
class Look:
    """Colour (of Okabe and Ito's colour-blind-safe set), marker and line style of one arm."""

    colour: str
    marker: str
    line: str = "-"


KNOWN = {
    "base": Look("#5f5f5f", "s", "--"),
    "base_cooled": Look("#9a9a9a", "h", ":"),
    "outcome": Look("#E69F00", "^"),
    "outcome_steps": Look("#B07C00", "<", ":"),
    "dynamic_sampling": Look("#CC79A7", "X", "-."),
    "step_only": Look("#0072B2", "P", "--"),
    "policy": Look("#56B4E9", "D"),
    "policy_learned": Look("#2A7FB8", ">", ":"),
    "policy_reward": Look("#009E73", "v"),
    "full": Look("#D55E00", "o"),
}
SPARE = (
    *(Look("#000000", "*", ":"), Look("#7F3C8D", "p", "-."), Look("#4B4B4B", "H", ":")),
    *(Look("#0072B2", "o"), Look("#D55E00", "^", "--"), Look("#009E73", "s", "-.")),
)
"""For arms of one's own, by name; from the seventh on they repeat."""

INK = "#262626"
FAINT = "#d9d9d9"
PALE = "#f2f2f2"
SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "rlanything",  # otherwise ids inside an SVG are random
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # letters of a PDF stay letters, as journals ask for
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": "#8c8c8c",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


def looks(arms: list[str]) -> dict[str, Look]:
    """The look of every arm; those of the ablation never change, whichever others are drawn beside them."""
    extra = [arm for arm in ordered(arms) if arm not in ARMS]
    spare = {arm: SPARE[i % len(SPARE)] for i, arm in enumerate(extra)}
    return {arm: KNOWN[arm] if arm in KNOWN else spare[arm] for arm in arms}
