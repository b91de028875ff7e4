"""The figures of curves that are only measured while training, declared: what each panel shows."""

from __future__ import annotations

from dataclasses import dataclass

from rlanything.report.results.metrics import Metric


@dataclass(frozen=True)
class Plot:
    """One panel of a figure: a key of metrics.jsonl, its title, and the metric whose final value stands at its end."""

    key: str
    title: str
    percent: bool = False
    final: Metric | None = None
    mark: float | None = None
    """Height of a dotted line across."""
    mark_text: str = ""
    only_changing: bool = False
    """Leave out arms that stay at 0: they would only hide each other."""
    bound: str = ""
    """Key of what the value is compared with, drawn thin and dotted in the arm's colour."""
    log: bool = False
    """Whether the axis is logarithmic."""


@dataclass(frozen=True)
class Drawing:
    """One figure of curves: its file name without ending, its section of report.md, its caption, its panels."""

    name: str
    section: str
    caption: str
    plots: tuple[Plot, ...]
    arms: tuple[str, ...] = ()
    """The only arms that are drawn; none: all."""


SIGNALS = Drawing(
    "signals", "learning", "Outcomes, votes, or both as the policy's reward (paper: Fig. 1.2 and 6a)", ()
)
"""Its panels and arms come with the kind of reward model."""
RESPONSES = Drawing(
    "responses",
    "learning",
    "Length of the policy's responses (paper: Fig. 7b)",
    (Plot("response_tokens", "Tokens of a response"),),
)
ACCEPTED = Drawing(
    "accepted_accuracy",
    "tasks",
    "Accuracy on accepted tasks (paper: Fig. 7a)",
    (Plot("accepted_accuracy", "Accuracy on accepted tasks (%)", True),),
)
COVERAGE = Plot("band_coverage", "Tasks between alpha_low and alpha_high (%)", True)
BAND = Drawing("band", "tasks", "Band coverage", (COVERAGE,))
MU = Plot("mu", "mu = p+ + p−", mark=1.0, mark_text="votes at chance")
HEALTH = Drawing("health", "tasks", "mu and band coverage", (MU, COVERAGE))
THEORY = (
    Drawing(
        "theorem_1",
        "theory",
        "Precision of the votes and Theorem 1's bound (dotted)",
        (
            Plot("p_plus", "p+: good votes on steps of successes (%)", True),
            Plot("p_minus", "p−: bad votes on steps of failures (%)", True),
            Plot("precision", "Pairs of steps in the right order (%)", True, bound="precision_bound"),
        ),
    ),
    Drawing(
        "theorem_2",
        "theory",
        "Balance of what trains the reward model (Theorem 2)",
        (
            Plot(
                "task_force_ratio", "||f+|| / ||f−||, median task", mark=1.0, mark_text="balanced", log=True
            ),
            Plot("one_sided_tasks", "Tasks that teach from one side only (%)", True),
        ),
    ),
)
WRITTEN = Drawing(
    "tests",
    "reward",
    "Tests written while training",
    (
        Plot("ut", "UT while training (%)", True),
        Plot("detect", "Detect while training (%)", True),
        Plot("invalid_tests", "Replies without a test (%)", True),
    ),
)
