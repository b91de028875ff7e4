"""What LiveBench's box contains, tried from inside by programs that the grader's process runs itself.

In the place of LiveBench's grader stands one that hides nothing from an answer: what holds here, the box holds.
Run as a program, by any user: prints the facts as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

from envs.coding.livebench import boxed_grader
from envs.coding.livebench.install import GRADER, Installation

FLOOD_MB = 100
OPEN_GRADER = """
def LCB_generation_process_results(question, answer):
    scope = {}
    exec(answer, scope)
    return scope["score"]
"""
FORKS = """
import os, signal
children = []
try:
    while len(children) < 300:
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
raise RuntimeError(len(children))
"""
WRITABLE = """
import os
found = {}
for folder in {line.split()[4] for line in open("/proc/self/mountinfo")} | {"/", "/usr", "/home", "/dev/pts"}:
    path = os.path.join(folder, "written")
    try:
        open(path, "w").close()
    except OSError:
        continue
    room = os.statvfs(folder)
    found[folder] = room.f_blocks * room.f_frsize >> 20
raise RuntimeError(sorted(found.items()))
"""
FLOOD = f"""
import os
for end in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 1]:
    for _ in range({FLOOD_MB} * 16):
        try:
            os.write(end, b"x" * 65536)
        except OSError:
            break
os._exit(7)
"""
DEEP = """
import os
for end in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]:
    try:
        os.write(end, b"[" * 5000 + b"\\n")
    except OSError:
        pass
score = 1
"""
PROGRAMS = {
    "right": "score = 1",
    "bytes": "import os\nos.write(2, b'\\xff\\xfe')\nscore = 1",
    "dying words": "import os\nos.write(2, b'\\xff\\x1b[2J gone')\nos._exit(7)",
    "long error": "raise RuntimeError('x' * 10_000_000)",
    "deep result": DEEP,
    "forks": FORKS,
    "writable": WRITABLE,
    "flood": FLOOD,
}
QUESTION: dict[str, Any] = {}


def stand_in(folder: Path, python: str = sys.executable) -> Installation:
    """An installation whose grader is the open one."""
    path = folder / GRADER
    path.parent.mkdir(parents=True)
    path.write_text(OPEN_GRADER)
    return Installation(str(folder), "", False, python, "", {})


def facts(folder: Path, python: str) -> dict[str, Any]:
    """By program (score, error), and the most memory that the harness took to hear them."""
    installed = stand_in(folder, python)
    tracemalloc.start()
    grades = {
        name: boxed_grader.grade_in_box(installed, [(QUESTION, text)], 1)[0]
        for name, text in PROGRAMS.items()
    }
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {**{name: [g.score, g.error] for name, g in grades.items()}, "peak_mb": peak / 2**20}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(facts(Path(made, "repository"), sys.executable)))
