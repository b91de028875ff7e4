"""Stored rollouts as people read them: `rlanything rollouts show`. One rollout is shown with its texts, the
replies of the reward model, the rewards and advantages that follow from them, and what of it trained.

Nothing here is computed in a way of its own: records are read by the replay's readers, and rewards come from `core`.
What replies are asked for, and how they become rewards, depends on the kind of reward model: `votes` and `unit_tests`.
"""

from rlanything.rollouts.cli import show

__all__ = ["show"]
