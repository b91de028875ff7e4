"""What the numbers say, as sentences made from them: differences with intervals, and the paper's order checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rlanything.config import BASE, BASE_COOLED
from rlanything.report.contents import Contents
from rlanything.report.formatting import code, interval, number, p_text
from rlanything.report.results import questions
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.curves import Peaks
from rlanything.report.results.metrics import Metric
from rlanything.report.results.paper import Paper
from rlanything.report.results.statistics import Contrast

DECLINE = 0.05
"""A curve that ends this far below its peak is worth a sentence."""


def against_base(comparison: Comparison, paper: Paper) -> list[str]:
    """One sentence per arm and accuracy: how far it is from the base."""
    pairs = questions.over_base(comparison.arms)
    success = comparison.success
    found = {metric.name: comparison.contrasts(pairs, metric) for metric in success}
    return [
        _sentence(found[metric.name].get(pair), paper, pair, metric) for pair in pairs for metric in success
    ]


def against_cooled(comparison: Comparison, temperature: float) -> list[str]:
    """One sentence per arm and accuracy: how much of its gain the untrained policy has at its best temperature."""
    pairs = questions.over_cooled(comparison.arms)
    return [line for metric in comparison.success for line in _cooled(comparison, metric, pairs, temperature)]


def worse_control(comparison: Comparison) -> list[str]:
    """One sentence per accuracy by which the cooled base is below the base, so that it flatters training."""
    pair = (BASE_COOLED, BASE)
    found = [(metric, comparison.contrasts([pair], metric).get(pair)) for metric in comparison.success]
    return [
        f"{code(BASE_COOLED)} is below {code(BASE)} {metric.short} ({interval(c.difference, metric, sign=True)} "
        f"points): what was best in the search is not better here. A difference over it is larger by as much than one "
        f"over {code(BASE)}."
        for metric, c in found
        if c is not None and c.difference.mean < 0
    ]


def _cooled(
    comparison: Comparison, metric: Metric, pairs: Sequence[tuple[str, str]], temperature: float
) -> Iterator[str]:
    """The sentences about one accuracy; none where the controls share no task."""
    found = comparison.contrasts(pairs, metric)
    cooling = comparison.contrasts([(BASE_COOLED, BASE)], metric).get((BASE_COOLED, BASE))
    if cooling is None:
        return
    gained = comparison.contrasts([(arm, BASE) for arm, _ in pairs], metric)
    for arm, _ in pairs:
        whole, beyond = gained.get((arm, BASE)), found.get((arm, BASE_COOLED))
        if whole is not None and beyond is not None:
            yield _beyond(arm, metric, (whole, cooling, beyond), temperature)


def _beyond(arm: str, metric: Metric, found: tuple[Contrast, Contrast, Contrast], temperature: float) -> str:
    whole, cooling, beyond = found
    gain, cooled = (number(c.difference.mean, metric, sign=True) for c in (whole, cooling))
    doubt = "" if beyond.clear else ", not clearly"
    far = f"Beyond the cooled base{doubt}: {interval(beyond.difference, metric, sign=True)}, p {p_text(beyond.p)}."
    said, cause = (
        f"{code(arm)} {metric.short}: {gain} points over the base",
        f"a temperature of {temperature:g}",
    )
    if not cooling.clear:
        alone = interval(cooling.difference, metric, sign=True)
        return f"{said}. {cause.capitalize()} alone makes a difference of {alone}, which is not clear. {far}"
    if cooling.difference.mean < 0:
        return f"{said}, of which {cause} explains none: it is worse than the base's own ({cooled}). {far}"
    if beyond.difference.mean <= 0:  # also where the arm is not above the base
        return f"{said}. {cause.capitalize()} alone adds {cooled}. {far}"
    return f"{said}, of which {cause} explains {cooled}. {far}"


def against_outcome(comparison: Comparison, paper: Paper) -> list[str]:
    """One sentence per accuracy and arm that has more than outcomes to learn from; none where `outcome` was not run."""
    pairs = questions.beyond_outcome(comparison.arms)
    success = comparison.success
    found = {metric.name: comparison.contrasts(pairs, metric) for metric in success}
    return [
        _sentence(found[metric.name].get(pair), paper, pair, metric) for metric in success for pair in pairs
    ]


def ladder(comparison: Comparison, paper: Paper) -> list[str]:
    """One sentence per step of the paper's order, among the arms that were run."""
    pairs = questions.steps(comparison.arms)
    success = comparison.success
    found = {metric.name: comparison.contrasts(pairs, metric) for metric in success}
    return [
        _sentence(found[metric.name].get(pair), paper, pair, metric) for metric in success for pair in pairs
    ]


