"""When a task is rewritten, and when the rewrite replaces it: the acceptance rule of Alg. 1 (lines 12 to 14).

q is a task and q' its rewrite. acc(q) is the share of the rollouts of q that succeed. A policy learns most from tasks
whose accuracy is in the band [alpha_low, alpha_high]. A task above the band is rewritten to be harder, a task below it
to be easier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlanything.core.types import Direction

Acceptance = Literal["strict", "inclusive", "paired"]
"""How acc(q') is compared with the bounds.

strict: a harder q' needs acc(q') > alpha_low, an easier one acc(q') < alpha_high, as in the paper. inclusive: acc(q')
may also equal the bound, as in the paper's code. paired: strict, and the caller measures acc(q) in the same iteration
and with the same policy as acc(q').
"""


@dataclass(frozen=True)
class AcceptanceRule:
    """The band, and how acc(q') is compared with its bounds. The defaults are those of the paper."""

    alpha_low: float = 0.2
    alpha_high: float = 0.8
    acceptance: Acceptance = "strict"


def direction(accuracy: float, rule: AcceptanceRule) -> Direction | None:
    """HARDER above alpha_high, EASIER below alpha_low. None in between: the task is not rewritten."""
    if accuracy > rule.alpha_high:
        return Direction.HARDER
    if accuracy < rule.alpha_low:
        return Direction.EASIER
    return None


def accepts(way: Direction, before: float, after: float, rule: AcceptanceRule) -> bool:
    """Whether q' with acc(q') = `after` replaces q with acc(q) = `before`.

    Harder: alpha_low < after < before. Easier: before < after < alpha_high. Always: after > 0.
    """
    if after <= 0.0:
        return False
    inclusive = rule.acceptance == "inclusive"
    if way is Direction.HARDER:
        inside = after >= rule.alpha_low if inclusive else after > rule.alpha_low
        return inside and after < before
    inside = after <= rule.alpha_high if inclusive else after < rule.alpha_high
    return before < after and inside


def outside_band(before: float, after: float) -> str:
    """The reason of a rewrite that `accepts` refuses: acc(q) = `before`, acc(q') = `after`."""
    return f"accuracy {after:.3f} is outside the acceptance band (before: {before:.3f})"
