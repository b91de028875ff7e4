"""The results of a pooling check as JSON, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rlanything.checks.pooling.declare import Compared
from rlanything.checks.pooling.experiments import Difference
from rlanything.checks.pooling.results import Found, Row
from rlanything.report.formatting import code, interval, markdown_table, p_text
from rlanything.report.results.metrics import Metric


def to_json(found: Found) -> dict[str, Any]:
    """What pool.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "declared": found.declared.model_dump(mode="json"),
        "experiments": list(found.experiments),
        "comparisons": [
            {
                **row.compared.model_dump(mode="json"),
                "metric": row.metric.name,
                "differences": [_difference(one) for one in row.differences],
                "others": [_difference(one) for one in row.others],
                "pooled": {**asdict(row.pooled.mean), "p": row.pooled.p, "tau": row.pooled.tau},
            }
            for row in found.rows
        ],
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "experiment": one.experiment,
        "first_reward": one.first_reward,
        "seeds": one.seeds,
        "tasks": one.tasks,
        **asdict(one.contrast.difference),
        "error": one.error,
    }


def figure_name(compared: Compared) -> str:
    """The name of a comparison's figure, without its ending."""
    return f"{compared.arm}-over-{compared.over}"


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    parts = [
        f"# Pooled experiments {code(name)}",
        f"{len(found.experiments)} experiments, each with tasks and models of its own: "
        f"{', '.join(code(one) for one in found.experiments)}. Their differences are weighed in a random-effects "
        f"meta-analysis. {_unit(found)} with 95 % intervals. *p* is Holm's over all "
        f"{len(found.rows)} rows. *Apart* is the standard deviation of the true differences between such "
        "experiments. No such mean was registered before its experiments were run.",
        markdown_table(
            ["comparison", "metric", "experiments", "mean", "p", "apart"],
            [_summary(row) for row in found.rows],
        ).rstrip(),
        *_sections(found),
    ]
    return "\n\n".join(parts) + "\n"


def _unit(found: Found) -> str:
    return "Points" if all(row.metric.is_share for row in found.rows) else "Points, and tasks for counts,"


def _summary(row: Row) -> list[str]:
    return [
        f"{code(row.compared.arm)} over {code(row.compared.over)}",
        row.metric.short,
        str(len(row.differences)),
        interval(row.pooled.mean, row.metric, sign=True),
        p_text(row.pooled.p),
        _apart(row),
    ]


def _apart(row: Row) -> str:
    return f"{row.metric.scale * row.pooled.tau:.1f}"


def _sections(found: Found) -> Iterator[str]:
    for compared in found.declared.comparisons:
        rows = [row for row in found.rows if row.compared == compared]
        yield f"## {code(compared.arm)} over {code(compared.over)}"
        yield f"![The difference in each experiment, and pooled](figures/{figure_name(compared)}.svg)"
        means = [interval(row.pooled.mean, row.metric, sign=True) for row in rows]
        lines = _lines(found, [(row.metric, row.differences) for row in rows])
        others = _lines(found, [(row.metric, row.others) for row in rows])
        header = ["experiment", "seeds", *(row.metric.short for row in rows)]
        yield markdown_table(header, [*lines, ["pooled", "", *means]]).rstrip()
        if compared.reward_above is not None:
            yield (
                "Pooled are experiments whose first reward model is right on more than "
                f"{100 * compared.reward_above:g} % of the steps (balanced)."
            )
        if others:
            yield "Not pooled:"
            yield markdown_table(header, others).rstrip()
        if unsure := [f"{code(name)} ({row.metric.short})" for row in rows for name in row.unsure]:
            yield (
                "Left out, because nothing says how uncertain their difference is (it is the same in every seed and "
                f"task, or there is only one of each, or none that both arms have): {', '.join(unsure)}."
            )


def _lines(found: Found, columns: Sequence[tuple[Metric, Sequence[Difference]]]) -> list[list[str]]:
    """A line for each experiment that has one of the differences."""
    lines = []
    for name in found.experiments:
        cells = [next((one for one in column if one.experiment == name), None) for _, column in columns]
        seeds = [one.seeds for one in cells if one is not None]
        if seeds:
            shown = [
                interval(None if one is None else one.contrast.difference, metric, sign=True)
                for one, (metric, _) in zip(cells, columns, strict=True)
            ]
            lines.append([code(name), str(seeds[0]), *shown])
    return lines
