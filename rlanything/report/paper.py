"""The paper's Table 1 as data, to set our numbers beside: ALFWorld, and its lower half, coding.

Source: Wang et al., "RLAnything: Forge Environment, Policy, and Reward Model in Completely Dynamic RL System",
arXiv 2602.02488, version 1. Columns Before, Policy, +Reward, +Env are our arms base, policy, policy_reward, full; the
paper's table has no column for `outcome`. Values are fractions. The reward model is the same in Before and Policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ORDER = ("base", "policy", "policy_reward", "full")
"""The paper's order of arms, worst first."""

Table = Mapping[str, Mapping[str, float]]
"""arm -> metric -> value."""


@dataclass(frozen=True)
class Paper:
    """What the paper reports for one setting; the first benchmark is the one that stands beside ours everywhere."""

    source: str
    name: str
    """What stands beside ours, in the words of a caption."""
    lacks: str
    """What its table does not have, as a clause."""
    note: str
    """What is comparable, and which version the numbers are from."""
    benchmarks: Mapping[str, Table]

    @property
    def headline(self) -> str:
        """The first benchmark."""
        return next(iter(self.benchmarks))

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the table has a value of, in its order."""
        return tuple(self.benchmarks[self.headline]["base"])

    def value(self, arm: str, metric: str, benchmark: str = "") -> float | None:
        """The paper's number, or None where its table has none; '' is the headline."""
        return self.benchmarks[benchmark or self.headline].get(arm, {}).get(metric)

    def gain(self, arm: str, metric: str, over: str = "base", benchmark: str = "") -> float | None:
        """The paper's difference between two arms, or None where its table lacks one of them."""
        upper, lower = self.value(arm, metric, benchmark), self.value(over, metric, benchmark)
        return None if upper is None or lower is None else upper - lower


def _columns(metrics: Sequence[str], *rows: Sequence[float]) -> Table:
    """A table from one row for each of `ORDER`."""
    return {arm: dict(zip(metrics, row, strict=True)) for arm, row in zip(ORDER, rows, strict=True)}


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
    benchmarks={
        "ALFWorld": _columns(
            ("in_domain", "out_of_domain", "rm_process", "rm_outcome"),
            (0.390, 0.449, 0.470, 0.596),
            (0.511, 0.593, 0.470, 0.596),
            (0.556, 0.618, 0.524, 0.611),
            (0.602, 0.636, 0.564, 0.625),
        )
    },
)
"""accepted_tasks is not in Table 1: the paper's figure shows about 150 after 200 iterations."""

_CODING = ("in_domain", "ut", "detect")
"""Code, UT, Detect: the paper measures one Code for each benchmark, which stands beside ours in-domain."""

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
    benchmarks={
        "LiveBench": _columns(
            _CODING,
            (0.313, 0.278, 0.196),
            (0.388, 0.278, 0.196),
            (0.400, 0.733, 0.379),
            (0.432, 0.789, 0.485),
        ),
        "LiveCodeBench-V2": _columns(
            _CODING,
            (0.269, 0.357, 0.281),
            (0.314, 0.357, 0.281),
            (0.317, 0.814, 0.490),
            (0.341, 0.816, 0.552),
        ),
        "CodeContests": _columns(
            _CODING,
            (0.212, 0.438, 0.357),
            (0.258, 0.438, 0.357),
            (0.265, 0.860, 0.472),
            (0.273, 0.871, 0.555),
        ),
    },
)
