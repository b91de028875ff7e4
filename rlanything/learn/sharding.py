"""Sharded training: each process holds its part of every weight, gradient and optimizer state (PyTorch's FSDP2).

A layer's weights are gathered for its forward and backward pass, and freed after it. So every process must make the
same passes in the same order. Policy and reward model are divided on their own: an update of one gathers nothing of the
other. Gradients are divided after every micro-batch. `train.exchange` can put that off to the last one of a step, which
saves messages; until then each process holds all of them.

Samples come from a whole copy of the model, which each process has for itself. With LoRA the frozen weights are that
copy already: they lie whole in each process, once for all roles, and LoRA's weights alone are divided. To divide the
frozen ones as well would take more memory, because the whole copy would still be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import Module
from torch.optim import Optimizer
from transformers import PreTrainedModel

from rlanything.core.protocols import Engine
from rlanything.core.types import Completion, Request
from rlanything.engines.lora.injection import trained
from rlanything.learn.losses import Packed, target_logprobs

FORWARD = "target_logprobs"
"""`losses.target_logprobs` as a method of a sharded model: FSDP gathers weights for methods alone."""


HOST_AND_GPU = "cpu:gloo,cuda:nccl"
"""The process groups of a training on GPUs whose divided weights lie in the host's memory: both are exchanged."""


class CopyEngine:
    """The engine of a sharded model. It samples by `engine` from `copy`, a whole copy of the model.

    Every process must call `sync`, which brings the weights."""

    def __init__(self, engine: Engine, model: PreTrainedModel, copy: PreTrainedModel) -> None:
        self._engine, self._model, self._copy = engine, model, copy

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `Engine`."""
        return self._engine.generate(requests)

    def release(self, sessions: Sequence[str]) -> None:
        """See `Engine`."""
        self._engine.release(sessions)

    def sync(self, version: int) -> None:
        """Gather the weights into the copy, and use them."""
        gather(self._model, self._copy)
        self._engine.sync(version)

    def close(self) -> None:
        """See `Engine`."""
        self._engine.close()


class Sharding(ModelParallelStrategy):
    """Lightning's strategy, with checkpoints that any number of processes can write and read, sharded or not.

    They are one file with whole tensors, and every optimizer numbers its own weights from 0, as PyTorch does. Lightning
    numbers the weights of all models together. So it cannot read the second optimizer of another strategy's checkpoint,
    nor one that has not made a step.

    offload: each process keeps its parts in the host's memory, and steps the optimizers there. late: gradients are
    divided after the last micro-batch of a step. timeout: how long the processes wait for each other.
    """

    def __init__(
        self, processes: int, *, offload: bool = False, late: bool = False, timeout: timedelta
    ) -> None:
        super().__init__(
            data_parallel_size=processes,
            tensor_parallel_size=1,
            save_distributed_checkpoint=False,
            timeout=timeout,
        )
        self._offload = offload
        self._late = late
        self._divided: list[FSDPModule] = []

    def divide(self, model: PreTrainedModel) -> None:
        """Divide what trains of a model over the processes."""
        self._divided.append(shard(model, self.device_mesh["data_parallel"], offload=self._offload))

    @contextmanager
    def block_backward_sync(self) -> Iterator[None]:
        """Within it, where gradients are exchanged late, backward passes add them up in this process."""
        waiting = self._divided if self._late else []
        try:
            for model in waiting:
                model.set_requires_gradient_sync(False)
            yield
        finally:
            for model in waiting:
                model.set_requires_gradient_sync(True)

    def model_to_device(self) -> None:
        """Move what lies elsewhere to the device. Offloaded parts stay; what is not divided lies there already."""
        if not self._offload:
            super().model_to_device()

    def _get_process_group_backend(self) -> str:
        if self._offload and self.root_device.type == "cuda":
            return HOST_AND_GPU
        found: str = super()._get_process_group_backend()
        return found

    @property
    def lightning_restore_optimizer(self) -> bool:
        """True: Lightning calls `load_optimizer_state_dict`."""
        return True

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """The whole weights, in the first process; nothing in the others. Every process must call it.

        A tied weight has all of its names. What is not divided is given as it is: with LoRA it is left out of
        checkpoints, so a copy on the CPU would be made for nothing.
        """
        assert self.lightning_module is not None
        every = self.lightning_module.state_dict(keep_vars=True)
        distinct = {id(value): value for value in every.values()}
        found = {number: self._kept(value.detach()) for number, value in distinct.items()}
        kept = {name: found[id(value)] for name, value in every.items()}
        return {name: value for name, value in kept.items() if value is not None}

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """PyTorch's state, with whole tensors in the first process; without any in the others.

        Every process must call it.
        """
        found = optimizer.state_dict()
        state: dict[int, dict[str, Tensor]] = {}
        for number, of in found["state"].items():
            for key, value in of.items():
                kept = self._kept(value)
                if kept is not None:
                    state.setdefault(number, {})[key] = kept
        return {**found, "state": state}

    def _kept(self, value: Tensor) -> Tensor | None:
        """What a checkpoint holds of a tensor: all of it in the first process, None in the others.

        Every process must call it, because a divided tensor is gathered from all of them. The first one copies it into
        the host's memory, and the others free it at once: the first alone writes the file. If all processes of a node
        kept a copy, the node would need the memory of as many states.
        """
        gathered = whole(value)
        if not self.is_global_zero:
            return None
        return gathered.cpu() if isinstance(value, DTensor) else gathered

    def load_checkpoint(
        self, checkpoint_path: str | Path, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """The checkpoint in the file, with whole tensors."""
        path = self.broadcast(checkpoint_path)
        loaded: dict[str, Any] = self.checkpoint_io.load_checkpoint(path, weights_only=weights_only)
        return loaded

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        """Take over this process's part of every weight."""
        assert self.lightning_module is not None
        own = self.lightning_module.state_dict()
        parts = {name: _part(x, own[name]) for name, x in checkpoint["state_dict"].items()}
        self.lightning_module.load_state_dict(parts, strict)

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Take over this process's part of every optimizer state."""
        for optimizer, stored in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            weights = [weight for group in optimizer.param_groups for weight in group["params"]]
            state = {
                number: {key: _part(value, weights[number]) for key, value in of.items()}
                for number, of in stored["state"].items()
            }
            optimizer.load_state_dict({**stored, "state": state})


