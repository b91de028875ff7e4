"""When a task is rewritten, and when the rewrite replaces it: the acceptance rule of Alg. 1 (lines 12 to 14).

acc(q) is the share of a task's rollouts that solve it. The band [alpha_low, alpha_high] holds the accuracies from which
a policy learns most. A task above the band is to become harder, a task below it easier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlanything.core.types import Direction

Acceptance = Literal["strict", "inclusive", "paired"]
"""How the bounds are read.

strict: the paper's bounds. inclusive: acc(q') may touch alpha_low or alpha_high, as in the paper's code.
paired: strict, and the caller measures acc(q) in the same iteration and by the same policy as acc(q').
"""


@dataclass(frozen=True)
class AcceptanceRule:
    """The band and how its bounds are read; the defaults are the paper's."""

    alpha_low: float = 0.2
    alpha_high: float = 0.8
    acceptance: Acceptance = "strict"


def direction(accuracy: float, rule: AcceptanceRule) -> Direction | None:
    """Harder above alpha_high, easier below alpha_low, None in between: the task stays as it is."""
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
