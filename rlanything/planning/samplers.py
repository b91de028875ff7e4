"""Whether the configured engine can run what is configured, on this machine. No model is loaded."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rlanything import targets
from rlanything.config import ArmConfig, Config
from rlanything.core.errors import ConfigError, UserError

if TYPE_CHECKING:
    from rlanything.engines.vllm.served.settings import Serving

NATIVE = "rlanything.engines.native.NativeEngine"
VLLM = "rlanything.engines.vllm.engine.VllmEngine"
SERVERS = "rlanything.engines.vllm.served.engine.VllmServers"
READ_ONCE = (NATIVE, VLLM, SERVERS)
"""Engines that read a common beginning of prompts once."""


def check(config: Config) -> None:
    """Raise `ConfigError` for an engine that cannot use the configured accelerator, devices or models.

    vLLM need not be installed here: `installed` asks for it.
    """
    train, engine = config.train, config.engine[targets.TARGET]
    if train.accelerator in ("cuda", "mps") and engine == NATIVE:
        raise ConfigError(
            f"train.accelerator = {train.accelerator!r}: {engine} samples on the CPU only; use engine=transformers"
        )
    if engine == VLLM and (train.processes > 1 or train.strategy != "auto"):
        raise ConfigError(
            f"train.devices = {train.devices}, train.nodes = {train.nodes}, train.strategy = {train.strategy!r}: "
            "engine=vllm runs in the trainer's process and needs its process group; allowed: train.devices=1, "
            "train.nodes=1 and train.strategy=auto, or engine=vllm_servers, or engine=transformers"
        )
    if engine in (VLLM, SERVERS):
        _check_vllm(config)


def installed(config: Config) -> None:
    """Raise `ConfigError` where the engine starts vLLM on this machine, and it is missing, or of another version.

    Also where Ray must place its servers, and is missing.
    """
    if config.engine[targets.TARGET] not in (VLLM, SERVERS):
        return
    if addresses := config.engine.get("addresses"):
        from rlanything.engines.vllm.served.settings import Serving

        if Serving(**_own(Serving, config)).cluster is not None and find_spec("ray") is None:
            raise ConfigError(
                f"engine.addresses = {addresses}: Ray is not installed: pip install 'rlanything[ray]'"
            )
        return
    from rlanything.engines.vllm import support

    try:
        support.check_installed()
    except UserError as error:
        raise ConfigError(f"engine: {error}") from None


def unlike(config: Config) -> list[str]:
    """A warning for each model whose samples have another number format than its training, if nothing corrects it."""
    if config.learn.importance == "recomputed":
        return []
    chosen = config.engine.get("dtype") if config.engine[targets.TARGET] in (VLLM, SERVERS) else None
    advice = "With learn.importance = recorded nothing corrects the difference, and nothing logs it; use"
    found = []
    for name in _trained(config):
        own = config.precision(name)
        if own == "bf16-mixed":
            key = f"learn.{name}.precision" if name in config.learn.precisions else "train.precision"
            found.append(
                f"{key} = {own}: the engine samples the {name} with weights as they lie, and its updates compute under "
                f"autocast, in bfloat16. {advice} learn.importance=recomputed"
            )
        elif own == "32-true" and chosen == "bfloat16":
            found.append(
                f"engine.dtype = {chosen}: vLLM samples the {name} in another number format than it trains in "
                f"(precision {own}). {advice} learn.importance=recomputed, or engine.dtype=auto"
            )
    return found


def _trained(config: Config) -> list[str]:
    """The models that train in any arm."""
    judges = any(arm.train_reward for arm in config.arms.values())
    return ["policy", *(["reward"] if judges else [])]


def _check_vllm(config: Config) -> None:
    """What both forms of vLLM need."""
    from rlanything.engines.vllm import support
    from rlanything.engines.vllm.served.settings import Serving

    train = config.train
    if train.accelerator == "mps":
        raise ConfigError("train.accelerator = 'mps': vLLM runs on cpu and cuda; use engine=transformers")
    try:
        support.Options(**_own(support.Options, config))
        serving = Serving(**_own(Serving, config))
        _check_cluster(config, serving.cluster)
        if train.accelerator == "cpu":
            serving.check_device("cpu")
        _check_addresses(config, serving)
        if (sizes := config.model.embedded) is not None:
            advice = (
                f"Change model.embedded.hidden = {sizes.hidden} or model.embedded.heads = {sizes.heads}, or use "
                "engine=native"
            )
            support.check_heads(sizes.hidden // sizes.heads, train.accelerator, advice)
    except UserError as error:
        raise ConfigError(f"engine: {error}") from None
    _check_lora(config)


def _check_addresses(config: Config, serving: Serving) -> None:
    """Whether there are servers enough. Models claim them when they are first asked, in the middle of an iteration.

    Raises `UserError`.
    """
    if serving.cluster is not None or not serving.addresses or not config.arms:
        return
    processes, given = config.train.processes, len(serving.addresses)
    asked = {arm: _sampled_here(config, arm) for arm in config.arms}
    arm = max(asked, key=lambda name: len(asked[name]))
    needed = serving.replicas * processes * len(asked[arm])
    if given < needed:
        raise UserError(
            f"addresses: {given} of them; each of the {processes} processes (train.devices, train.nodes) has "
            f"engine.replicas = {serving.replicas} servers of its own for each model, and the arm {arm} asks "
            f"{len(asked[arm])} ({', '.join(asked[arm])}), so at least {needed}. ~arms.{arm} leaves an arm out"
        )


def _sampled_here(config: Config, arm: str) -> list[str]:
    """The models of a training of an arm that the engine samples from: those behind an endpoint are elsewhere."""
    return [name for name in loaded(config, config.arm(arm)) if name not in config.endpoints.served]


def loaded(config: Config, arm: ArmConfig) -> list[str]:
    """The models of a training of an arm. The oracle is no model."""
    there = {"policy": True, "reward": not config.judge_for(arm).is_oracle, "adapter": arm.adapt}
    return [name for name, is_there in there.items() if is_there]


def _check_cluster(config: Config, cluster: str | None) -> None:
    """A process has one connection to Ray. Raises `ConfigError` where executor and servers name two clusters."""
    executor = config.executor
    if cluster is not None and executor.form == "ray" and executor.address != cluster:
        raise ConfigError(
            f"executor.address = {executor.address!r}, engine.addresses = ['ray://{cluster}']: a process is connected "
            f"to one cluster; allowed: executor.address={cluster}, or executor=processes"
        )


def lora_apart(config: Config, name: str) -> bool:
    """Whether vLLM, in the process or in servers, is sent LoRA's weights of a model alone. Raises `UserError`."""
    from rlanything.engines.placement import Role, weight_bytes
    from rlanything.engines.vllm import support

    options = support.Options(**_own(support.Options, config))
    halved = weight_bytes(config.precision(name), Role.FROZEN) == 2
    own = "bfloat16" if halved else "float32"
    return options.sends_apart(own if options.dtype == "auto" else options.dtype)


def _check_lora(config: Config) -> None:
    """Whether vLLM takes LoRA's weights alone, where it is sent them.

    All targets that the configuration allows are matrices that it takes.
    """
    from rlanything.engines.vllm import support

    for name, lora in config.learn.lora.items():
        if not lora_apart(config, name):
            continue
        try:
            support.rank_for(lora.rank, f"learn.{name}.lora.rank")
        except UserError as error:
            raise ConfigError(str(error)) from None


def _own(of: type, config: Config) -> dict[str, Any]:
    """The keys of the section `engine` that a dataclass has."""
    names = {field.name for field in fields(of)}
    return {name: value for name, value in config.engine.items() if name in names}
