"""How many rows vLLM decodes at once: as many as find room for their keys and values in `engine.cache_gib`.

Every row is counted with all of its tokens, as long as the longest one. Rows with a common beginning have it once in
vLLM, and most rows are shorter. So more rows may find room, and the time that follows is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.planning.costs.endpoints import endpoint_of
from rlanything.planning.costs.low_rank import sharing
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.work.workload import Calls
from rlanything.planning.samplers import SERVERS, VLLM, loaded, lora_apart
from rlanything.targets import TARGET

GIB = 2**30
BLOCK = 32
"""Tokens of a block of vLLM's cache, which one row has alone: `engines.vllm.instance.BLOCK`."""

Width = Callable[[str], int]
"""The name of a model -> bytes of a weight of what samples."""


@dataclass(frozen=True)
class Held:
    """Rows of some calls that the cache holds at once, where it holds fewer than could be sampled together."""

    stage: str
    calls: str
    tokens: int
    """Tokens of the longest row."""
    rows: int
    wanted: int
    """Rows that are asked for together: `engine.max_batch`, or fewer."""
    gib: float
    """The `engine.cache_gib` that would hold them."""


def cache_bytes(config: Config) -> float:
    """What `engine.cache_gib` is in bytes."""
    return float(config.engine.get("cache_gib", 1.0)) * GIB


def given(config: Config) -> bool:
    """Whether the servers of the engine are on other devices than the trainer's, or started by somebody else."""
    return config.engine[TARGET] == SERVERS and bool(config.engine.get("addresses"))


def replicas(config: Config) -> int:
    """How many vLLMs each model has."""
    return int(config.engine.get("replicas", 1)) if config.engine[TARGET] == SERVERS else 1


def parts(
    config: Config, models: Iterable[str], sizes: Mapping[str, Size], widths: Width
) -> dict[str, float]:
    """The part of the cache that each of some models has, whose engines are open together; the sum is 1.

    They are in proportion to a prompt with its reply as long as the model's context. See `engines.vllm.budget`. A model
    behind an endpoint has none.
    """
    needs = {
        name: config.context(sizes[name].positions) * token_bytes(config, sizes[name], widths(name))
        for name in models
        if endpoint_of(config, name) is None
    }
    return {name: need / sum(needs.values()) for name, need in needs.items()}


def training_parts(
    config: Config, arm_name: str, learns: Sequence[str], sizes: Mapping[str, Size], widths: Width
) -> dict[str, float]:
    """The same of the models of a training. learns: those that train.

    In the trainer's process all models that share frozen weights have one vLLM, where LoRA's are kept apart.
    """
    arm = config.arm(arm_name)
    used = loaded(config, arm)
    shared = sharing(config, arm, used, learns) if config.engine[TARGET] == VLLM else {}
    tenants = {name: holder for name, holder in shared.items() if lora_apart(config, name)}
    found = parts(config, [name for name in used if name not in tenants], sizes, widths)
    return found | {name: found[holder] for name, holder in tenants.items() if holder in found}


def rows_held(config: Config, longest: int, token: float, part: float) -> int | None:
    """The rows of `longest` tokens that all vLLMs of a model hold together, at least one in each.

    token: bytes of the keys and values of a token. part: of the cache, that the model has. None: nothing is known of
    the cache, or the engine is another one.
    """
    share = _share(config, part)
    if share is None:
        return None
    return replicas(config) * max(1, math.floor(cache_bytes(config) * share / _row_bytes(longest, token)))


def held(
    config: Config, stage: str, calls: Calls, size: Size, width: int, part: float, devices: int
) -> Held | None:
    """What the cache holds of some calls; None where it holds all rows that are sampled together.

    width: bytes of a weight of the model that samples. part: of the cache, that the model has.
    """
    if endpoint_of(config, calls.model) is not None:
        return None
    token = token_bytes(config, size, width)
    rows, share = rows_held(config, calls.longest, token, part), _share(config, part)
    wanted = math.ceil(min(int(config.engine.get("max_batch", 1)), calls.at_once / devices))
    if rows is None or share is None or rows >= wanted:
        return None
    each = math.ceil(wanted / replicas(config)) * _row_bytes(calls.longest, token)
    return Held(stage, calls.name, calls.longest, rows, wanted, each / share / GIB)


def least_gib(config: Config, size: Size, width: int, part: float) -> float:
    """The least `engine.cache_gib` with which the engine of a model starts: room for a prompt with its reply.

    width: bytes of a weight of the model that samples. part: of the cache, that the model has. 0 where the engine is
    another one, or nothing is known of the cache.
    """
    share = _share(config, part)
    return config.context(size.positions) * token_bytes(config, size, width) / share / GIB if share else 0.0


def token_bytes(config: Config, size: Size, width: int) -> float:
    """Bytes of the keys and values of a token in vLLM. width: bytes of a weight of the model."""
    return size.layers * 2 * size.kv * copied(config, width)


def copied(config: Config, width: int) -> int:
    """Bytes of a weight in vLLM's copy. width: bytes of the model's own."""
    return {"float32": 4, "bfloat16": 2}.get(config.engine.get("dtype", "auto"), width)


def _share(config: Config, part: float) -> float | None:
    """The part of the cache that each vLLM of a model has. part: of the model. Each server that Ray places has all."""
    if config.engine[TARGET] not in (VLLM, SERVERS):
        return None
    if not given(config):
        return part / replicas(config)
    from rlanything.engines.vllm.served.settings import SCHEME

    return 1.0 if str(config.engine["addresses"][0]).startswith(SCHEME) else None


def _row_bytes(tokens: int, token: float) -> float:
    """Bytes of a row in whole blocks. token: of one token."""
    return math.ceil(tokens / BLOCK) * BLOCK * token
