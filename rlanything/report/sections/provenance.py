"""What the numbers were made from, as far as the files of the report say it, and how to check the rest."""

from __future__ import annotations

from hashlib import sha256

from rlanything import __version__
from rlanything.config import BASE
from rlanything.report.formatting import code, markdown_table
from rlanything.report.report_data import ReportData


def provenance(data: ReportData) -> str:
    """The section."""
    panels = data.comparison.panels[BASE]
    rows = [
        [
            data.contents.title(metric),
            f"{len(panels[metric.name].tasks)}",
            code(_digest(panels[metric.name].tasks)),
        ]
        for metric in data.contents.shares
        if metric.name in panels
    ]
    return (
        "## Provenance\n\n"
        f"Made with rlanything {__version__} from `evaluation/` and `runs/`; the same files give the same bytes of "
        "this report. `dvc.lock` has their hashes. `provenance/<arm>.json` has the whole configuration, a hash of "
        "every source file, input and seed, and the seed that all draws derive from.\n\n"
        "Tasks of the panels, as the base was measured on them. Equal hashes mean the same tasks.\n\n"
        f"{markdown_table(['metric', 'tasks', 'sha256 of their sorted ids'], rows)}\n"
        "To check it: `rlanything provenance full` (what a run was made from, and what differs today), "
        "`rlanything replay full` (the metrics again from the stored rollouts), `rlanything verify-repro` (everything "
        "again from nothing).\n"
    )


def _digest(tasks: tuple[str, ...]) -> str:
    """Of the sorted ids, a line each; the first 16 digits."""
    return sha256("\n".join(sorted(tasks)).encode()).hexdigest()[:16]
