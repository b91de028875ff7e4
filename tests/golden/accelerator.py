"""A second device, written in Python: its tensors hold CPU tensors, and no kernel takes tensors of both devices.

So what a model is given on the wrong device raises here as it does on a GPU, and what it computes can be compared with
the CPU. Only for reading models: PyTorch's autograd keeps shallow copies that lose what such a tensor holds. Its place
is a process of its own, because PyTorch cannot forget a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils import backend_registration

NAME = "second"
COPIES = ("aten::copy_", "aten::_copy_from", "aten::_to_copy")
"""What may see both devices."""
WHOLE = (
    *(
        "detach",
        "alias",
        "unsqueeze",
        "squeeze",
        "squeeze.dim",
        "squeeze.dims",
        "transpose.int",
        "permute",
        "t",
    ),
    *(
        "slice.Tensor",
        "select.int",
        "expand",
        "as_strided",
        "unfold",
        "diagonal",
        "split.Tensor",
        "unbind.int",
    ),
    *("split_with_sizes", "lift_fresh", "logsumexp"),
)
"""What PyTorch would take apart by the strides or the size of the outer tensor, which are not the inner one's."""
RESHAPES = ("view", "_unsafe_view", "_reshape_alias")


class Held(torch.Tensor):
    """A tensor of the second device around a CPU tensor."""

    held: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def around(held: torch.Tensor) -> torch.Tensor:
        made = torch._C._acc.create_empty_tensor(held.shape, held.dtype)
        made.__class__ = Held
        made.held = held
        return made


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


def install() -> list[torch.library.Library]:
    """Make the device known to PyTorch. The result must be kept: the kernels live as long as it does."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, hook=_Hooks())
    torch.__future__.set_swap_module_params_on_conversion(True)  # so that tied weights stay tied
    every = torch.library.Library("_", "IMPL", "PrivateUse1")
    every.fallback(_compute, "PrivateUse1")
    some = torch.library.Library("aten", "IMPL", "PrivateUse1")
    for name in WHOLE:
        some.impl(name, _kernel(name), "PrivateUse1")
    for name in RESHAPES:
        some.impl(name, _reshape, "PrivateUse1")
    return [every, some]


def _kernel(name: str) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return lambda *args, **kwargs: _compute(operator, *args, **kwargs)


def _reshape(tensor: Held, size: Any, *_strides: Any) -> torch.Tensor:
    return Held.around(tensor.held.reshape(size))


def _compute(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """The operator on the CPU, on what the tensors hold."""
    name = operator._schema.name
    outer, shape = pytree.tree_flatten((args, kwargs))
    to_cpu = any(isinstance(x, torch.device) and x.type == "cpu" for x in outer)
    owner: dict[int, Any] = {}
    inner = [_inside(name, x, owner) for x in outer]
    if name == "aten::_copy_from":
        inner[1].copy_(inner[0])
        return outer[1]
    given, named = pytree.tree_unflatten(inner, shape)

    def outside(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or any(x is y for y in outer):
            return x
        return owner[id(x)] if id(x) in owner else x if to_cpu else Held.around(x)

    return pytree.tree_map(outside, operator(*given, **named))


def _inside(name: str, x: Any, owner: dict[int, Any]) -> Any:
    if isinstance(x, torch.device) and x.type == NAME:
        return torch.device("cpu")
    if not isinstance(x, torch.Tensor):
        return x
    if x.device.type == NAME:
        owner[id(x.held)] = x
        return x.held
    if x.dim() and name not in COPIES:
        raise RuntimeError(f"{name}: tensors on {NAME} and on {x.device}")
    return x
