"""The paper's Table 1, to set our numbers beside: ALFWorld, OSWorld, and its lower half, coding.

Source: Wang et al., "RLAnything: Forge Environment, Policy, and Reward Model in Completely Dynamic RL System",
arXiv 2602.02488, version 1. Columns Before, Policy, +Reward, +Env are our arms base, policy, policy_reward, full; the
paper's table has no column for `outcome`. The reward model is the same in Before and Policy. The values, fractions,
stand with the metrics. Accepted tasks are not in Table 1: the paper's figure shows about 150 after 200 iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlanything.report.results.metrics import Metric

ORDER = ("base", "policy", "policy_reward", "full")
"""The paper's order of arms, worst first."""
Process = Mapping[str, tuple[float, ...]]
"""Whose labels, or whose steps -> plain process accuracy of the arms of `ORDER`.

The paper's columns are Before, +Reward and +Env. The reward model of Policy is the one of Before.
"""
PROCESS = "rm_process_plain"
"""The metric that Tables 3 and 4 are about."""


@dataclass(frozen=True)
class Paper:
    """What the paper reports for one setting."""

    source: str
    name: str
    """What stands beside ours, in the words of a caption."""
    lacks: str
    """What its table does not have, as a clause."""
    note: str
    """What is comparable, and which version the numbers are from."""
    benchmarks: tuple[str, ...]
    """The first one stands beside our metrics that are measured on none of them. Empty: the paper has no results."""
    table_3: Process = field(default_factory=dict)
    """By the judge that labelled the steps."""
    table_4: Process = field(default_factory=dict)
    """By the policy that took the steps: another one than that of Table 1. It has no outcome accuracy."""

    @property
    def shown(self) -> bool:
        """Whether the paper has results to stand beside ours."""
        return bool(self.benchmarks)

    def value(self, arm: str, metric: Metric, benchmark: str = "") -> float | None:
        """The paper's number, or None where its table has none; '' is the benchmark that stands beside the metric."""
        name = benchmark or metric.benchmark or next(iter(self.benchmarks), "")
        values = metric.paper.get(name) if name in self.benchmarks else None
        return values[ORDER.index(arm)] if values and arm in ORDER else None

    def gain(self, arm: str, metric: Metric, over: str = "base", benchmark: str = "") -> float | None:
        """The paper's difference between two arms, or None where its table lacks one of them."""
        upper, lower = self.value(arm, metric, benchmark), self.value(over, metric, benchmark)
        return None if upper is None or lower is None else upper - lower