def shard(model: PreTrainedModel, mesh: DeviceMesh, *, offload: bool) -> FSDPModule:
    """Divide what trains of a model over the processes of `mesh`: each of its layers on its own, then the rest.

    Returns the model itself, which FSDP makes a module of its own class.

    Frozen weights stay as they are. They may be shared with other models, and have another number format.

    offload: whether the parts lie in the host's memory.
    """
    frozen = {value for value in model.parameters() if not value.requires_grad}
    policy = CPUOffloadPolicy(pin_memory=mesh.device_type == "cuda") if offload else OffloadPolicy()
    for module in (*_layers(model), model):
        fully_shard(module, mesh=mesh, offload_policy=policy, ignored_params=frozen)
    setattr(model, FORWARD, MethodType(target_logprobs, model))
    register_fsdp_forward_method(model, FORWARD)
    assert isinstance(model, FSDPModule)
    return model


def logprobs_of(model: PreTrainedModel) -> Callable[[Packed], Tensor]:
    """`losses.target_logprobs` of a model, sharded or not, from a batch alone."""
    found: Callable[[Packed], Tensor] = getattr(model, FORWARD, partial(target_logprobs, model))
    return found


def whole(tensor: Tensor) -> Tensor:
    """A tensor of which each process may hold a part, whole. Every process must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def gather(model: Module, copy: Module) -> None:
    """Write what trains of a sharded model into a whole `copy` of it, in the copy's number format.

    Tensors are gathered one at a time. Every process must call it.
    """
    targets = dict(copy.named_parameters())
    for name, part in trained(model).items():
        targets[name].copy_(whole(part.detach()))


@torch.no_grad()
def _part(tensor: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole tensor, divided and placed as `like` is.

    A scalar, such as a number of steps, stays whole.
    """
    if tensor.shape != like.shape or not isinstance(like, DTensor):
        return tensor
    divided = distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
    # `divided` is on the mesh's device, and `like` may be in the host's memory.
    part = torch.empty_like(like, dtype=tensor.dtype)
    assert isinstance(part, DTensor)
    part.to_local().copy_(divided.to_local())
    return part


def _layers(model: PreTrainedModel) -> Iterable[Module]:
    """The modules that transformers itself says must not be divided between devices: its decoder layers."""
    names = set(model._no_split_modules or ())
    return [module for module in model.modules() if type(module).__name__ in names]
