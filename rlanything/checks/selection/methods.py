"""Ways to choose one of several programs by tests that may be wrong. Pure functions over what the programs did.

A method gives every program a score. The program with the highest score is chosen, among equals the first sampled.
A cell without an outcome (the sandbox failed) counts as not passed. What each method leaves out of its paper:
docs/checks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlanything.core.types import Json
from rlanything.core.unittests import Row

Floats = NDArray[np.float64]
Score = tuple[float, ...]
"""What programs are ordered by; later numbers decide among equal earlier ones."""
DIGITS = 9
"""Scores that agree to so many digits are equal: rounding must choose no program."""
ALPHA, ALPHA_FEW, FEW = 0.95, 0.01, 0.16
"""MPSC's weight of agreement between programs and tests, and the one for a mean edge below `FEW`, as in its code."""


@dataclass(frozen=True)
class Trials:
    """What is known about the n programs of a problem from its m written tests, and whether each program is right.

    passed[i][k]: program i on test k, (n, m). readable[k]: whether reply k held a test.
    inputs, written: `core.unittests.Outputs`. right: on the problem's own tests; None: could not be found out.
    No method reads `right`.
    """

    passed: tuple[Row, ...]
    readable: tuple[bool, ...]
    inputs: tuple[int | None, ...]
    written: tuple[tuple[int | None, ...], ...]
    right: Row

    def to_json(self) -> dict[str, Json]:
        """As a JSON record."""
        return {
            "passed": [list(row) for row in self.passed],
            "readable": list(self.readable),
            "inputs": list(self.inputs),
            "written": [list(row) for row in self.written],
            "right": list(self.right),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trials:
        """Inverse of `to_json`. Raises `KeyError` or `TypeError` for another record."""
        return cls(
            tuple(tuple(row) for row in data["passed"]),
            tuple(data["readable"]),
            tuple(data["inputs"]),
            tuple(tuple(row) for row in data["written"]),
            tuple(data["right"]),
        )


def best_of_n(trials: Trials) -> list[Score]:
    """Written tests passed."""
    return [(float(sum(cell is True for cell in row)),) for row in trials.passed]


def mpsc(trials: Trials) -> list[Score]:
    """Multi-perspective self-consistency (arXiv 2309.17272), with two of its three perspectives: programs and tests.

    A program and a test are joined where it passes the test. A vertex begins with its weighted cardinality: how many
    of its kind have the same neighbours, times the share of the other kind that these are. Scores then move along the
    edges, f = alpha D^-1/2 W D^-1/2 f + (1 - alpha) y, to their fixed point. A vertex without an edge has score 0.
    """
    asked = [k for k, known in enumerate(trials.readable) if known]
    edges = np.array([[float(row[k] is True) for k in asked] for row in trials.passed], dtype=np.float64)
    if not edges.any():
        return [(0.0,) for _ in trials.passed]
    begin = np.concatenate([_cardinality(edges), _cardinality(edges.T)])
    alpha = ALPHA_FEW if edges.mean() < FEW else ALPHA
    scores = np.linalg.solve(np.eye(len(begin)) - alpha * _transitions(edges), (1 - alpha) * begin)
    return [(round(float(scores[i]), DIGITS) if row.any() else 0.0,) for i, row in enumerate(edges)]


def s_star(trials: Trials) -> list[Score]:
    """The selection of S* (arXiv 2502.14382), with written tests in the place of new inputs and of a model's judgement.

    Programs that write the same on every written input are one cluster. Two clusters are compared on the inputs on
    which they differ: an input votes for the one whose output more tests expect. The cluster with more votes wins.
    Score: wins of a program's cluster, then its size.
    """
    inputs = sorted({k for k in trials.inputs if k is not None})
    clusters: dict[tuple[int | None, ...], list[int]] = {}
    for number, row in enumerate(trials.written):
        clusters.setdefault(tuple(row[k] for k in inputs), []).append(number)
    wins = dict.fromkeys(clusters, 0)
    for one, other in combinations(clusters, 2):
        found = _votes(trials, inputs, one, other, (clusters[one][0], clusters[other][0]))
        if found:
            wins[one if found > 0 else other] += 1
    scores = {
        number: (float(wins[kind]), float(len(group))) for kind, group in clusters.items() for number in group
    }
    return [scores[number] for number in range(len(trials.written))]


Method = Callable[[Trials], list[Score]]
METHODS: Mapping[str, Method] = {"best_of_n": best_of_n, "mpsc": mpsc, "s_star": s_star}


def chosen(method: Method, trials: Trials) -> int | None:
    """The program that a method chooses, by its number; None where there is none to choose from."""
    scores = method(trials)
    return max(range(len(scores)), key=lambda i: (scores[i], -i)) if scores else None


def _cardinality(edges: Floats) -> Floats:
    """For each row: rows equal to it, times its mean; all of them sum to 1."""
    equal = (edges[:, None, :] == edges[None, :, :]).all(axis=2).sum(axis=1)
    weights = equal * edges.mean(axis=1)
    return np.asarray(weights / weights.sum())


def _transitions(edges: Floats) -> Floats:
    """D^-1/2 W D^-1/2 of the bipartite graph, square over rows and columns; 0 for a vertex without an edge."""
    rows, columns = edges.shape
    weights = np.block([[np.zeros((rows, rows)), edges], [edges.T, np.zeros((columns, columns))]])
    degrees = weights.sum(axis=1)
    norms = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return np.asarray(norms[:, None] * weights * norms[None, :])


def _votes(
    trials: Trials,
    inputs: Sequence[int],
    one: Sequence[int | None],
    other: Sequence[int | None],
    members: tuple[int, int],
) -> int:
    """Inputs on which the first cluster's output is expected by more tests, minus those on which the second's is."""
    found = 0
    for place, first in enumerate(inputs):
        if one[place] != other[place]:
            same = [k for k, begin in enumerate(trials.inputs) if begin == first]
            mine, theirs = (sum(trials.passed[i][k] is True for k in same) for i in members)
            found += (mine > theirs) - (mine < theirs)
    return found
