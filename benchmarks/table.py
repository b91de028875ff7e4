"""The measurements as a table and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from benchmarks.machine import Measured

ROWS = (
    ("environment steps/s", "env", "ours_steps_per_s", "TextWorld", "textworld_steps_per_s"),
    ("", "env", "ours_steps_per_s", "TextWorld with our caches", "textworld_cached_steps_per_s"),
    (
        "sampled tokens/s",
        "sampling",
        "ours_tokens_per_s",
        "generate, each turn anew",
        "generate_tokens_per_s",
    ),
    ("votes/s", "votes", "ours_per_s", "each vote by itself", "separate_per_s"),
    ("", "votes", "ours_per_s", "generate", "generate_per_s"),
)
"""(label, section, our key, what it is compared with, its key)."""
WORDS = {
    "rollout": "the policy's tokens, its prompts, the environment",
    "judge": "the reward model's votes on every step, its prompts",
    "adapt": "critics and proposals of new tasks",
    "learn": "forward and backward passes of both models, optimizer steps",
    "publish": "serialising, hashing and syncing the iteration: rollouts, buffer, checkpoint",
    "rest": "packing rows, signals, decisions, the trainer's own work",
}


def show(result: Measured, console: Console | None = None) -> None:
    """Print the table, where an iteration's time goes, and what was left out."""
    console = console or Console()
    console.print(table(result))
    for line in sentences(result):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def table(result: Measured) -> Table:
    """One row for every comparison; `-` where something was not measured."""
    made = Table("", "ours", "compared with", "rate", "times")
    for label, section, key, other, other_key in ROWS:
        ours, theirs = result[section][key], result[section][other_key]
        times = ours / theirs if theirs else None
        made.add_row(label, number(ours) if label else "", other, number(theirs), number(times))
    made.add_row("training tokens/s", number(result["training"]["tokens_per_s"]), "", "", "")
    if result["iteration"]:
        made.add_row("seconds per iteration", number(result["iteration"]["seconds"]), "", "", "")
    return made


def sentences(result: Measured) -> Iterator[str]:
    """The same in words: shares of an iteration, the machine, the notes."""
    found = result["iteration"]
    if found:
        yield (
            f"One iteration of arm {found['arm']}: {found['seconds']:.1f} s on the clock, "
            f"{found['cpu_seconds']:.1f} s of CPU. Where it goes:"
        )
        for name, share in sorted(found["shares"].items(), key=lambda item: -item[1]):
            yield f"  {name:<8}{share:>6.1%}  {WORDS[name]}{_inside(found, name)}"
    here = result["machine"]
    yield (
        f"{here['cpu']}, {here['cores']} cores at load {here['load']}, torch {here['torch']}, {here['threads']} "
        "thread. Rates are per CPU second; seconds per iteration are on the clock."
    )
    yield from result["notes"]


def _inside(found: Measured, name: str) -> str:
    """What one part of an iteration spends its time on."""
    if name == "publish":
        spent = found["publish"]
        return f" ({spent['seconds']:.2f} s, {spent['sync_seconds']:.2f} s of it waiting for the disk)"
    share = found["generate"].get(name)
    return f" ({share:.0%} of it sampling)" if share is not None else ""


def number(value: float | None) -> str:
    """Three figures, thousands separated; `-` for nothing."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
