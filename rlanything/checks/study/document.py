"""A study's results as JSON, and as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from rlanything.checks.study.figure import NAME, SIGNALS, STEPS
from rlanything.checks.study.registration import FILE, Registration
from rlanything.checks.study.results import Found, Row
from rlanything.checks.study.verdict import Verdict
from rlanything.report.caveats import left_out
from rlanything.report.formatting import NONE, code, interval, markdown_table, p_text
from rlanything.report.results.metrics import DECLARED

STEPS_ALLOWED = (
    f"## Steps allowed\n\n![Success against the number of steps (paper: Fig. 6b)](figures/{STEPS}.svg)\n\n"
    "Final checkpoints: the share of the games that are solved within so many steps. Lines are means over seeds, bands "
    "go from the lowest to the highest seed."
)


def to_json(found: Found) -> dict[str, Any]:
    """What study.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "registration": found.registration.model_dump(
            mode="json", include={"at", "commit", "clean", "hash", "first"}
        ),
        "hypotheses": {row.name: _row_json(row) for row in found.rows},
        "arms": {
            arm: {name: asdict(value) for name, value in values.items()}
            for arm, values in found.values.items()
        },
        "rewriting": {arm: [asdict(part) for part in parts] for arm, parts in found.rewriting.items()},
        "declared": found.study.model_dump(mode="json"),
        **({"crashed": found.crashed} if found.crashed else {}),
    }


def _row_json(row: Row) -> dict[str, Any]:
    difference = None
    if row.contrast is not None:
        difference = {
            **asdict(row.contrast.difference),
            "p": row.contrast.p,
            "p_smallest": row.tested.p_smallest,
        }
    return {
        **row.hypothesis.model_dump(mode="json"),
        "difference": difference,
        "verdict": row.verdict.value,
    }


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    study, registration = found.study, found.registration
    parts = [
        f"# Study {code(name)}",
        f"**{summary(found)}**",
        _registered(registration),
        f"![Differences with their intervals](figures/{NAME}.svg)",
        f"Differences in points with 95 % intervals over {study.seeds} seeds and the games of a panel, paired by seed "
        "and game. *p* is of no difference, *p (small)* of the smallest difference that would matter; each is Holm's "
        f"over all {len(found.rows)} hypotheses, and shows something below {study.alpha:g}. The intervals are not "
        "corrected.",
        *left_out(found.crashed),
        _hypotheses(found),
        "## Arms\n\nPercent, or tasks for accepted tasks, with 95 % intervals.\n\n" + _arms(found),
    ]
    if found.signals:
        parts.append(_signals(found))
    if found.within:
        parts.append(STEPS_ALLOWED)
    if found.rewriting:
        parts.append(_rewriting(found))
    return "\n\n".join(parts) + "\n"


def _registered(registration: Registration) -> str:
    """What is known about the registration. When the arms were trained, a study does not record."""
    unsure = " with changes that git could not tell" if registration.clean is None else ""
    changed = " with changes that were not committed" if registration.clean is False else unsure
    where = (
        f" at commit {code(registration.commit[:12])}{changed}" if registration.commit else ", without git"
    )
    text = f"Registered {registration.at}{where}; hash {code(registration.hash[:16])}."
    if first := registration.first:
        at = f" at commit {code(first.commit[:12])}" if first.commit else ""
        text += (
            f" First registered {first.at}{at}, hash {code(first.hash[:16])}, with the same declaration: the "
            "configuration has gained or lost keys with the code since."
        )
    return (
        f"{text} A study runs only under its registration. That the registration is older than the results is for the "
        f"history of {code(FILE)} in git to show."
    )


def summary(found: Found) -> str:
    """How many hypotheses have each verdict: `Of 3 hypotheses: 2 holds; 1 open.`"""
    counted = Counter(row.verdict for row in found.rows)
    said = "; ".join(f"{counted[verdict]} {verdict}" for verdict in Verdict if counted[verdict])
    return f"Of {len(found.rows)} hypotheses: {said}."


def _hypotheses(found: Found) -> str:
    rows = [
        [
            row.hypothesis.claim,
            f"{code(row.hypothesis.arm)} over {code(row.hypothesis.over)}, {row.metric.short}",
            interval(row.contrast.difference if row.contrast else None, row.metric, sign=True),
            p_text(row.contrast.p if row.contrast else None),
            p_text(row.tested.p_smallest),
            row.verdict.value,
        ]
        for row in found.rows
    ]
    return markdown_table(
        ["hypothesis", "measured as", "difference", "p", "p (small)", "verdict"], rows
    ).rstrip()


def _arms(found: Found) -> str:
    shown = [metric for metric in found.metrics if any(metric.name in v for v in found.values.values())]
    rows = [
        [code(arm), *(interval(values.get(m.name), m) if m.name in values else NONE for m in shown)]
        for arm, values in found.values.items()
    ]
    return markdown_table(["arm", *(metric.short for metric in shown)], rows).rstrip()


def _rewriting(found: Found) -> str:
    text = (
        "## Accepted tasks over time\n\nAccepted rewrites a seed, the policy's accuracy on accepted tasks when they "
        "are rolled out, and the share of rolled-out tasks in the band. The last two are percent. The 95 % intervals "
        "are over seeds."
    )
    tasks, percent = DECLARED["accepted_tasks"], DECLARED["rm_process_plain"]  # a count and a share
    rows = [
        [
            code(arm),
            f"{part.first} to {part.last}",
            interval(part.accepted, tasks),
            interval(part.accuracy, percent),
            interval(part.band, percent),
        ]
        for arm, parts in found.rewriting.items()
        for part in parts
    ]
    table = markdown_table(["arm", "iterations", "accepted", "accuracy on accepted", "in the band"], rows)
    return f"{text}\n\n{table.rstrip()}"


def _signals(found: Found) -> str:
    outcomes, both, votes = map(code, found.signals)
    rows = [
        [code(arm), *(interval(found.values[arm].get(metric.name), metric) for metric in found.success)]
        for arm in found.signals
    ]
    return (
        "## Outcomes, votes, or both\n\n"
        f"![Outcomes, votes, or both as the policy's reward (paper: Fig. 6a)](figures/{SIGNALS}.svg)\n\n"
        f"{outcomes} is rewarded by outcomes alone, {votes} by votes alone, {both} by both. Final checkpoints, percent "
        "with 95 % intervals. The paper's figure has them over training; what is measured while training, a study does "
        "not publish.\n\n"
        + markdown_table(["arm", *(metric.short for metric in found.success)], rows).rstrip()
    )
