"""The report of `rlanything replay`: text for a terminal, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rlanything.buffer.views.find.places import unfinished
from rlanything.core.errors import ConfigError, unknown_run
from rlanything.core.printable import safe
from rlanything.loop.batch import LoopState
from rlanything.repro import run_rules
from rlanything.repro.replay import Decided, Played, replay
from rlanything.repro.rows import first_gap
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.repro.whatif import WhatIf

MOST = 12
"""How many changed decisions are printed. `--json` prints all."""
REPLAYED = "the same  every advantage, decision, buffer and metric follows from the stored rollouts"
PLAYED = (
    "the same  every prompt, action, answer of the environment, verdict, advantage, decision, rewrite, buffer and "
    "metric follows from the sampled tokens"
)


@dataclass
class ReplayReport:
    """One replayed run. played: with the environment.

    problem: the first difference from the stored run, '' for none."""

    name: str
    played: bool = False
    iterations: int = 0
    episodes: int = 0
    problem: str = ""
    changes: list[str] = field(default_factory=list)
    what_if: WhatIf | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "run": self.name,
            "played": self.played,
            "iterations": self.iterations,
            "episodes": self.episodes,
            "identical": not self.problem,
            "problem": self.problem or None,
            "what_if": None if self.what_if is None else {"changes": self.changes, **self.what_if.to_json()},
        }


def replay_run(folder: Path, overrides: Sequence[str], *, play: bool = False) -> ReplayReport:
    """Replay the run in `folder`, and once more under changed rules if there are overrides.

    play: also play its episodes again. That makes the environment that the run names (`require_own`). Raises
    `ConfigError`.
    """
    own = run_rules.own(folder)
    other = run_rules.changed(own, overrides) if overrides else None
    run = StoredRun(folder)
    report = ReplayReport(f"{own.arm}/{folder.name}", played=play)
    report.problem = run_rules.unrecorded(folder)
    if other is not None:
        report.changes, report.what_if = run_rules.differing(own.config, other.config), WhatIf()
    report.problem = report.problem or first_gap(run, own.config)
    with ExitStack() as stack:
        played = None
        if play and not report.problem:
            played = stack.enter_context(_player(run, own))
        for one in replay(run, own, other, played) if not report.problem else ():
            report.problem = one.problem
            report.iterations += 1
            report.episodes += sum(len(g.episodes) for g in one.own.result.groups) if one.own else 0
            if report.what_if is not None:
                report.what_if.add(one)
    return report


@contextmanager
def _player(run: StoredRun, own: run_rules.Rules) -> Iterator[Played]:
    """What plays the iterations of a run again. It says on stderr how far it is."""
    from rlanything.repro.played.play import Player

    with TemporaryDirectory() as images:
        player = Player(own, run, run.folder.resolve().parents[2], Path(images))

        def played(stored: StoredIteration, state: LoopState, replayed: Decided) -> str:
            found = player.problem(stored, state, replayed)
            done, count = stored.iteration + 1, len(run.iterations)
            print(
                f"replay: {own.arm}/{run.folder.name}: {done} of {count} iterations played",
                file=sys.stderr,
                flush=True,
            )
            return found

        yield played


def folders(name: str, root: Path) -> list[Path]:
    """The folders of all runs of an arm, or the folder of one run. Raises `ConfigError`.

    Of an arm, also the folders that its record names and that are not there: `replay_run` says so.
    """
    for path in (root / name, root / "runs" / name):
        if (path / "metrics.jsonl").is_file():
            return [path]
        found = sorted(p.parent for p in path.glob("seed-*/metrics.jsonl"))
        if found:
            return sorted({*found, *run_rules.recorded(path)})
    known = sorted(p.name for p in (root / "runs").glob("*") if p.is_dir())
    raise ConfigError(
        f"no finished run {name!r} below runs/: {unfinished(name, root) or unknown_run(name, known)}"
    )


def _hint(report: ReplayReport) -> str:
    arm = report.name.partition("/")[0]
    if not report.played:
        return ""
    return (
        f"         whether code, inputs and packages are still the run's says `rlanything provenance {arm}`\n"
    )


def render(report: ReplayReport) -> str:
    """The report for a terminal."""
    head = f"{report.name}: {report.iterations} iterations, {report.episodes:,} episodes"
    if report.problem:
        return f"{head}\nDIFFERS  {safe(report.problem)}\n{_hint(report)}"
    lines = [head, PLAYED if report.played else REPLAYED]
    if report.what_if is not None:
        lines += ["", f"what if   {', '.join(report.changes) or 'nothing changed'}"]
        lines += [
            "          (each iteration decided anew from where the run was; how it would have gone on is not known)"
        ]
        lines += _what_if(report.what_if)
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
    tail = "" if correlation is None else f", correlation {correlation:.3f}"
    return f"{pairs['in_both']:,} train either way, {pairs['sign_changed']:,} change sign{tail}"


def _decisions(found: WhatIf) -> str:
    words = [f"{n} {a}" if a == b else f"{n} {a}, now {b}" for (a, b), n in sorted(found.decided.items())]
    return "; ".join(words) or "none"
