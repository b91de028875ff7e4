"""Every check of a seed, in the order in which warnings are shown."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.report.health import CAPPED, CONTEXT_FULL, KL
from rlanything.watch.advice import learning, tasks
from rlanything.watch.advice.warned import Check, Warned, share_of
from rlanything.watch.tolerant import Row

INVALID = 0.1
"""Share of replies without a verdict or a test. A model that was taught the form slips in a few percent."""
INVALID_ACTIONS = 0.3
"""Share of steps whose reply is no command. They are wasted, and an untrained form is the usual cause."""
MISMATCH = 0.01
"""Distance (k3 of the KL) of the sampler's probabilities from the trainer's. It is added to every importance ratio."""

DISAGREE = (
    "the sampler and the trainer disagree: see docs/engines.md on number formats, and docs/workers.md where "
    "train.staleness is 1"
)


def warnings(rows: Sequence[Row], panel_tasks: int | None = None) -> list[Warned]:
    """What the iterations so far warn of. The row of the last measurement, which has no rollouts, does not count.

    panel_tasks: the tasks of a panel that are measured while it trains.
    """
    trained = [row for row in rows if "accuracy" in row or "policy_trajectories" in row]
    found = [*(check(trained) for check in CHECKS), learning.below_base(rows, panel_tasks)]
    return [one for one in found if one is not None]


CHECKS: Sequence[Check] = (
    learning.not_finite,
    learning.nothing_learnt,
    learning.at_chance,
    learning.falling,
    learning.alike,
    learning.flattered,
    tasks.no_spread,
    tasks.few_in_band,
    tasks.no_rewrite,
    tasks.bad_proposals,
    share_of(
        "invalid votes", "invalid_votes", INVALID, "{:.0%} of the votes hold no verdict",
        "check model.verdict_format, judge.max_tokens and the judge's prompt",
    ),
    share_of(
        "invalid tests", "invalid_tests", INVALID, "{:.0%} of the replies hold no test that can be read",
        "check judge.max_tokens and the prompt of the test writer",
    ),
    share_of(
        "invalid actions", "invalid_actions", INVALID_ACTIONS, "{:.0%} of the replies are no command",
        "check model.action_format and rollout.max_tokens, or set rollout.decoding: constrained",
    ),
    tasks.errors(
        "env_error", "crashed",
        "`rlanything rollouts show RUN` has the error of an episode; the environment or its machine is at fault",
    ),
    tasks.errors("timeout", "timed out", "raise rollout.timeout_s, or use fewer workers (executor)"),
    share_of(
        "context full", "context_full", CONTEXT_FULL,
        "the policy's context was full in {:.0%} of the episodes, which were cut off and count as failures",
        "raise engine.context (embedded models: model.embedded.positions), lower rollout.max_tokens, or shorten what "
        "the environment shows",
    ),
    share_of(
        "policy moves far", "policy/kl", KL, "the policy moves by a KL of {:.2f} in an iteration",
        "lower learn.policy.lr or raise learn.beta",
    ),
    *(
        share_of(
            f"mismatch of {name}", f"{name}/mismatch_kl", MISMATCH,
            f"the sampler's probabilities of {name} differ from the trainer's by a KL of {{:.3f}}",
            "see docs/engines.md on number formats; a lower learn.importance_cap, or learn.importance_mask, keeps it "
            "harmless",
        )
        for name in ("policy", "reward")
    ),
    *(
        share_of(
            f"cut ratios of {name}", f"{name}/ratio_capped", CAPPED,
            f"{{:.1%}} of the importance ratios of {name} were cut at learn.importance_cap",
            DISAGREE,
        )
        for name in ("policy", "reward")
    ),
    *(
        share_of(
            f"masked tokens of {name}", f"{name}/ratio_masked", CAPPED,
            f"{{:.1%}} of the tokens of {name} taught nothing, as their ratio was outside of learn.importance_mask",
            DISAGREE,
        )
        for name in ("policy", "reward")
    ),
)  # fmt: skip
"""In the order in which their warnings are shown: what loses the run first."""
