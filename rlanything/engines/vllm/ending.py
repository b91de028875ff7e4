"""What is to stay, and what is to go, when one of several vLLMs of a process ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from torch.nn import Module

RUNNING: WeakSet[object] = WeakSet()
"""The instances of this process that have not ended."""


def keep_what_others_use() -> None:
    """Let vLLM drop what all instances of a process have in common only when none is left.

    vLLM drops process groups and workspaces whenever one instance ends, also when it is garbage-collected. The others
    then fail with "pipeline model parallel group is not initialized".
    """
    from vllm.v1.engine import core
    from vllm.v1.worker import workspace

    for module, name in ((core, "cleanup_dist_env_and_memory"), (workspace, "reset_workspace_manager")):
        dropping = getattr(module, name)
        if not isinstance(dropping, _WhenNoneIsLeft):
            setattr(module, name, _WhenNoneIsLeft(dropping))


def forget(model: Module) -> None:
    """Let vLLM forget how the layers of a model are reloaded. Otherwise their weights stay for as long as the process.

    vLLM means to forget it with the layer. But what it keeps refers to the layer, once weights were taken over.
    """
    from vllm.model_executor.model_loader.reload.layerwise import LAYERWISE_INFO

    for layer in model.modules():
        LAYERWISE_INFO.pop(layer, None)


@dataclass(frozen=True)
class _WhenNoneIsLeft:
    """Calls a function of vLLM unless an instance is running."""

    dropping: Callable[..., None]

    def __call__(self, *args: Any, **options: Any) -> None:
        if not RUNNING:
            self.dropping(*args, **options)
