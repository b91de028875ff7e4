"""Whether the configured engine can run what is configured, on this machine. No model is loaded."""

from __future__ import annotations

from rlanything import targets
from rlanything.config import Config
from rlanything.core.errors import ConfigError, UserError

NATIVE = "rlanything.engines.native.NativeEngine"
VLLM = "rlanything.engines.vllm.engine.VllmEngine"
READ_ONCE = (NATIVE, VLLM)
"""Engines that read a common beginning of prompts once."""


def check(config: Config) -> None:
    """Raise `ConfigError` for an engine that cannot use the configured accelerator, devices or models."""
    train, engine = config.train, config.engine[targets.TARGET]
    if train.accelerator in ("cuda", "mps") and engine == NATIVE:
        raise ConfigError(
            f"train.accelerator = {train.accelerator!r}: {engine} samples on the CPU only; use engine=transformers"
        )
    if engine == VLLM:
        _check_vllm(config)


def _check_vllm(config: Config) -> None:
    """The process of vLLM has one process group, and vLLM needs it for itself."""
    from rlanything.engines.vllm import support

    train = config.train
    if train.devices > 1 or train.strategy != "auto":
        raise ConfigError(
            f"train.devices = {train.devices}, train.strategy = {train.strategy!r}: engine=vllm runs in the trainer's "
            "process and needs its process group; allowed: train.devices=1 and train.strategy=auto, or "
            "engine=transformers"
        )
    if train.accelerator == "mps":
        raise ConfigError("train.accelerator = 'mps': vLLM runs on cpu and cuda; use engine=transformers")
    try:
        support.check_installed()
        support.check_settings(**{k: v for k, v in config.engine.items() if k in support.CHECKED})
        if (sizes := config.model.embedded) is not None:
            advice = (
                f"Change model.embedded.hidden = {sizes.hidden} or model.embedded.heads = {sizes.heads}, or use "
                "engine=native"
            )
            support.check_heads(sizes.hidden // sizes.heads, train.accelerator, advice)
    except UserError as error:
        raise ConfigError(f"engine: {error}") from None
