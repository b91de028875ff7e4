"""Calls and tokens outside the iterations: the panels of bootstrap, label, the learning curves and evaluate.

Lengths of prompts and replies are estimated as in `workload`. An episode on a panel has at most `evaluate.max_steps`
steps, one of the reward panel at most `rollout.max_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlanything.config import BASE, BASE_COOLED, Config
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.work.prompts import policy_prompts, questions
from rlanything.planning.costs.work.workload import Calls, acting, judging
from rlanything.rewards.kind import kind_of
from rlanything.stages import BOOTSTRAP, EVALUATE, LABEL

ADAPTER, JUDGE, OTHER_POLICY, SOLVER = "adapter", "judge ", "reward_policy", "solver"
"""Names of models in sizes and calls, besides `policy` and `reward`. The name of a judge follows `JUDGE`."""


@dataclass(frozen=True)
class StageWork:
    """The calls of the models in a stage or a measurement."""

    name: str
    calls: tuple[Calls, ...]
    """The calls each time that it is done."""
    times: int
    """How often one seed does it."""
    every_seed: bool
    """Whether every seed does it; if not, it is done once for all seeds and arms."""
    training: bool = False
    """Whether it is part of a training, with the devices, number formats and engines of the training."""
    together: bool = False
    """Whether all of its models are open at once. Elsewhere outside of a training there is one at a time."""


@dataclass(frozen=True)
class Measuring:
    """The stages of a configuration."""

    config: Config
    positions: Mapping[str, int]
    """The longest context of each model, by its name."""
    given: Assumptions

    def shared(self) -> tuple[StageWork, ...]:
        """What is done once for all arms: bootstrap, label if needed, evaluation of `base` and `base_cooled`."""
        panels = (*self._reward_panel(), *self._policy_panels(1))
        stages = [StageWork(BOOTSTRAP, panels, 1, False, together=True)]
        if self.config.evaluate.own_panel:
            stages.append(StageWork(LABEL, self._labels(), 1, False))
        return (*stages, StageWork(f"{EVALUATE} {BASE}", self._final(), 1, True), *self._cooled())

    def of_arm(self, name: str) -> tuple[StageWork, ...]:
        """The learning curves and the final evaluation of an arm."""
        evaluate, arm, last = self.config.evaluate, self.config.arm(name), self.config.train.iterations
        points = sum(k % evaluate.every == 0 or k == last for k in range(last + 1))
        judged = points if arm.train_reward else 1
        curve = self._policy_panels(1, evaluate.curve_tasks)
        stages = [StageWork("curves, policy", curve, points, True, training=True)]
        final = self._policy_panels(evaluate.repeats)
        if not self.config.judge_for(arm).is_oracle:  # the oracle is not a model
            stages.append(StageWork("curves, reward", (self._reward_curve(),), judged, True, training=True))
            final = self._final()
        final = (*final, *(self._solving() if arm.adapt else ()))
        return (*stages, StageWork(EVALUATE, final, 1, True))

    def _prompts(self, max_steps: int, model: str = "policy") -> list[int]:
        return policy_prompts(self.config, self.positions[model], self.given, max_steps)

    def _policy_panels(self, repeats: int, most: int | None = None) -> tuple[Calls, ...]:
        """The policy's calls on each panel, or on the first `most` tasks of each."""
        prompts = self._prompts(self.config.evaluate.max_steps)
        tasks = self.config.tasks
        counts = {name: tasks.panels[name].tasks for name in tasks.policy_panels}
        return tuple(
            acting(self.config, repeats * min(count, most or count), prompts, self.given, name=name)
            for name, count in counts.items()
        )

    def _cooled(self) -> tuple[StageWork, ...]:
        """The base policy at each temperature on the cooling tasks, and at the best temperature on the panels."""
        evaluate = self.config.evaluate
        if evaluate.cooling is None:
            return ()
        episodes = len(evaluate.cooling.temperatures) * evaluate.cooling.tasks * evaluate.cooling.repeats
        tried = acting(
            self.config, episodes, self._prompts(evaluate.max_steps), self.given, name="temperatures"
        )
        return (
            StageWork("cooling", (tried,), 1, False),
            StageWork(f"{EVALUATE} {BASE_COOLED}", self._policy_panels(evaluate.repeats), 1, True),
        )

    def _reward_tasks(self, most: int | None = None) -> int:
        """Tasks of all reward panels, or of the first `most` of each."""
        tasks = self.config.tasks
        counts = [tasks.panels[name].tasks for name in tasks.reward_panels]
        return sum(min(count, most or count) for count in counts)

    def _tried(self, model: str) -> tuple[list[int], Calls]:
        """The prompts of a policy's episode on a task of the reward panels, and the calls of all episodes."""
        config = self.config
        episodes = self._reward_tasks() * config.evaluate.reward_rollouts
        prompts = self._prompts(config.rollout.max_steps, model)
        return prompts, acting(config, episodes, prompts, self.given, name="reward panel", model=model)

    def _judged(
        self, tasks: int, rollouts: int, prompts: Sequence[int], config: Config, model: str = "reward"
    ) -> Calls:
        """The calls for `config.judge.m` votes on every step, or `config.judge.m` tests of every task."""
        count = tasks if kind_of(config).replies.per_task else tasks * rollouts
        asked = questions(config, prompts, self.positions[model], self.given)
        return judging(config, count, asked, name="reward panel", model=model)

    def _reward_panel(self) -> tuple[Calls, ...]:
        """The calls that make the reward panels, and those of the base reward model on them."""
        config = self.config
        prompts, tried = self._tried("policy")
        size = (self._reward_tasks(), config.evaluate.reward_rollouts)
        return tried, self._judged(*size, prompts, config)

    def _labels(self) -> tuple[Calls, ...]:
        """The calls of `evaluate.reward_policy` where it is set, and the votes of every judge."""
        config, evaluate = self.config, self.config.evaluate
        calls: list[Calls] = []
        prompts = self._prompts(config.rollout.max_steps)
        if evaluate.reward_policy is not None:
            config = config.rolling_out(evaluate.reward_policy)
            prompts, tried = replace(self, config=config)._tried(OTHER_POLICY)
            calls.append(tried)
        for name in evaluate.judges if evaluate.labels == "judge" else ():
            judge = evaluate.judges[name]
            asking = config.asking(m=judge.votes, **judge.sampling)
            size = (self._reward_tasks(), evaluate.reward_rollouts)
            calls.append(self._judged(*size, prompts, asking, JUDGE + name))
        return tuple(calls)

    def _reward_curve(self) -> Calls:
        config, evaluate = self.config, self.config.evaluate
        tasks = self._reward_tasks(evaluate.curve_tasks)
        rollouts = min(evaluate.curve_rollouts, evaluate.reward_rollouts)
        return self._judged(tasks, rollouts, self._prompts(config.rollout.max_steps), config)

    def _final(self) -> tuple[Calls, ...]:
        """The calls of policy and reward model of one seed on the whole panels."""
        config, evaluate = self.config, self.config.evaluate
        prompts = self._prompts(config.rollout.max_steps)
        size = (self._reward_tasks(), evaluate.reward_rollouts)
        judged = self._judged(*size, prompts, config.asking(m=evaluate.votes))
        return (*self._policy_panels(evaluate.repeats), judged)

    def _solving(self) -> tuple[Calls, ...]:
        """The calls of the solver, where it is a model. Upper bound: every rewrite is accepted."""
        config, evaluate = self.config, self.config.evaluate
        if evaluate.solver is None:
            return ()
        config = config.rolling_out(evaluate.solver)
        accepted = config.train.iterations * config.rollout.tasks * self.given.rewritten_share
        prompts = replace(self, config=config)._prompts(evaluate.max_steps, SOLVER)
        episodes = accepted * evaluate.solver_tries
        return (acting(config, episodes, prompts, self.given, name="accepted tasks", model=SOLVER),)
