"""`rlanything replay`: what a replay found, as a page for a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlanything.config import ConfigError, unknown
from rlanything.repro import rules
from rlanything.repro.replay import replay
from rlanything.repro.stored import StoredRun
from rlanything.repro.whatif import WhatIf

MOST = 12
"""Flipped decisions that are printed; `--json` has all."""


@dataclass
class Page:
    """One replayed run. `problem`: the first thing that did not come out as stored."""

    name: str
    iterations: int = 0
    episodes: int = 0
    problem: str = ""
    changes: list[str] = field(default_factory=list)
    what_if: WhatIf | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "run": self.name,
            "iterations": self.iterations,
            "episodes": self.episodes,
            "identical": not self.problem,
            "problem": self.problem or None,
            "what_if": None if self.what_if is None else {"changes": self.changes, **self.what_if.to_json()},
        }


def replayed(folder: Path, overrides: Sequence[str]) -> Page:
    """Replay the run in `folder`, under changed rules as well if there are overrides. Raises `ConfigError`."""
    own = rules.own(folder)
    other = rules.changed(own, overrides) if overrides else None
    run = StoredRun(folder)
    page = Page(f"{own.arm}/{folder.name}")
    if other is not None:
        page.changes, page.what_if = rules.differing(own.config, other.config), WhatIf()
    for one in replay(run, own, other):
        page.problem = one.problem
        page.iterations += 1
        page.episodes += sum(len(g.trajectories) for g in one.own.harvest.groups)
        if page.what_if is not None:
            page.what_if.add(one)
    return page


def folders(name: str, root: Path) -> list[Path]:
    """The run folders that `name` means: an arm's, or one run's. Raises `ConfigError`."""
    for path in (root / name, root / "runs" / name):
        if (path / "metrics.jsonl").is_file():
            return [path]
        found = sorted(p.parent for p in path.glob("seed-*/metrics.jsonl"))
        if found:
            return found
    known = sorted(p.name for p in (root / "runs").glob("*") if p.is_dir())
    raise ConfigError(f"no finished run {name!r} below runs/: {unknown(name, known)}")


def text(page: Page) -> str:
    """The page for a terminal."""
    head = f"{page.name}: {page.iterations} iterations, {page.episodes:,} episodes"
    if page.problem:
        return f"{head}\nDIFFERS  {page.problem}\n"
    lines = [head, "the same  every advantage, decision, buffer and metric follows from the stored rollouts"]
    if page.what_if is not None:
        lines += ["", f"what if   {', '.join(page.changes) or 'nothing changed'}"]
        lines += [
            "          (each iteration decided anew from where the run was; how it would have gone on is not known)"
        ]
        lines += _what_if(page.what_if)
    return "\n".join(lines) + "\n"


def _what_if(found: WhatIf) -> list[str]:
    own, other = found.asked["own"], found.asked["other"]
    rows = [
        ("", "run", "what if"),
        ("rewrites asked for, harder", str(own["harder"]), str(other["harder"])),
        ("rewrites asked for, easier", str(own["easier"]), str(other["easier"])),
        ("  of them never made", "", str(found.unknown)),
        ("trajectories that train", *(f"{found.trains[s]['trajectories']:,}" for s in ("own", "other"))),
        ("votes that train", *(f"{found.trains[s]['votes']:,}" for s in ("own", "other"))),
    ]
    rows += [
        (f"{key}, mean", *("-" if v is None else f"{v:.3f}" for v in values))
        for key, values in found.to_json()["metrics"].items()
    ]
    lines = [f"  {a:<34}{b:>10}{c:>10}" for a, b, c in rows]
    lines += [
        f"  advantages of steps: {_pairs(found.to_json()['steps'])}",
        f"  advantages of votes: {_pairs(found.to_json()['votes'])}",
        f"  rewrites that were tried: {_decisions(found)}",
    ]
    for flip in found.flips[:MOST]:
        lines.append(
            f"    iteration {flip.iteration}, slot {flip.slot}, {flip.direction}: "
            f"{flip.before:.3f} -> {flip.after:.3f}, {flip.own}, now {flip.other}"
        )
    if len(found.flips) > MOST:
        lines.append(f"    and {len(found.flips) - MOST} more (--json has them)")
    return lines


def _pairs(pairs: dict[str, Any]) -> str:
    correlation = pairs["correlation"]
    told = "" if correlation is None else f", correlation {correlation:.3f}"
    return f"{pairs['in_both']:,} train either way, {pairs['sign_changed']:,} change sign{told}"


def _decisions(found: WhatIf) -> str:
    words = [f"{n} {a}" if a == b else f"{n} {a}, now {b}" for (a, b), n in sorted(found.decided.items())]
    return "; ".join(words) or "none"
