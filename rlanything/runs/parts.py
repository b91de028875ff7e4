"""The parts of a run of one seed, built from the configuration: models, loop, module, and what measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transformers import PreTrainedModel

from rlanything.config import ArmConfig, Checkpoint, Config
from rlanything.core.protocols import TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.engines.openai.engine import OpenAIEngine
from rlanything.engines.openai.usage import Usage
from rlanything.files.images import FOLDER as IMAGES
from rlanything.files.images import ImageStore
from rlanything.learn.module import JointModule
from rlanything.loop.adapt import Adapter
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.loop.iteration import Loop
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import RolloutWorker
from rlanything.loop.share import shared
from rlanything.rewards.kind import RewardKind, kind_of
from rlanything.runs import build
from rlanything.runs.layout import Layout, trained
from rlanything.runs.networks import Model, Networks, See
from rlanything.runs.panels import Curve

KEPT = "replies"
"""The folder with the replies of endpoints in a live folder. A finished run has them in its records."""


@dataclass(frozen=True)
class RunId:
    """The root, arm and seed of a run, and its live folder."""

    root: Path
    arm: str
    seed: int
    live: Path


@dataclass(frozen=True)
class Parts:
    """The parts of a run of one seed."""

    arm: ArmConfig
    run_seed: int
    policy: Model
    reward: Model | None
    """None: the oracle or an endpoint judges."""
    endpoints: Mapping[str, OpenAIEngine]
    """The engines of the roles that an endpoint serves."""
    kind: RewardKind
    loop: Loop
    module: JointModule
    curve: Curve
    images: ImageStore
    """The pictures that the environments show, in the live folder."""

    def spent(self, processes: int) -> dict[str, float]:
        """What the replies of endpoints cost since the last call, as metrics; all `processes` of the run together."""
        metrics: dict[str, float] = {}
        for role, engine in self.endpoints.items():
            own = engine.take_usage()
            usage = sum(shared(range(processes), partial(_each, own)), Usage())
            metrics |= usage.metrics(role, engine.endpoint)
        return metrics


def _each(usage: Usage, part: Sequence[int]) -> list[Usage]:
    """What this process used, for each number of a process that it stands for."""
    return [usage for _ in part]


def make_parts(config: Config, run: RunId, engines: ExitStack) -> Parts:
    """Load the models and build the parts. Raises `ConfigError`.

    engines: closes the engines that are opened here. A model that the arm does not ask gets none.
    """
    arm = config.arm(run.arm)
    run_seed = derive_seed(config.seed, "run", run.seed)
    family, prompts = build.family(config), build.prompts(config, run.root)
    images = ImageStore(run.live / IMAGES, Layout(run.root).panel_images)
    endpoints = _endpoints(config, arm, run, images)  # before minutes of work: an endpoint may be missing
    served = {
        role: engines.enter_context(build.served(config, engine, images))
        for role, engine in endpoints.items()
    }
    shown = partial(_sight, config, run.root, images)
    networks = Networks(config, run.root, run_seed, engines)
    policy = networks.learning(config.model.policy, "policy", partial(shown, "policy"))
    reward = None if "reward" in served else _reward(config, arm, run, networks, partial(shown, "reward"))
    rollout_worker = RolloutWorker(family, policy.chat, prompts, config.rollout, images)
    kind = kind_of(config)
    judge = reward.chat if reward else served.get("reward")
    loop = Loop(
        config,
        arm,
        run_seed,
        rollout_worker,
        kind.reward_model(config, arm, run_seed, family, judge, prompts),
        _adapter(config, family, prompts, served.get("adapter"), networks) if arm.adapt else None,
        config.proposer,
    )
    evaluation = kind.evaluation(config, family, judge, prompts) if judge else None
    curve = Curve(config, arm, run_seed, Layout(run.root), rollout_worker, evaluation)
    module = _module(config, arm, policy, reward, networks)
    return Parts(arm, run_seed, policy, reward, endpoints, kind, loop, module, curve, images)


def _endpoints(config: Config, arm: ArmConfig, run: RunId, images: ImageStore) -> dict[str, OpenAIEngine]:
    """The endpoints that the arm asks, by role. Their replies are kept beside the iterations."""
    asked = {"reward": not config.judge_for(arm).is_oracle, "adapter": arm.adapt}
    keep = run.live / KEPT
    found = {role: build.endpoint(config, role, keep / role, images) for role in asked if asked[role]}
    return {role: engine for role, engine in found.items() if engine is not None}


def _adapter(
    config: Config, family: TaskFamily, prompts: Prompts, served: ChatModel | None, networks: Networks
) -> Adapter:
    model = served or networks.still(config.model.adapter, "adapter").chat
    return Adapter(family, model, prompts, config.adaptation, config.rollout.timeout_s)


def _sight(
    config: Config, root: Path, images: ImageStore, role: str, source: Checkpoint, network: PreTrainedModel
) -> Sight | None:
    return build.sight(config, role, source, root, network, images)


def _reward(config: Config, arm: ArmConfig, run: RunId, networks: Networks, see: See) -> Model | None:
    """The reward model; None where the oracle judges."""
    if config.judge_for(arm).is_oracle:
        return None
    source = _reward_checkpoint(config, arm, run)
    return (
        networks.learning(source, "reward", see)
        if arm.train_reward
        else networks.still(source, "reward", see)
    )


def _reward_checkpoint(config: Config, arm: ArmConfig, run: RunId) -> Checkpoint:
    """The initial reward model: the base model, or the one that the arm in `reward_from` has trained."""
    if arm.reward_from is None:
        return config.model.reward
    return trained(config, run.root, arm.reward_from, run.seed, "reward")


def _module(
    config: Config, arm: ArmConfig, policy: Model, reward: Model | None, networks: Networks
) -> JointModule:
    """The module of the models that learn.

    With `learn.kl_reference = base` it also holds their first weights, frozen.
    """
    models = {"policy": policy, **({"reward": reward} if reward else {})}
    learning = models if arm.train_reward else {"policy": policy}
    anchored = learning if config.learn.kl_reference == "base" else {}
    references = {name: networks.frozen(model.source, name)[0] for name, model in anchored.items()}
    return JointModule(
        config.learn,
        policy.network,
        reward.network if reward and arm.train_reward else None,
        references.get("policy"),
        references.get("reward"),
        {n: sight.eyes for n, model in models.items() if (sight := model.chat.sight) and sight.eyes},
    )
