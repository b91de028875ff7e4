"""The servers of one model. A lost one is started again with the same weights, and asked again what it did not answer.

An answer depends on its request alone, so it does not matter which server gives it, nor how often it was asked.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import MachineError
from rlanything.engines.lora.merging import frozen_state
from rlanything.engines.vllm.copying import Sampled
from rlanything.engines.vllm.instance import Ask
from rlanything.engines.vllm.served.server import Server, Weights
from rlanything.engines.vllm.served.store import Store
from rlanything.engines.vllm.served.wire import LostError, SwappedError, together

Found = dict[int, tuple[list[int], list[float]]]
AGAIN = "it is brought up again"


class Fleet:
    """Servers of one model.

    Args:
        servers: at least one.
        store: where the weights are written.
        restarts: how many servers may be lost, all of them together, before the run ends. An answer sets the count
            back, but for servers with other weights: two trainings that share one would go on for ever.
        accept: is given what samples, whenever a server has new weights; raises where it does not accept it.
        say: prints a line about a lost server.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        store: Store,
        restarts: int,
        accept: Callable[[Callable[[Sequence[Ask]], Sampled]], None],
        say: Callable[[str], None],
    ) -> None:
        self._servers, self._store, self._restarts = servers, store, restarts
        self._lost = self._swapped = 0
        self._accept, self._say = accept, say
        self._weights: Weights | None = None

    def load(self, weights: Mapping[str, Tensor], name: str) -> None:
        """Give all servers the whole state of a module under a name; start those that do not run.

        Raises `MachineError` when servers were lost too often, and what `Server.bring_up` and `accept` raise.
        """
        self._give(Weights(self._store.write(weights), name))

    def load_lora(self, model: PreTrainedModel, name: str) -> None:
        """Give all servers LoRA's weights of a module under a name. The frozen ones are given once, before.

        Raises as `load`.
        """
        before = self._weights
        whole = self._store.write(frozen_state(model)) if before is None else before.folder
        self._give(Weights(whole, name, self._store.write_lora(model)))

    def _give(self, own: Weights) -> None:
        self._weights = own
        self._bring_up(own)

    def generate(self, asked: Sequence[Ask], salt: str) -> Sampled:
        """Answers in the order of the questions, by the weights that were loaded last, under the name `salt`.

        Raises as `load`, and `MachineError` for the name of other weights.
        """
        weights = self._weights
        if weights is None or weights.name != salt:
            has = "no weights" if weights is None else repr(weights.name)
            raise MachineError(f"the servers have {has}, and {salt!r} must sample; nothing was asked")
        found: Found = {}
        parts = divide(asked, len(self._servers))
        while len(found) < len(asked):
            self._bring_up(weights)
            answered = len(found)
            lost = asyncio.run(self._round(parts, found))
            if len(found) > answered:
                self._lost = self._swapped
            for number, cause in lost.items():
                missing = len(parts[number].keys() - found.keys())
                self._lose(self._servers[number], cause, f"{missing} requests are asked again")
        return [found[number] for number in range(len(asked))]

    def close(self) -> None:
        """End the servers that were started here, and remove the weights. All of it, also after an error."""
        with ExitStack() as stack:
            stack.callback(self._store.close)
            for server in self._servers:
                stack.callback(server.close)

    async def _round(self, parts: Sequence[Mapping[int, Ask]], found: Found) -> dict[int, LostError]:
        """Ask every server what is missing of its part. Returns which servers were lost, and why."""
        lost: dict[int, LostError] = {}

        async def ask(number: int) -> None:
            missing = {i: one for i, one in parts[number].items() if i not in found}
            try:
                await self._servers[number].generate(missing, found)
            except LostError as error:
                lost[number] = error

        await asyncio.gather(*(ask(number) for number in range(len(parts))))
        return lost

    def _bring_up(self, weights: Weights) -> None:
        """Have all servers run with the weights, and the samples of each accepted. They come up side by side.

        The samples are accepted one after the other: the first that are accepted of a load have the module read.
        """
        while lacking := [server for server in self._servers if server.lacks(weights)]:
            asyncio.run(together(self._start(server, weights) for server in lacking))
            for server in lacking:
                try:
                    self._accept(partial(_alone, server))
                except LostError as error:
                    self._lose(server, error, AGAIN)

    async def _start(self, server: Server, weights: Weights) -> None:
        """Have a server run with the weights."""
        while server.lacks(weights):
            try:
                await server.bring_up(weights)
            except LostError as error:
                words = await asyncio.to_thread(server.lose)  # it may take seconds, in which others come up
                self._count(server, error, words, AGAIN)

    def _lose(self, server: Server, cause: LostError, then: str) -> None:
        self._count(server, cause, server.lose(), then)

    def _count(self, server: Server, cause: LostError, words: str, then: str) -> None:
        """Count a server that was lost, and say so. words: the end of its log."""
        told = f"{server.what} was lost: {cause}" + (f"\n{words}" if words else "")
        if self._lost == self._restarts:
            raise MachineError(
                f"engine.restarts = {self._restarts}: more servers than that were lost, with no answer in between or "
                f"with other weights. The last one: {told}\n"
                "What is published stays, and the same command goes on from there"
            )
        self._lost += 1
        self._swapped += isinstance(cause, SwappedError)
        self._say(f"engine: {then}, because {told}")


def _alone(server: Server, asked: Sequence[Ask]) -> Sampled:
    found: Found = {}
    asyncio.run(server.generate(dict(enumerate(asked)), found))
    return [found[number] for number in range(len(asked))]


def divide(asked: Sequence[Ask], count: int) -> list[dict[int, Ask]]:
    """The questions of each server, by their number. A session stays at one server, whose cache has its beginning."""
    parts: list[dict[int, Ask]] = [{} for _ in range(count)]
    for number, one in enumerate(asked):
        name = one.session or ",".join(map(str, one.prompt))
        parts[zlib.crc32(name.encode()) % count][number] = one
    return parts