def order(comparison: Comparison, contents: Contents) -> list[str]:
    """For every metric of the paper's table: is our order its order, and is each step clear?"""
    return [line for metric in contents.compared if (line := _order(comparison, contents, metric))]


def declines(peaks: Peaks, contents: Contents) -> list[str]:
    """Arms whose curve ends well below its peak."""
    return [
        f"{code(arm)} ends {number(peak.value - peak.last, metric)} points below its peak of iteration "
        f"{peak.iteration} ({contents.title(metric)}, small panel). A peak is picked because it is high, so this "
        "alone does not show that it was better. What is reported is its end."
        for arm, row in peaks.items()
        for metric in contents.shares
        if (peak := row.get(metric.name)) and peak.value - peak.last >= DECLINE
    ]


def _sentence(found: Contrast | None, paper: Paper, pair: tuple[str, str], metric: Metric) -> str:
    (arm, other), where = pair, metric.short
    if found is None:
        return (
            f"{code(arm)} and {code(other)} share no seed and task that was measured {where}: no comparison."
        )
    difference = interval(found.difference, metric, sign=True)
    doubt = "" if found.difference.mean == 0.0 or found.clear else ", but not clearly"
    gain = paper.gain(arm, metric, other)
    theirs = "" if gain is None else f" (paper: {number(gain, metric, sign=True)})"
    said = f"{code(arm)} {_relation(found)} {code(other)} {where}{doubt}"
    return f"{said}: difference {difference}, p {p_text(found.p)}{theirs}."


def _relation(found: Contrast) -> str:
    if found.difference.mean == 0.0:
        return "equals"
    return "is above" if found.difference.mean > 0 else "is below"


def _order(comparison: Comparison, contents: Contents, metric: Metric) -> str:
    means = {
        a: e.mean
        for a in questions.in_order(comparison.arms)
        if (e := comparison.estimate(a, metric)) is not None
    }
    if len(means) < 2:
        return ""
    names = list(means)
    same = all(_agrees(contents.paper, means, pair, metric) for pair in pairwise(names))
    answer = "the paper's order" if same else "not the paper's order"
    steps = _clear_steps(comparison, contents.paper, names, metric)
    return f"{contents.title(metric)}: {answer}: {_chain(means, metric)}. {steps}"


def _agrees(paper: Paper, means: Mapping[str, float], pair: tuple[str, str], metric: Metric) -> bool:
    """Whether a step goes the paper's way; where the paper shows no difference, any is allowed."""
    gain = paper.gain(pair[1], metric, pair[0])
    return gain == 0.0 or means[pair[1]] > means[pair[0]]


def _clear_steps(comparison: Comparison, paper: Paper, names: Sequence[str], metric: Metric) -> str:
    steps = [(upper, lower) for lower, upper in pairwise(names) if paper.gain(upper, metric, lower)]
    found = comparison.contrasts(steps, metric).values()
    clear = sum(c.clear and c.difference.mean > 0 for c in found)
    return f"Steps that rise clearly: {clear} of {len(steps)}."


def _chain(means: Mapping[str, float], metric: Metric) -> str:
    """`base` 39.0 < `policy` 51.1 = ..., lowest first."""
    rising = sorted(means, key=lambda arm: means[arm])
    chain = f"{code(rising[0])} {number(means[rising[0]], metric)}"
    for lower, upper in pairwise(rising):
        sign = "<" if means[upper] > means[lower] else "="
        chain += f" {sign} {code(upper)} {number(means[upper], metric)}"
    return chain
