"""What differs between the reports of the two settings: titles, the paper's numbers, figures and a few sentences.

`judge.writes` says which one an experiment is: `votes` on steps (text games) or unit `tests` (coding). Statistics,
tables and sentences made from numbers are the same for both. Which metrics were measured follows from the evaluations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.report.panels import Panels
from rlanything.report.paper import ALFWORLD, CODING, Paper
from rlanything.report.records import EVALUATE, ReportError
from rlanything.report.words import COUNTS


@dataclass(frozen=True)
class Plot:
    """One panel of a figure: a key of metrics.jsonl, its title, and the metric whose final value stands at its end."""

    key: str
    title: str
    percent: bool = False
    final: str = ""
    mark: float | None = None
    """Height of a dotted line across."""
    mark_text: str = ""
    only_changing: bool = False
    """Leave out arms that stay at 0: they would only hide each other."""


@dataclass(frozen=True)
class Drawing:
    """One figure of curves: the section of report.md where it stands, its caption, its panels."""

    section: str
    caption: str
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Setting:
    """One setting's report, as far as it differs."""

    titles: Mapping[str, str]
    """Metric -> title, in the order of the tables."""
    paper: Paper
    drawings: Mapping[str, Drawing]
    """File name without ending -> figure."""
    reward: str
    """What the metrics of the reward model are."""
    defaults: str
    """What the defaults of the configuration are."""

    @property
    def curves(self) -> tuple[str, ...]:
        """The metrics that have a small panel during training, under `panel/<metric>`: all but the counts."""
        return tuple(metric for metric in self.titles if metric not in COUNTS)


ACCEPTED = Drawing(
    "tasks",
    "Accepted tasks",
    (Plot("accepted_total", "Accepted tasks, in all", final="accepted_tasks", only_changing=True),),
)
BAND = Plot("band_coverage", "Tasks between alpha_low and alpha_high (%)", True)
POINT_AT_START = "Arms that do not train their reward model have one point, at the start."

VOTES = Setting(
    titles={
        "in_domain": "Accuracy in-domain",
        "out_of_domain": "Accuracy out-of-domain",
        "rm_process": "RM process accuracy",
        "rm_outcome": "RM outcome accuracy",
        "accepted_tasks": "Accepted tasks",
    },
    paper=ALFWORLD,
    drawings={
        "learning": Drawing(
            "learning",
            "Learning curves",
            (
                Plot("panel/in_domain", "Accuracy in-domain (%)", True, "in_domain"),
                Plot("panel/out_of_domain", "Accuracy out-of-domain (%)", True, "out_of_domain"),
            ),
        ),
        "accepted": ACCEPTED,
        "reward_model": Drawing(
            "reward",
            "Reward model",
            (
                Plot("panel/rm_process", "RM process accuracy (%)", True, "rm_process", 0.5, "chance"),
                Plot("panel/rm_outcome", "RM outcome accuracy (%)", True, "rm_outcome"),
            ),
        ),
        "health": Drawing(
            "tasks",
            "mu and band coverage",
            (Plot("mu", "mu = p+ + p−", mark=1.0, mark_text="votes at chance"), BAND),
        ),
    },
    reward=(
        "Process accuracy: verdicts on steps against the oracle, mean of the accuracy on good and on bad steps (a "
        "constant answer scores 50 %). Outcome accuracy: verdicts on steps against the outcome of their episode. "
        + POINT_AT_START
    ),
    defaults="the paper's value where the paper names one",
)
TESTS = Setting(
    titles={
        "in_domain": "Code in-domain",
        "out_of_domain": "Code out-of-domain",
        "ut": "UT",
        "detect": "Detect",
        "accepted_tasks": "Accepted tasks",
    },
    paper=CODING,
    drawings={
        "learning": Drawing(
            "learning",
            "Learning curves",
            (
                Plot("panel/in_domain", "Code in-domain (%)", True, "in_domain"),
                Plot("panel/out_of_domain", "Code out-of-domain (%)", True, "out_of_domain"),
            ),
        ),
        "accepted": ACCEPTED,
        "reward_model": Drawing(
            "reward",
            "Reward model",
            (Plot("panel/ut", "UT (%)", True, "ut"), Plot("panel/detect", "Detect (%)", True, "detect")),
        ),
        "tests": Drawing(
            "reward",
            "Tests written while training",
            (
                Plot("ut", "UT while training (%)", True),
                Plot("detect", "Detect while training (%)", True),
                Plot("invalid_tests", "Replies without a test (%)", True),
            ),
        ),
        "band": Drawing("tasks", "Band coverage", (BAND,)),
    },
    reward=(
        "UT: share of the written tests that every right program passes; a reply without a test counts as a wrong one. "
        "Detect: share that, besides, reject every wrong program. A right program is one that passes all of its task's "
        "own tests. Both are measured on the same programs for every reward model, while training on the policy's own, "
        "which change with it. " + POINT_AT_START
    ),
    defaults="the paper's value for text games where the paper names one",
)
SETTINGS: Mapping[str, Setting] = {"votes": VOTES, "tests": TESTS}


def chosen(config: Config, measured: Panels) -> Setting:
    """The setting of `config`. Raises `ReportError` for an evaluation with metrics that only the other one has."""
    setting = SETTINGS[config.judge.writes]
    for arm, row in measured.items():
        foreign = [metric for metric in row if metric not in setting.titles]
        if foreign:
            raise ReportError(
                f"evaluation/{arm}.json: holds {', '.join(foreign)}, which is not measured where judge.writes is "
                f"{config.judge.writes}; make it again with `{EVALUATE}`"
            )
    return setting
