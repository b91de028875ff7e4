"""One server of a model: brought up with given weights, asked, and ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.instance import Ask
from rlanything.engines.vllm.served.placed import Placed
from rlanything.engines.vllm.served.process import Process
from rlanything.engines.vllm.served.wire import (
    LOADING,
    Client,
    Limits,
    LostError,
    RefusedError,
    generate_all,
)

LOOK_S = 0.2
"""Seconds between two looks whether a server is up."""
ANSWER_S = 10.0
"""Longest time that a server may take to say that it is well, seconds."""
TAKEN = "address already in use"
"""What the system says of a port that another program has, in small letters. It was free when it was chosen."""


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
        start: given a folder for socket and log, which a server that Ray places does not need.
        folder: where the folders of its processes are made.
        limits: of requests.
        start_s: the longest time that it may take to come up, seconds.
    """

    def __init__(
        self,
        address: str | None,
        start: Callable[[Path], Process | Placed],
        folder: Path,
        limits: Limits,
        start_s: float,
    ) -> None:
        self._given, self._start, self._folder = address, start, folder
        self._limits, self._start_s = limits, start_s
        self._process: Process | Placed | None = None
        self._started = 0
        self._has: Weights | None = None
        self._name, self._loads = "", 0
        self._lora = ""  # the last name of LoRA's weights here: a given server may know it also when lost
        self._was_up = False
        self.address = address or ""

    @property
    def what(self) -> str:
        """Its name in messages."""
        return f"the server at {self.address}" if self._given else "a server of vLLM"

    def lacks(self, weights: Weights) -> bool:
        """Whether it must be brought up to have these weights."""
        return self._has != weights

    async def bring_up(self, weights: Weights) -> None:
        """Have it run with these weights.

        Raises `LostError`. `UserError`: it ended before it was up for the first time. `MachineError`: a given one is
        not there. `RefusedError`: it was started in another way than it must be.
        """
        begins = self._process is None and not self._given  # then it reads the whole state when it starts
        if begins:
            self._begin()
        await self._await()
        await self._with(partial(self._take_over, weights, begins))
        self._has = weights

    async def _take_over(self, weights: Weights, begins: bool, client: Client) -> None:
        """Give it weights under a name that it never had: it may have cached prefixes under the last one.

        Meanwhile they have a name that nobody asks for: what is sampled from parts of two states is no answer.
        """
        self._loads += 1
        name = f"{weights.name}, given {self._loads}"
        await client.name(f"{LOADING}{name}")
        known = self._lora != "" and await client.forget_lora(self._lora)  # not by one that began anew
        frozen = known and self._has is not None and weights.lora is not None
        if not (begins or frozen):
            await client.load(weights.folder)
        self._lora = ""
        if weights.lora is not None:
            self._lora = name
            await client.load_lora(name, weights.lora)
        await client.name(name)
        self._name = name

    async def generate(
        self, asked: Mapping[int, Ask], found: dict[int, tuple[list[int], list[float]]]
    ) -> None:
        """See `wire.generate_all`. Raises `LostError` also before `bring_up`."""
        if self._has is None:
            raise LostError(f"{self.what} has no weights yet")
        async with Client(self.address, self._limits) as client:
            await generate_all(client, asked, self._name, found, lora=self._lora != "")

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
        if self._given and self._lora:
            with suppress(LostError, RefusedError):
                asyncio.run(self._with(lambda client: client.forget_lora(self._lora), ANSWER_S))
        self._has, self._lora = None, ""
        if process is not None:
            process.stop()

    def _begin(self) -> None:
        self._started += 1
        self._lora = ""
        folder = self._folder / f"{self._started}"
        folder.mkdir()
        self._process = self._start(folder)

    async def _await(self) -> None:
        """Wait until it says that it is well. Other servers come up meanwhile."""
        process = self._process
        if process is not None:
            await self._place(process)
        end = time.monotonic() + self._start_s
        async with Client(self.address, Limits(ANSWER_S, 1)) as client:
            while why := await _unwell(client):
                if process is not None and await asyncio.to_thread(lambda: process.ended):
                    await self._ended()
                if time.monotonic() > end:
                    # Whoever started it must look after it.
                    error = MachineError if self._given else LostError
                    raise error(f"{self.what} was not up after {self._start_s:g} s ({why})")
                await asyncio.sleep(LOOK_S)
        # At a port that it found free another program may answer by now.
        if process is not None and await asyncio.to_thread(lambda: process.ended):
            await self._ended()
        self._was_up = True

    async def _place(self, process: Process | Placed) -> None:
        """Wait until it is known where it listens."""
        while not (address := process.where()):
            await asyncio.sleep(LOOK_S)
        self.address = address

    async def _ended(self) -> None:
        """Raise `LostError` where another start may help, else `UserError`."""
        if self._was_up or (self._process is not None and self._process.gone):
            raise LostError(f"{self.what} ended while it started")
        words = await asyncio.to_thread(self.lose)
        if TAKEN in words.lower():
            raise LostError(
                f"another program has taken a port that was chosen for it; the end of its log:\n{words}"
            )
        raise UserError(f"vLLM's server cannot run this model here; the end of its log:\n{words}")

    async def _with(self, do: Callable[[Client], Awaitable[object]], timeout_s: float | None = None) -> None:
        limits = self._limits if timeout_s is None else Limits(timeout_s, 1)
        async with Client(self.address, limits) as client:
            await do(client)


async def _unwell(client: Client) -> str:
    """Why a server does not say that it is well; '' when it does."""
    try:
        await client.call("GET", "/health")
    except LostError as lost:
        return str(lost)
    return ""
