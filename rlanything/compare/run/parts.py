"""Sections that only the page of a run has: what it does not show, its tasks, its troubles, what it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlanything.buffer.views.find.places import short_name
from rlanything.compare.run.named import seed_of
from rlanything.compare.run.single import Single
from rlanything.config import BASE
from rlanything.report.formatting import NONE, code, markdown_table
from rlanything.report.results.curves import Run, total
from rlanything.report.results.paper import Paper
from rlanything.report.sections.parts import FIRST_AND_LAST, bullets, from_to, images, percent
from rlanything.report.sections.solved import solved
from rlanything.repro.origin.text import divided
from rlanything.rollouts.runs import NamedRun

TROUBLES = {
    "crashed episodes": ("status/env_error", False),
    "episodes that timed out": ("status/timeout", False),
    "episodes cut off": ("status/truncated", False),
    "invalid actions (%)": ("invalid_actions", True),
    "votes without a verdict (%)": ("invalid_votes", True),
    "replies without a test (%)": ("invalid_tests", True),
    "proposals without a task (%)": ("invalid_proposals", True),
    "critiques without a summary (%)": ("unreadable_critiques", True),
}
"""Column -> the key of metrics.jsonl, and whether it is a share; others are sums over the iterations."""
_SHORT = 16


def not_concluded(found: Single) -> str:
    """What this page cannot show."""
    return f"## What may not be concluded\n{bullets(list(_limits(found)))}"


def beside(paper: Paper) -> str:
    """What stands beside our results, and what of it may be compared."""
    return f"\nPaper: {paper.source}. {paper.note}\n"


def _limits(found: Single) -> Iterator[str]:
    if not found.finished:
        yield "How it ends: the run is in training. Curves that rise may fall again."
    if len(found.seeds) == 1:
        yield (
            "About other trainings: this is one seed. Another seed of the same arm may end higher or lower; "
            f"{code(f'rlanything report --run {found.arm}')} shows all of the arm's seeds."
        )
    else:
        yield f"About a single new run: an interval over {len(found.seeds)} seeds is for their mean."
    yield (
        "What caused a result: nothing here is compared with another arm. "
        f"{code(f'rlanything compare OTHER {found.name}')} does that."
    )
    yield (
        "From the accuracy on training tasks: the tasks differ from iteration to iteration, and an arm that adapts "
        "them makes them harder where it succeeds."
    )
    if found.evaluated and BASE not in found.data.comparison.panels:
        yield "What training changed: the untrained base was not measured."
    if found.evaluated and found.data.cooled is None:
        yield "About less randomness: no cooled base was measured; a part of a gain may be that of a lower temperature."


def _in_project(run: NamedRun) -> str:
    """The path of a run in training from the project's root, as `rlanything buffer` finds it there."""
    return short_name(run.stored.folder.resolve(), run.root.resolve())


def tasks(found: Single) -> str:
    """What became of the tasks: rewrites asked for, accepted and rejected, and the band."""
    data, config = found.data, found.data.config
    adapts = config.arm(found.arm).adapt
    names = [run.name if run.finished else _in_project(run) for run in found.runs]
    commands = " and ".join(code(f"rlanything buffer {word} {names[0]}") for word in ("diff", "log"))
    rules = config.adaptation
    said = (
        f"A task is rewritten outside of the band from {rules.alpha_low:g} to {rules.alpha_high:g}. {FIRST_AND_LAST} "
        f"{commands} show every change.\n\n{_tasks_table(found)}"
        if adapts
        else "This arm does not adapt its tasks.\n"
    )
    return f"## Tasks\n\n{images(data, 'tasks')}{said}{solved(data)}"


def _tasks_table(found: Single) -> str:
    header = ["seed", "asked for", "without a task", "accepted", "rejected", "pending", "in the band (%)"]
    rows = []
    for run in found.runs:
        seed = seed_of(run)
        series, counts = found.data.curves[found.arm].get(seed, {}), found.counts[seed]
        ends = (counts["invalid"], round(total(series, "accepted")), counts["rejected"], counts["pending"])
        band = from_to({seed: series}, "band_coverage", percent)
        rows.append([f"{seed}", f"{total(series, 'proposals'):.0f}", *map(str, ends), band])
    return markdown_table(header, rows)


def troubles(found: Single) -> str:
    """A table of what went wrong, by kind; one that was not measured is left out."""
    runs = found.data.curves[found.arm]
    shown = {name: of for name, of in TROUBLES.items() if any(of[0] in run for run in runs.values())}
    rows = [
        [f"{seed}", *(_trouble(run, key, share) for key, share in shown.values())]
        for seed, run in runs.items()
    ]
    return (
        f"Shares are means over the iterations.\n\n{markdown_table(['seed', *shown], rows)}" if shown else ""
    )


def _trouble(run: Run, key: str, share: bool) -> str:
    series = run.get(key, {})
    if not series:
        return NONE
    return percent(total(run, key) / len(series)) if share else f"{total(run, key):.0f}"


def made_from(found: Single) -> str:
    """What the runs were made from, and how to check it."""
    record = found.record
    hashed = (
        "configuration, code, inputs and divisions"
        if record.get("divisions")
        else "configuration, code and inputs"
    )
    lines = [
        f"Run {code(record['fingerprint'][:_SHORT])}: a hash of {hashed}.",
        f"Made from {len(record['code'])} source files and {len(record['inputs'])} files of tasks, models and prompts.",
        *_seeds(found, record),
        *_divided(record),
        *(
            f"Panel {code(name)}: {of['tasks']} tasks, {_hash(of['hash'])}."
            for name, of in (record["panels"] or {}).items()
        ),
        *_started(record),
    ]
    checks = (
        f"To check it: {code(f'rlanything provenance {found.name}')} (what differs today), "
        f"{code(f'rlanything replay {found.name}')} (the metrics again from the stored rollouts). Equal hashes mean "
        "equal files.\n"
    )
    return f"## Provenance\n{bullets(lines)}\n{checks if found.finished else ''}"


def _seeds(found: Single, record: Mapping[str, Any]) -> Iterator[str]:
    for seed, kept in record["seeds"].items():
        if int(seed) in found.seeds:
            yield f"Seed {seed}: its draws derive from {kept['run_seed']}; its folder is {_hash(kept['sha256'])}."


def _divided(record: Mapping[str, Any]) -> Iterator[str]:
    """What changed of the devices while it was trained, so that nobody expects the same bytes again."""
    lines = [code(line) for line in divided(record)]  # a record may be anybody's
    if lines:
        yield f"Its division was changed while it was trained: {'; '.join(lines)}. Equal to rounding, not to the byte."


def _started(record: Mapping[str, Any]) -> Iterator[str]:
    """The last start, where this machine knows it."""
    git = record["starts"][-1]["git"] if record["starts"] else None
    if git is not None:
        known = "without changes" if git["clean"] else "with uncommitted changes"
        state = "changes not known" if git["clean"] is None else known
        yield f"Started at commit {code(git['commit'][:12])}, {state}."


def _hash(value: str | None) -> str:
    return code(value[:_SHORT]) if value else "missing"
