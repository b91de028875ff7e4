"""What the endpoints of a training were asked, and what that cost: a section of the report, where there are any."""

from __future__ import annotations

from rlanything.config import Config
from rlanything.report.formatting import NONE, code, markdown_table
from rlanything.report.results.curves import Curves, Run

HEADER = ["arm, role, model", "replies", "prompt tokens", "reply tokens", "without text", "cost"]


def section(config: Config, curves: Curves) -> str:
    """The sums over the iterations of all seeds, one row for each arm and role; '' without endpoints."""
    rows = [
        [f"{code(arm)}, {role}, {code(endpoint.model)}", *_sums(list(runs.values()), role)]
        for arm, runs in curves.items()
        for role, endpoint in config.endpoints.served.items()
        if any(f"endpoint/{role}/replies" in run for run in runs.values())
    ]
    if not rows:
        return ""
    return (
        "\n### Endpoints\n\n"
        "Replies that the iterations used, all seeds together, with the tokens by the server's count and the cost at "
        "the configured prices. Attempts that failed and the measurements after the training are not counted.\n\n"
        + markdown_table(HEADER, rows)
    )


def _sums(runs: list[Run], role: str) -> list[str]:
    """The cells of one row."""

    def total(name: str) -> float | None:
        found = [run[key] for run in runs if (key := f"endpoint/{role}/{name}") in run]
        return sum(sum(series.values()) for series in found) if found else None

    counts = [total(name) for name in ("replies", "prompt_tokens", "reply_tokens", "empty")]
    cost = total("cost")
    return [
        *(NONE if count is None else f"{count:,.0f}" for count in counts),
        NONE if cost is None else f"{cost:,.2f}",
    ]
