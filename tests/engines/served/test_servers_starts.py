"""How servers come up: how they are looked after while they start, and when."""

from __future__ import annotations

import sys

from served_cases import FAKE, REQUESTS

from rlanything.engines.vllm.served import server

SLOWLY = "import os, sys, time\ntime.sleep(1.5)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
"""A program that begins later than a server does."""


def test_one_client_looks_whether_a_server_is_up(opened, monkeypatch):
    looks = []

    class Looking(server.Client):
        """Notes who asks for the health of a server."""

        async def call(self, method, path, body=None):
            if path == "/health":
                looks.append(self)
            return await super().call(method, path, body)

    monkeypatch.setattr(server, "Client", Looking)
    engine = opened()
    engine._program = [sys.executable, "-S", "-c", SLOWLY, str(FAKE)]
    assert len(engine.generate(REQUESTS)) == len(REQUESTS)
    assert len(looks) > 4
    assert len(set(looks)) == 1
