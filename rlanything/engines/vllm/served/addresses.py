"""Servers that somebody else has started: which of them is of a model, and which are free.

One list is for all models of a run. The processes of a training divide it. A model takes servers that were started with
its architecture, and that no other engine of the process has. What else would go wrong there, the probe of the engine
notices.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from torch import distributed

from rlanything.core.errors import UserError
from rlanything.core.types import Json
from rlanything.engines.vllm.served import program
from rlanything.engines.vllm.served.wire import Client, Limits, LostError, RefusedError

SHAPE = (
    "architectures",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "tie_word_embeddings",
)
"""Keys of a configuration that must be equal for a server to take over a model's weights."""
ANSWER_S = 10.0


def own_part(addresses: Sequence[str]) -> Sequence[str]:
    """The addresses for this process: under torchrun, process r of n has number r, r + n, r + 2n, ...

    Two processes cannot have one server: each would take away the other's weights.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return addresses
    return addresses[distributed.get_rank() :: distributed.get_world_size()]


class Claims:
    """Which engine of this process has which servers."""

    def __init__(self) -> None:
        self._taken: WeakKeyDictionary[object, tuple[str, ...]] = WeakKeyDictionary()

    def take(
        self, engine: object, addresses: Sequence[str], count: int, model: Path, context: int, *, sees: bool
    ) -> tuple[str, ...]:
        """The first `count` servers that are free and fit the configuration in the folder `model`.

        sees: whether they will be shown pictures.

        Raises `UserError` that says of each server why it was not taken, where there are not so many.
        """
        self.leave(engine)
        others = {address for taken in self._taken.values() for address in taken}
        found, reasons = [], []
        for address in addresses:
            taken = "another model of this run has it" if address in others else ""
            why = taken or _unfit(address, model, context, sees=sees)
            if why:
                reasons.append(f"{address}: {why}")
            else:
                found.append(address)
            if len(found) == count:
                self._taken[engine] = tuple(found)
                return tuple(found)
        raise UserError(
            f"engine.addresses: {len(found)} servers for a model that needs {count}. " + "; ".join(reasons)
        )

    def leave(self, engine: object) -> None:
        """Give back what an engine has. An unknown one is ignored."""
        self._taken.pop(engine, None)


CLAIMS = Claims()
"""The claims of this process."""


def _unfit(address: str, model: Path, context: int, *, sees: bool) -> str:
    """Why a server cannot have the weights of a model; '' when it can."""
    try:
        listed = asyncio.run(_models(address))
        (served,) = (card for card in listed["data"] if not card.get("parent"))  # but for LoRA's weights
        name, root, longest = served["id"], Path(served["root"]), int(served["max_model_len"])
    except (LostError, RefusedError) as error:
        return f"no server of vLLM answers ({error})"
    except (AttributeError, KeyError, TypeError, ValueError):
        return "it does not say which model it has"
    theirs = _configuration(root)
    if theirs is None:
        return f"its model {root} is no folder that can be read here; start it with the absolute path of a checkpoint"
    ours = _configuration(model) or {}
    apart = [key for key in SHAPE if theirs.get(key) != ours.get(key)]
    if apart:
        return f"its model has another {apart[0]} ({theirs.get(apart[0])}, not {ours.get(apart[0])})"
    if sees and name != program.NAME:
        return (
            f"it would read pictures in another way than training; start it with python -m {program.__name__}"
        )
    return "" if longest == context else f"its context has {longest} tokens, not {context} (--max-model-len)"


async def _models(address: str) -> Json:
    async with Client(address, Limits(ANSWER_S, 1)) as client:
        return await client.call("GET", "/v1/models")


def _configuration(folder: Path) -> Mapping[str, Json] | None:
    """Keys of a configuration; of a model that reads pictures, those of its language model too."""
    try:
        found = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    text = found.get("text_config")
    return {**text, **found} if isinstance(text, dict) else found
