"""What is missing or weak about the numbers of a report, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlanything.config import BASE, BASE_COOLED, CONTROLS
from rlanything.core.printable import counted
from rlanything.report import health
from rlanything.report.formatting import code, plain
from rlanything.report.report_data import ReportData
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.curves import TRAIN
from rlanything.report.results.evaluations import EVALUATE
from rlanything.report.results.statistics import measured_seeds

FEW_SEEDS = 3


def caveats(data: ReportData) -> list[str]:
    """One sentence each; names stand in Markdown code spans."""
    arms = data.comparison.arms
    measured = [line for arm in arms for line in _measured(data, arm)]
    return [*_absent(data), *measured, *_seeds(data.comparison)]


def left_out(crashed: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A sentence for each arm whose episodes crashed in its measurement. crashed: arm -> panel -> how many."""
    return [
        f"{code(arm)}: {said} crashed or timed out in the measurement and were left out, over all seeds."
        for arm, panels in crashed.items()
        if (said := ", ".join(f"{counted(n, 'episode')} of {code(panel)}" for panel, n in panels.items()))
    ]


def for_terminal(data: ReportData) -> list[str]:
    """The caveats and the health warnings without Markdown, at most one line each."""
    lines = [*caveats(data), *health.lines(data.curves)]
    return [plain(line.replace("`", "").replace("\\|", "|"), 400) for line in lines]


def _absent(data: ReportData) -> Iterator[str]:
    """Arms without an evaluation, and arms without curves."""
    arms = data.comparison.arms
    cooled = () if data.config.evaluate.cooling is None else (BASE_COOLED,)
    absent = ", ".join(code(arm) for arm in ordered((*cooled, *data.config.arms)) if arm not in arms)
    if absent:
        yield f"Not evaluated, so left out: {absent}. Run `{TRAIN}` and `{EVALUATE}` to add them."
    silent = ", ".join(code(arm) for arm in arms if arm not in CONTROLS and arm not in data.curves)
    if silent:
        yield f"No metrics.jsonl under runs/, so no curves: {silent}. Run `{TRAIN}` to add them."


def _measured(data: ReportData, arm: str) -> Iterator[str]:
    """Episodes, metrics and pairs that one arm lacks."""
    comparison, contents = data.comparison, data.contents
    mine, base = comparison.panels[arm], comparison.panels[BASE]
    asked = contents.metrics if _has_reward_model(data, arm) else comparison.success
    gaps = [contents.title(m) for m in asked if m.name not in mine]
    yield from left_out({arm: data.extras.crashed.get(arm, {})})
    if gaps:
        yield f"{code(arm)} was not measured on: {', '.join(gaps)}."
    for metric in asked:
        if metric.name in mine:
            left = set(comparison.seeds(arm)).difference(measured_seeds(mine[metric.name]))
            if left:
                seeds = ", ".join(map(str, sorted(left)))
                yield f"{code(arm)} has no {contents.title(metric)} with seed {seeds}, so its mean is over the others."
    shared = [m for m in contents.metrics if m.name in mine and m.name in base]
    changed = [contents.title(m) for m in shared if mine[m.name].tasks != base[m.name].tasks]
    if changed:
        yield (
            f"{code(arm)} and the base were measured on different tasks ({', '.join(changed)}): only the shared ones "
            f"are compared. If the panels changed, run `{EVALUATE}` again."
        )
    known = comparison.seeds(BASE)
    alone = ", ".join(str(seed) for seed in comparison.seeds(arm) if seed not in known)
    if alone:
        yield f"{code(arm)}: the base was not measured with seed {alone}; left out of the comparison."


def _has_reward_model(data: ReportData, arm: str) -> bool:
    """Whether it has a reward model, or tasks that it could accept: not the cooled base, not an arm with the oracle."""
    config = data.config
    return arm == BASE or (arm in config.arms and not config.judge_for(config.arms[arm]).is_oracle)


def _seeds(comparison: Comparison) -> Iterator[str]:
    """Few seeds, and seeds that not all arms have."""
    seeds = {arm: comparison.seeds(arm) for arm in comparison.arms if arm not in CONTROLS}
    if len(set(map(tuple, seeds.values()))) > 1:
        said = "; ".join(f"{code(arm)}: {', '.join(map(str, own))}" for arm, own in seeds.items())
        yield (
            f"The arms have other seeds ({said}): a difference is over those that both have, a mean over its own. So "
            "means and differences may not agree."
        )
    fewest = min(len(comparison.seeds(arm)) for arm in comparison.arms)
    if fewest == 1:
        yield "One seed only: the intervals come from the tasks alone and say nothing about another training run."
    elif fewest < FEW_SEEDS:
        yield f"Only {fewest} seeds: the intervals are wide because two runs say little about a third."
