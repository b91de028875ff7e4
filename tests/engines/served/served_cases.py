"""What the tests of servers share: requests, a fake in a thread, and which processes there are."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import engine_cases as cases
import psutil
from aiohttp import web
from fake_vllm import FAULTS, TROUBLE, Fake

from rlanything.core.types import Request
from rlanything.engines.vllm import support
from rlanything.engines.vllm.served.engine import VllmServers

FAKE = Path(__file__).with_name("fake_vllm.py")
REQUESTS = [
    Request((5, 6, 7 + seed), seed, 6, session=f"{seed % 4}") for seed in range(TROUBLE - 6, TROUBLE + 6)
]


def pids(faults: Path) -> list[list[int]]:
    """The processes of the fakes that were started, in the order of their starts: the server's and its child's."""
    found = sorted(faults.parent.glob("pids-*"), key=lambda path: path.stat().st_mtime_ns)
    return [[int(part) for part in path.name.split("-")[1:]] for path in found]


def gone(pids: list[int]) -> bool:
    """Whether all of these processes have ended."""
    return not any(
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids
    )


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition. Raises `AssertionError` when it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def ask_and_stay(say: Callable[[str], object], faults: Path, weights: Path, addresses: Sequence[str]) -> None:
    """In a process of its own: ask servers, say that they have answered, and stay until somebody ends it."""
    os.environ[FAULTS] = str(faults)
    support.version = lambda: support.VERSION
    engine = VllmServers(
        cases.qwen2(), cases.tokenizer(), tolerance=1e9, folder=str(weights), addresses=addresses
    )
    engine._program = [sys.executable, str(FAKE)]
    engine.generate([Request((5, 6), 0, 4)])
    say("ready")
    time.sleep(600)


@contextmanager
def listening(model: Path, faults: Path | None = None) -> Iterator[tuple[str, Fake]]:
    """A fake at a port of this machine, in a thread of this process: (address, fake)."""
    fake, ready, loop = Fake(model, faults), threading.Event(), asyncio.new_event_loop()
    runner = web.AppRunner(fake.app, shutdown_timeout=0)

    async def serve() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.set()

    def run() -> None:
        loop.create_task(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", fake
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
