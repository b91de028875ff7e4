"""What LoRA takes: its own weights, what autograd keeps for them, and who shares the frozen ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rlanything.config import ArmConfig, Checkpoint, Config, LoraConfig
from rlanything.engines.placement import Role, weight_bytes
from rlanything.planning.costs.sizes import Size

FULL, HALF = 4, 2


def sides(size: Size) -> dict[str, tuple[int, int]]:
    """(what it reads, what it writes) of each matrix of a decoder layer."""
    hidden, wide = size.hidden, size.intermediate
    return {
        "q_proj": (hidden, size.attention),
        "k_proj": (hidden, size.kv),
        "v_proj": (hidden, size.kv),
        "o_proj": (size.attention, hidden),
        "gate_proj": (hidden, wide),
        "up_proj": (hidden, wide),
        "down_proj": (wide, hidden),
    }


def lora_weights(size: Size, lora: LoraConfig) -> int:
    """The weights of LoRA in a model. Nothing else of it trains."""
    return size.layers * lora.rank * sum(sum(sides(size)[name]) for name in lora.targets)


def learned(config: Config, name: str, size: Size) -> tuple[int, int]:
    """How many weights of a model its optimizer changes, and the bytes of each. With LoRA they are LoRA's alone."""
    lora = config.learn.lora.get(name)
    if lora is not None:
        return lora_weights(size, lora), FULL
    return size.parameters, weight_bytes(config.precision(name), Role.TRAINED)


def kept_bytes(size: Size, lora: LoraConfig, precision: str) -> int:
    """Bytes that autograd keeps of one token in one layer for LoRA alone.

    It keeps what the factor B reads. Where the frozen weights are bfloat16 it also keeps a copy of what A reads, for
    each target: in float32, or under autocast in bfloat16.
    """
    copied = {"32-true": 0, "bf16-mixed": HALF, "bf16-true": FULL}[precision]
    inner = HALF if precision == "bf16-mixed" else FULL
    return sum(copied * sides(size)[name][0] + inner * lora.rank for name in lora.targets)


def sharing(config: Config, arm: ArmConfig, used: Iterable[str], learns: Collection[str]) -> dict[str, str]:
    """Role -> the role that trains with LoRA and has the same checkpoint in the same format, so that it is there.

    A reward model that another arm has trained is another checkpoint than the one that the configuration names, unless
    LoRA trained it: then its frozen weights are those.
    """

    def source(role: str) -> tuple[Checkpoint | str, int]:
        named: Checkpoint = getattr(config.model, role)
        other = role == "reward" and "reward" not in config.learn.lora
        width = weight_bytes(config.precision(role), Role.FROZEN)
        return arm.reward_from if other and arm.reward_from else named, width

    holders: dict[tuple[Checkpoint | str, int], str] = {}
    for role in learns:
        if role in config.learn.lora:
            holders.setdefault(source(role), role)
    shares = [role for role in used if role in config.learn.lora or role not in learns]
    return {role: holders[source(role)] for role in shares if holders.get(source(role), role) != role}
