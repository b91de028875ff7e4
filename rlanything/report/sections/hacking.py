"""Whether the policy pleases its reward model instead of succeeding: mean votes against verified outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlanything.report.drawn.judging import HACKING
from rlanything.report.formatting import code, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import RECENT, Curves, Run
from rlanything.report.results.flattery import RISE, flattery
from rlanything.report.results.votes import TaskVotes, Votes
from rlanything.report.sections.parts import FIRST_AND_LAST, from_to, image, percent, signed

MOST = 10
"""Tasks that are listed."""
HEADER = [
    "arm",
    "success (%)",
    "mean vote",
    "mean vote on steps of successes",
    "mean vote on steps of failures",
]
WORDS = (
    "The environment verifies outcomes. A reward model can be pleased without one. So watch for a mean vote that rises "
    "while success does not, and for a mean vote on steps of failures that rises. A vote that rises on failures may "
    "also mean that failures have better steps than before. Where the environment has an oracle, `rlanything view` "
    "shows what it says about a step beside the votes, and `rlanything rollouts paid` which kinds of steps they pay "
    "for."
)
ONSET = (
    f"Hacking begins at the first iteration from which, to the end of a run, the mean vote of {RECENT} iterations is "
    f"at least {RISE:g} above that of the first {RECENT}, while success is not above its own."
)
VOTES = (
    "Votes are from -1 to +1. Success and the mean vote are of the buffer's tasks; the last two columns have the votes "
    "on proposals as well."
)
TESTS = (
    "The outcome of a program is its result on the task's own tests, which the reward model does not write. The tests "
    "that it writes are part of the policy's reward with the weight `signals.lambda`; with 0 the policy cannot gain "
    "from them. So watch for success that does not rise while more programs pass the written tests: tests that are "
    "right but reject little (UT without Detect) reward everything."
)
TESTS_HEADER = ["arm", "success (%)", "UT (%)", "Detect (%)"]


def hacking(data: ReportData) -> str:
    """The section."""
    title = "## Reward hacking\n\n"
    if not data.contents.acts:
        return title + _written(data)
    rows = [
        [code(arm), *_cells(runs)]
        for arm, runs in data.curves.items()
        if any(run.get("mean_vote") for run in runs.values())
    ]
    if not rows:
        return f"{title}No arm of this report has votes on steps.\n"
    return (
        f"{title}{image('Mean vote against success, by iteration and by task', HACKING)}{WORDS}\n\n"
        f"{FIRST_AND_LAST} {VOTES}\n\n{markdown_table(HEADER, rows)}\n{_onsets(data.curves)}"
        f"{_tasks(data.votes)}"
    )


def _onsets(curves: Curves) -> str:
    """Of each arm with votes the iteration from which they flatter, in words."""
    said = []
    for arm, runs in curves.items():
        pairs = {
            seed: (run["mean_vote"], run.get("accuracy", {}))
            for seed, run in runs.items()
            if run.get("mean_vote")
        }
        if pairs:
            found = {seed: one.since for seed, pair in pairs.items() if (one := flattery(*pair))}
            seeds = ", ".join(f"seed {seed} from iteration {since}" for seed, since in found.items())
            said.append(f"{code(arm)}: {seeds}" if found else f"{code(arm)}: no seed of {len(pairs)}")
    return f"{ONSET} {'; '.join(said)}.\n"


def _written(data: ReportData) -> str:
    """Of programs: success beside what the written tests are worth."""
    keys = ("accuracy", "ut", "detect")
    rows = [[code(arm), *(from_to(runs, key, percent) for key in keys)] for arm, runs in data.curves.items()]
    own = {name: arm.vote_weight for name, arm in data.config.arms.items() if arm.vote_weight is not None}
    others = "".join(f", in {code(name)} {weight:g}" for name, weight in own.items())
    weight = f"Here the weight is {data.config.signals.lambda_:g}{others}."
    return f"{TESTS} {weight}\n\n{FIRST_AND_LAST}\n\n{markdown_table(TESTS_HEADER, rows)}"


def _cells(runs: Mapping[int, Run]) -> Iterator[str]:
    yield from_to(runs, "accuracy", percent)
    yield from_to(runs, "mean_vote", signed)
    yield from_to(runs, "p_plus", lambda share: signed(2.0 * share - 1.0))
    yield from_to(runs, "p_minus", lambda share: signed(1.0 - 2.0 * share))


def _tasks(votes: Votes) -> str:
    """The tasks with good votes that flatter the most at the end of the runs."""
    found = sorted(_flattered(votes), key=lambda row: (-row[3].excess, *row[:3]))[:MOST]
    if not found:
        return ""
    rows = [
        [code(f"{arm}/seed-{seed} {slot}"), f"{t.episodes}", percent(t.success), signed(t.vote)]
        for arm, seed, slot, t in found
    ]
    return (
        f"\nTasks of the last {RECENT} iterations with a mean vote above 0 that is farthest above that of a judge who "
        "repeats the outcome on every step. "
        f"{code('rlanything buffer show RUN SLOT')} shows one.\n\n"
        + markdown_table(["run, slot", "episodes", "success (%)", "mean vote"], rows)
    )


def _flattered(votes: Votes) -> Iterator[tuple[str, int, int, TaskVotes]]:
    for arm, runs in votes.items():
        for seed, run in runs.items():
            for (slot, _), task in run.end.tasks.items():
                if task.vote > 0 and task.excess > 0:
                    yield arm, seed, slot, task
