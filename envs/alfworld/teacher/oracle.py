"""Exact labels of steps: which commands are good, given what the agent has seen so far, and why.

While something that is needed has not been seen, it helps to inspect a receptacle that could hold it and that was not
inspected before. As soon as something can be done, only commands that shorten the remaining plan help. Looking
around, asking for help, examining known things and going back never help.

A command that helps is good when it also brings the goal nearer than it has been before in the episode. Taking the
target again after it was put back helps, but is not good. Without this rule a policy that is rewarded for good steps
takes and puts back for ever.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from envs.alfworld.games.alfred import alfred
from envs.alfworld.play.commands import Act, apply
from envs.alfworld.play.episode import Episode
from envs.alfworld.play.planning import MISSING, Planner
from envs.alfworld.play.world import NOTHING, State, World


class Reason(StrEnum):
    """Why a step is good or bad, in a few words that a small model can learn to write."""

    NEW_PLACE = "new place"
    """Good: inspects a receptacle that could hold what was not found yet."""
    RIGHT_WAY = "right way"
    """Good: goes to, or opens, what the plan needs next."""
    TARGET_FOUND = "target found"
    """Good: takes the target."""
    RIGHT_TOOL = "right tool"
    """Good: cleans, heats, cools or switches on."""
    RIGHT_PLACE = "right place"
    """Good: puts the first of two targets away."""
    HANDS_FREED = "hands freed"
    """Good, once in an episode: puts down something that the goal does not need."""
    GOAL_REACHED = "goal reached"
    """Good: the last step."""
    NOT_POSSIBLE = "not possible"
    """Bad: not an admissible command."""
    ALREADY_SEEN = "already seen"
    """Bad: goes back to an inspected receptacle while something was not found yet."""
    WRONG_OBJECT = "wrong object"
    """Bad: takes or treats something that the goal does not need."""
    WRONG_PLACE = "wrong place"
    """Bad: goes to, opens or uses a receptacle that does not help."""
    NO_PROGRESS = "no progress"
    """Bad: changes nothing that matters, or undoes something."""
    DONE_BEFORE = "done before"
    """Bad: helps, but only to where the episode has been before."""


class StepLabel(NamedTuple):
    """The label of one step."""

    good: bool
    reason: Reason


_USELESS = frozenset({"look", "inventory", "help", "close", "slice"})
_TREATMENTS = frozenset({"clean", "heat", "cool"})


class Oracle:
    """Follows an episode and labels commands before they are performed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.episode = Episode(world)
        self.won = False
        self.inspected: frozenset[int] = frozenset()
        self.known: frozenset[int] = frozenset()
        self._planner = Planner(world)
        self._observe(None)
        self._credited: set[Act | Reason] = set()
        """What was good once and is not good again: commands of the search, and `HANDS_FREED`."""
        self._nearest = self._planner.distance(self.episode.state, self.known)
        """The least distance to the goal in the episode so far."""

    def step(self, command: str) -> tuple[str, StepLabel]:
        """Perform a command; returns its text and its label."""
        act = None if self.won else self.episode.acts.get(command)
        label = self.label(command)
        if act is not None and label.good:
            self._credited |= {self._credit(act, label.reason)}
        text = self.episode.step(command)
        self._observe(act)
        self.won = self.won or self.world.is_won(self.episode.state)
        self._nearest = min(self._nearest, self._planner.distance(self.episode.state, self.known))
        return text, label

    def label(self, command: str) -> StepLabel:
        """The label of a command in the present state of the episode."""
        act = self.episode.acts.get(command)
        if act is None or self.won:
            return StepLabel(False, Reason.NOT_POSSIBLE)
        label = self._help(act)
        if label.good and not self._is_new(act, label.reason):
            return StepLabel(False, Reason.DONE_BEFORE)
        return label

    def helpful_commands(self) -> list[str]:
        """All commands that help in the present state, in alphabetical order. Following them reaches the goal."""
        acts = self.episode.acts
        return [c for c in self.episode.commands if acts[c].verb not in _USELESS and self._help(acts[c]).good]

    def _is_new(self, act: Act, reason: Reason) -> bool:
        """Whether a command that helps leads to where the episode has not been."""
        if self._searching() or reason is Reason.HANDS_FREED:
            return self._credit(act, reason) not in self._credited
        state = apply(self.world, self.episode.state, act)
        return self._planner.distance(state, self.known) < self._nearest

    @staticmethod
    def _credit(act: Act, reason: Reason) -> Act | Reason:
        return reason if reason is Reason.HANDS_FREED else act

    def _help(self, act: Act) -> StepLabel:
        """Whether a command helps, whatever happened before in the episode."""
        state = self.episode.state
        if act.verb in _USELESS:
            return StepLabel(False, Reason.NO_PROGRESS)
        before = self._planner.distance(state, self.known)
        if before % MISSING == 0:
            return self._help_search(state, act)
        after_state = apply(self.world, state, act)
        if self._planner.distance(after_state, self.known) < before:
            return StepLabel(True, self._merit(after_state, act))
        return StepLabel(False, self._fault(state, act, searching=False))

    def _help_search(self, state: State, act: Act) -> StepLabel:
        """Whether a command helps while something must be found first."""
        wanted = self.wanted()
        here = self.world.receptacles_at[state.place]
        shut = [r for r in here if r in wanted and not self.world.is_open(state, r)]
        good = False
        if act.verb == "go":
            good = act.receptacle in wanted and not shut
        elif act.verb == "open":
            good = act.receptacle in wanted
        elif act.verb == "examine":
            good = act.receptacle in wanted and act.receptacle not in shut
        elif act.verb == "use":
            good = act.thing in self.world.lamps and not self.world.lamps & state.toggled
        elif act.verb == "move":
            good = act.thing not in self.world.targets
        return StepLabel(good, self._merit(state, act) if good else self._fault(state, act, searching=True))

    def wanted(self) -> set[int]:
        """Receptacles to inspect: those that could hold what was not found yet; where there are none, all others."""
        world, tables = self.world, alfred()
        unseen = [r for r in range(len(world.receptacles)) if r not in self.inspected]
        found: set[int] = set()
        if len(self.known & world.targets) < max(1, world.goal.copies):
            kinds = world.receptacle_classes
            found = {r for r in unseen if tables.can_hold(kinds[r], world.goal.target)}
            if world.goal.task == "pick":
                found -= world.destinations
        if world.goal.lamp and not self.known & world.lamps:
            found |= {r for r in unseen if r not in world.openable}
        return found or set(unseen)

    def _observe(self, act: Act | None) -> None:
        """Note what the text and the commands have just shown."""
        world, state = self.world, self.episode.state
        shown = {act.receptacle} if act and act.verb in ("go", "open", "examine") else set()
        for r in world.receptacles_at[state.place]:
            self.known |= state.inside[r] & world.toggleable
            if world.is_open(state, r) and (r in shown or state.held == NOTHING):
                self.inspected |= {r}
                self.known |= state.inside[r]

    def _merit(self, after: State, act: Act) -> Reason:
        if self.world.is_won(after):
            return Reason.GOAL_REACHED
        if act.verb in ("go", "open", "examine"):
            return (
                Reason.RIGHT_WAY
                if act.receptacle in self.inspected or not self._searching()
                else Reason.NEW_PLACE
            )
        if act.verb == "take":
            return Reason.TARGET_FOUND
        if act.verb == "move":
            return Reason.RIGHT_PLACE if act.thing in self.world.targets else Reason.HANDS_FREED
        return Reason.RIGHT_TOOL

    def _searching(self) -> bool:
        return self._planner.distance(self.episode.state, self.known) % MISSING == 0

    def _fault(self, state: State, act: Act, searching: bool) -> Reason:
        if act.verb == "take" or act.verb in _TREATMENTS:
            return Reason.NO_PROGRESS if act.thing in self.world.targets else Reason.WRONG_OBJECT
        if act.verb in ("go", "open") and searching:
            return Reason.ALREADY_SEEN if act.receptacle in self.inspected else Reason.WRONG_PLACE
        return Reason.WRONG_PLACE if act.verb in ("go", "open", "move") else Reason.NO_PROGRESS
