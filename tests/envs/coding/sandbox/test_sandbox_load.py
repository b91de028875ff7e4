"""No false verdict under load: the same programs judged on an idle and on an overloaded machine.

Limits are on CPU time, so what else runs does not matter to a program that stays clear of them: those below use at most
a fifth of the limit, or would never end. Nothing can promise as much for a program that needs 99 % of it.
"""

import multiprocessing
import os
import random
import time

import pytest
from conftest import opened

from envs.coding.sandbox import Call, Job, Limits, Status, Stdio

LIMITS = Limits(cpu_s=0.5, wall_s=2.5, memory_mb=128, output_kb=64, file_mb=4, disk_mb=16)
SPIN = "import time\nwhile time.process_time() < {}: pass\n"


def program(rng):
    """A job and the status that is right for it. Most programs are short, as most are; some never end."""
    a, b = rng.randrange(1000), rng.randrange(1000)
    add, text = "a, b = map(int, input().split())\nprint(a + b)\n", f"{a} {b}\n"
    right = str(a + b)
    kinds = {
        "right": (Job(add, [Stdio(text, right)] * rng.randint(1, 3)), Status.OK, 30),
        "wrong": (Job(add, [Stdio(text, right + "0")]), Status.WRONG, 15),
        "busy": (Job(SPIN.format(rng.uniform(0.02, 0.1)) + add, [Stdio(text, right)]), Status.OK, 15),
        "asleep": (
            Job(f"import time\ntime.sleep({rng.uniform(0, 0.2)})\n" + add, [Stdio(text, right)]),
            Status.OK,
            5,
        ),
        "threads": (
            Job(
                "import threading\nn = []\nts = [threading.Thread(target=n.append, args=(i,)) for i in range(8)]\n"
                "[t.start() for t in ts]\n[t.join() for t in ts]\nprint(sum(n))",
                [Stdio("", "28")],
            ),
            Status.OK,
            5,
        ),
        "processes": (
            Job(
                "import os\nfor i in range(4):\n    if os.fork() == 0:\n        os._exit(0)\n"
                "for i in range(4):\n    os.wait()\nprint(4)",
                [Stdio("", "4")],
            ),
            Status.OK,
            5,
        ),
        "call": (Job("def f(a, b):\n    return [a + b]", [Call("f", [a, b], [a + b])]), Status.OK, 10),
        "error": (Job("1 / 0", [Stdio("", "")]), Status.ERROR, 5),
        "syntax": (Job("print(", [Stdio("", "")]), Status.SYNTAX, 3),
        "memory": (Job("x = bytearray(1 << 30)", [Stdio("", "")]), Status.MEMORY, 2),
        "large": (Job("x = bytearray(40 << 20)\nprint(len(x))", [Stdio("", str(40 << 20))]), Status.OK, 2),
        "output": (Job("while True: print('x' * 99)", [Stdio("", "")]), Status.OUTPUT_LIMIT, 1),
        "endless": (Job("while True: pass", [Stdio("", "")]), Status.TIMEOUT, 1),
        "sleeper": (Job("import time\ntime.sleep(99)", [Stdio("", "")]), Status.TIMEOUT, 1),
    }
    name = rng.choices(list(kinds), [weight for *_, weight in kinds.values()])[0]
    job, status, _ = kinds[name]
    return name, job, status


def burn(stop):
    parent = multiprocessing.parent_process()
    while not stop.is_set() and parent.is_alive():  # a test that was killed leaves nobody burning
        sum(range(1_000_000))


class Overloaded:
    """Some processes a CPU that do nothing but use it."""

    def __init__(self, per_cpu):
        context = multiprocessing.get_context("spawn")
        self.stop = context.Event()
        count = per_cpu * (os.cpu_count() or 1)
        self.burners = [context.Process(target=burn, args=(self.stop,), daemon=True) for _ in range(count)]

    def __enter__(self):
        for burner in self.burners:
            burner.start()
        time.sleep(0.5)

    def __exit__(self, *error):
        self.stop.set()
        for burner in self.burners:
            burner.join()


def judged(request, count, per_cpu):
    """(kind, right status, status) of every program, idle and overloaded."""
    rng = random.Random(count)
    work = [program(rng) for _ in range(count)]
    with opened(request, "bwrap", LIMITS, workers=2) as sandbox:
        idle = [verdict.status for verdict in sandbox.run([job for _, job, _ in work])]
        with Overloaded(per_cpu):
            overloaded = [verdict.status for verdict in sandbox.run([job for _, job, _ in work])]
        replaced = sandbox.replaced
    rows = [(kind, right) for kind, _, right in work]
    return rows, idle, overloaded, replaced


def check(request, count, per_cpu):
    rows, idle, overloaded, replaced = judged(request, count, per_cpu)
    wrong = [
        (*row, *found)
        for row, *found in zip(rows, idle, overloaded, strict=True)
        if found != [row[1], row[1]]
    ]
    assert wrong == []
    assert replaced == 0


def test_verdicts_under_load(request):
    check(request, count=60, per_cpu=3)


@pytest.mark.slow
def test_a_thousand_verdicts_under_load(request):
    check(request, count=1000, per_cpu=4)
