"""What a plan says about models behind endpoints: calls and tokens of each, and their cost where prices are given.

Such a model needs no memory here, and its time is the server's, which is not estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlanything.config import Config, Endpoint
from rlanything.config.endpoints import judge_role
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.sizes import Size

if TYPE_CHECKING:
    from rlanything.planning.costs.estimate import Stage

_JUDGE = "judge "
"""`measuring.JUDGE`: what stands before the name of a judge where models are named."""
MILLION = 1_000_000


def endpoint_of(config: Config, model: str) -> Endpoint | None:
    """The endpoint that serves a model, by its name in `Calls.model`; None: a checkpoint."""
    role = judge_role(model.removeprefix(_JUDGE)) if model.startswith(_JUDGE) else model
    return config.endpoints.served.get(role)


def served_size(endpoint: Endpoint) -> Size:
    """The size of a model that is not here: nothing but its context."""
    return Size(
        parameters=0,
        layers=0,
        hidden=0,
        intermediate=0,
        heads=0,
        kv_heads=0,
        attention=0,
        kv=0,
        vocab=0,
        positions=endpoint.context,
        tied=True,
        normed_heads=False,
        source="endpoint",
    )


def bill(config: Config, stages: Sequence[Stage], given: Assumptions) -> list[str]:
    """One line for each endpoint: its calls and tokens in all stages, and their cost. [] without endpoints."""
    lines = []
    names = dict.fromkeys(calls.model for stage in stages for calls in stage.work.calls)
    for name in names:
        endpoint = endpoint_of(config, name)
        if endpoint is None:
            continue
        asked = [
            (stage.times, calls) for stage in stages for calls in stage.work.calls if calls.model == name
        ]
        count = sum(times * calls.count for times, calls in asked)
        read = sum(times * calls.read for times, calls in asked)
        written = sum(times * calls.written for times, calls in asked)
        text = f"    {name:<22}{count:>12,.0f}{read:>16,.0f}{written:>14,.0f}{_cost(endpoint, read, written):>12}"
        lines.append(text)
    if not lines:
        return []
    head = f"endpoints, {given.bound}"
    return [
        f"  {head:<24}{'calls':>12}{'tokens read':>16}{'written':>14}{'cost':>12}",
        *lines,
    ]


def _cost(endpoint: Endpoint, read: float, written: float) -> str:
    if endpoint.input_price is None or endpoint.output_price is None:
        return "?"
    return f"{(read * endpoint.input_price + written * endpoint.output_price) / MILLION:,.2f}"
