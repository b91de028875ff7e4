"""Engines over servers that are fakes, and the folder of their faults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import engine_cases as cases
import pytest
import served_cases
from fake_vllm import FAULTS

from rlanything.engines.vllm import support
from rlanything.engines.vllm.served.engine import VllmServers


@pytest.fixture
def faults(tmp_path, monkeypatch) -> Path:
    """A folder: a file in it is a fault that the request with the seed `TROUBLE` meets, once."""
    folder = tmp_path / "faults"
    folder.mkdir()
    monkeypatch.setenv(FAULTS, str(folder))
    return folder


@pytest.fixture
def opened(faults, monkeypatch) -> Iterator[Callable[..., VllmServers]]:
    """Opens engines whose servers are fakes, and closes them. Their log-probs are accepted whatever they are."""
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    made: list[VllmServers] = []
    with ExitStack() as stack:

        def open_engine(model=None, **arguments) -> VllmServers:
            memory = 1.0 + len(made)  # those that have started keep what they have
            settings = {"cache_gib": memory, "tolerance": 1e9, "request_s": 20, "start_s": 60, **arguments}
            engine = VllmServers(model or cases.qwen2(), cases.tokenizer(), **settings)
            engine._program = [sys.executable, str(served_cases.FAKE)]
            stack.callback(engine.close)
            made.append(engine)
            return engine

        yield open_engine
