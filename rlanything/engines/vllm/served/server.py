"""One server of a model: brought up with given weights, asked, and ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.instance import Ask
from rlanything.engines.vllm.served.process import SOCKET, Process
from rlanything.engines.vllm.served.wire import UNIX, Client, Limits, LostError, RefusedError, generate_all

LOOK_S = 0.2
"""Seconds between two looks whether a server is up."""
ANSWER_S = 10.0
"""Longest time that a server may take to say that it is well, seconds."""


@dataclass(frozen=True)
class Weights:
    """Weights that a server has, or is to have.

    folder: with a configuration, and the whole state as safetensors.
    lora: the folder of LoRA's weights, in peft's format. Then the whole state is the frozen one, and stays.
    """

    folder: Path
    name: str
    lora: Path | None = None


class Server:
    """One server.

    Args:
        address: of a server that somebody has started; None: `start` starts one.
        start: given a folder for socket and log.
        folder: where the folders of its processes are made.
        limits: of requests.
        start_s: the longest time that it may take to come up, seconds.
    """

    def __init__(
        self,
        address: str | None,
        start: Callable[[Path], Process],
        folder: Path,
        limits: Limits,
        start_s: float,
    ) -> None:
        self._given, self._start, self._folder = address, start, folder
        self._limits, self._start_s = limits, start_s
        self._process: Process | None = None
        self._started = 0
        self._has: Weights | None = None
        self._name, self._loads = "", 0
        self._was_up = False
        self.address = address or ""

    @property
    def what(self) -> str:
        """Its name in messages."""
        return f"the server at {self.address}" if self._given else "a server of vLLM"

    def bring_up(self, weights: Weights) -> bool:
        """Have it run with these weights. Returns whether it did not have them before.

        Raises `LostError`. `UserError`: it ended before it was up for the first time. `MachineError`: a given one is
        not there. `RefusedError`: it was started in another way than it must be.
        """
        if self._has == weights:
            return False
        begins = self._process is None and not self._given  # then it reads the whole state when it starts
        if begins:
            self._begin()
        self._await()
        frozen = self._has is not None and weights.lora is not None
        whole = None if begins or frozen else str(weights.folder)
        last, had_lora = self._name, self._with_lora
        name = self._new_name(weights)
        lora = None if weights.lora is None else str(weights.lora)
        asyncio.run(self._with(lambda client: client.load(name, whole=whole, lora=lora)))
        self._has, self._name = weights, name
        if had_lora:
            asyncio.run(self._with(lambda client: client.forget_lora(last)))
        return True

    @property
    def _with_lora(self) -> bool:
        """Whether LoRA's weights sample."""
        return self._has is not None and self._has.lora is not None

    def _new_name(self, weights: Weights) -> str:
        """A name that this server never had. It may have cached prefixes under the last one, with other weights."""
        self._loads += 1
        return f"{weights.name}, given {self._loads}"

    async def generate(
        self, asked: Mapping[int, Ask], found: dict[int, tuple[list[int], list[float]]]
    ) -> None:
        """See `wire.generate_all`. Raises `LostError` also before `bring_up`."""
        if self._has is None:
            raise LostError(f"{self.what} has no weights yet")
        async with Client(self.address, self._limits) as client:
            await generate_all(client, asked, self._name, found, lora=self._with_lora)

    def lose(self) -> str:
        """End what is left of it, so that `bring_up` begins anew. Returns the end of its log."""
        self._has = None
        process, self._process = self._process, None
        if process is None:
            return ""
        process.note_end()
        process.kill()
        return process.last_words()

    def close(self) -> None:
        """End it, if it was started here. A given one forgets the name of LoRA's weights, whose files go."""
        process, self._process = self._process, None
        if self._given and self._with_lora:
            with suppress(LostError, RefusedError):
                asyncio.run(self._with(lambda client: client.forget_lora(self._name), ANSWER_S))
        self._has = None
        if process is not None:
            process.stop()

    def _begin(self) -> None:
        self._started += 1
        folder = self._folder / f"{self._started}"
        folder.mkdir()
        self._process = self._start(folder)
        self.address = f"{UNIX}{folder / SOCKET}"

    def _await(self) -> None:
        """Wait until it says that it is well."""
        end = time.monotonic() + self._start_s
        while True:
            try:
                asyncio.run(self._with(lambda client: client.call("GET", "/health"), ANSWER_S))
                self._was_up = True
                return
            except LostError as lost:
                why = str(lost)
            if self._process is not None and self._process.ended:
                self._ended()
            if time.monotonic() > end:
                error = MachineError if self._given else LostError  # whoever started it must look after it
                raise error(f"{self.what} was not up after {self._start_s:g} s ({why})")
            time.sleep(LOOK_S)

    def _ended(self) -> None:
        if self._was_up:
            raise LostError(f"{self.what} ended while it started")
        words = self.lose()
        raise UserError(f"vLLM's server cannot run this model here; the end of its log:\n{words}")

    async def _with(self, do: Callable[[Client], object], timeout_s: float | None = None) -> None:
        limits = self._limits if timeout_s is None else Limits(timeout_s, 1)
        async with Client(self.address, limits) as client:
            await do(client)  # type: ignore[misc]
