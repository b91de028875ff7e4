"""Which back ends work here: each is opened and must contain a few probes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from envs.coding.sandbox.factory import BACKENDS, open_sandbox
from envs.coding.sandbox.types import Job, Limits, SandboxError, Status, Stdio

LIMITS = Limits(cpu_s=1.0, wall_s=3.0, memory_mb=128, disk_mb=16)
CONTAINED = "contained"

LIMITED = {
    "right answer": (f"print({CONTAINED!r})", Status.OK),
    "CPU time": ("while True: pass", Status.TIMEOUT),
    "clock": ("import time\ntime.sleep(60)", Status.TIMEOUT),
    "memory": ("x = []\nwhile True: x.append(bytearray(1 << 20))", Status.MEMORY),
    "output": ("while True: print('x' * 1000)", Status.OUTPUT_LIMIT),
}
"""Programs and the status that every back end must give them."""

_TRY = f"""
try:
    attempt()
except OSError:
    print({CONTAINED!r})
"""
SEALED = {
    "no network": "import socket\ndef attempt(): socket.create_connection(('127.0.0.1', 9), 1)",
    "no writing": "def attempt(): open('/usr/lib/x', 'w')",
    "no other processes": "import os\ndef attempt(): os.kill(os.getpid() + 1 if os.getpid() < 9 else 2, 0)",
    "few processes": "import os, time\ndef attempt():\n    while True:\n        os.fork() or time.sleep(9)",
}
"""Attempts that a sandbox must refuse."""


def probe(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """{works, reason, start_s, probes}: whether a back end starts here and contains the probes."""
    start = time.perf_counter()
    probes = dict(LIMITED)
    if name != "subprocess":
        probes |= {what: (attempt + _TRY, Status.OK) for what, attempt in SEALED.items()}
    try:
        with open_sandbox(name, workers=1, limits=LIMITS, trusted=True, **options) as sandbox:
            started = time.perf_counter() - start
            results = sandbox.judge([Job(program, [Stdio("", CONTAINED)]) for program, _ in probes.values()])
    except SandboxError as error:
        return {"works": False, "reason": str(error)}
    failed = [
        f"{what}: {result.status}"
        for (what, (_, status)), result in zip(probes.items(), results, strict=True)
        if result.status is not status
    ]
    return {
        "works": not failed,
        "reason": "; ".join(failed),
        "start_s": round(started, 3),
        "probes": len(probes),
    }


def check(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """`probe` of every back end; `options`: further arguments of `open_sandbox` by back end."""
    return {name: probe(name, options.get(name, {})) for name in BACKENDS}