ALFWORLD = Paper(
    source="arXiv 2602.02488 v1, Table 1 (ALFWorld)",
    name="the paper",
    lacks="its table has no `outcome`",
    note=(
        "The paper trains Qwen2.5-7B-Instruct with a Qwen2.5-14B-Instruct reward model for 200 iterations on ALFWorld, "
        "measures on its 140 + 134 games (mean of 3) and labels steps by the majority of a stronger judge's votes. "
        "Compare the order of the arms and the differences, not the levels. The numbers are version 1's, whose "
        "abstract reports +18.7 points on ALFWorld (out-of-domain, 44.9 to 63.6); the abstract of the later ICML 2026 "
        "version reports +21.2 instead."
    ),
    benchmarks=("ALFWorld",),
    table_3={
        "Qwen3-32B": (0.470, 0.470, 0.524, 0.564),
        "gpt-oss-20b": (0.405, 0.405, 0.498, 0.522),
    },
    table_4={"LLaMA-3.1-8B-Instruct": (0.565, 0.565, 0.671, 0.727)},
)
OSWORLD = Paper(
    source="arXiv 2602.02488 v1, Table 1 (OSWorld)",
    name="the paper",
    lacks="its table has no `outcome`",
    note=(
        "The paper trains Qwen3-VL-8B-Thinking with a reward model that begins from the same weights, for 240 "
        "iterations of 12 tasks x 8 rollouts on OSWorld, measures on tasks of its own panels (mean of 3) and labels "
        "steps by the majority of a stronger judge's votes. Compare the order of the arms and the differences, not the "
        "levels. The numbers are version 1's, whose abstract reports +9.1 points on OSWorld; the abstract of the later "
        "ICML 2026 version reports +8.5 instead."
    ),
    benchmarks=("OSWorld",),
    table_4={"OpenCUA-7B": (0.847, 0.847, 0.876, 0.896)},
)
CODING = Paper(
    source="arXiv 2602.02488 v1, Table 1 (LiveBench)",
    name="the paper on LiveBench",
    lacks="its table has no `outcome` and nothing out-of-domain",
    note=(
        "Code is the share of programs that pass all tests of their problem. The paper trains Qwen2.5-7B-Instruct with "
        "a Qwen2.5-14B-Instruct reward model for 300 iterations of 64 problems x 32 programs, and measures 16 programs "
        "and 32 tests a problem on LiveBench, LiveCodeBench-V2 and CodeContests. LiveBench, its headline, stands "
        "beside in-domain, though the problems are not the same: unless `env` reads problems from files, those here "
        "are generated and far simpler. Compare the order of the arms and the differences, not the levels. The numbers "
        "are version 1's, whose abstract reports +11.9 points on coding (LiveBench, 31.3 to 43.2); the abstract of the "
        "later ICML 2026 version reports +12.1 instead."
    ),
    benchmarks=("LiveBench", "LiveCodeBench-V2", "CodeContests"),
)
"""The paper measures one Code for each benchmark; the first stands beside ours in-domain."""
BENCHMARKS = replace(
    CODING,
    source="arXiv 2602.02488 v1, Table 1 (coding)",
    name="the paper",
    lacks="its table has no `outcome`",
    note=(
        "Code is the share of programs that pass all tests of their problem. The paper trains Qwen2.5-7B-Instruct with "
        "a Qwen2.5-14B-Instruct reward model for 300 iterations of 64 problems x 32 programs, and measures 16 programs "
        "and 32 tests a problem on LiveBench, LiveCodeBench-V2 and CodeContests. A panel with the name of one of them "
        "stands beside the paper's values of it. The numbers are version 1's, whose abstract reports +11.9 points on "
        "coding (LiveBench, 31.3 to 43.2); the abstract of the later ICML 2026 version reports +12.1 instead."
    ),
)
"""The same where panels are the paper's benchmarks themselves."""

BESIDE: Mapping[str, Paper] = {
    "envs.alfworld.": ALFWORLD,
    "envs.desktop.osworld.": OSWORLD,
    "envs.coding.": CODING,
}
"""Where the class of an environment begins so -> what the paper has on such tasks."""
NO_RESULTS = Paper(source="", name="", lacks="", note="", benchmarks=())
"""What stands beside results on tasks of which the paper has none, such as those of an environment of one's own."""


def paper_on(environment: str) -> Paper:
    """What the paper has on the tasks of an environment. environment: the dotted name of its class."""
    return next((paper for begin, paper in BESIDE.items() if environment.startswith(begin)), NO_RESULTS)


def on_other_steps(paper: Paper, metrics: Sequence[Metric]) -> tuple[Paper, tuple[Metric, ...]]:
    """What stands beside the metrics where `evaluate.reward_policy` names whose steps are judged.

    Process accuracy has the values of Table 4. The paper has no others of a reward model on another policy's steps.
    The policy's own metrics keep theirs.
    """
    shown = tuple(
        metric if metric.is_success else replace(metric, paper=_table_4(paper, metric)) for metric in metrics
    )
    judged = any(metric.paper for metric in shown if not metric.is_success)
    return (replace(paper, source=f"{paper.source}; process accuracy: Table 4") if judged else paper), shown


def _table_4(paper: Paper, metric: Metric) -> dict[str, tuple[float, ...]]:
    """Its values for process accuracy, by benchmark; none for any other metric."""
    if metric.kind != PROCESS or not metric.paper:
        return {}
    return {name: values for values in paper.table_4.values() for name in paper.benchmarks}
