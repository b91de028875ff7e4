"""No false verdict under load: the same programs judged on an idle and on an overloaded machine.

Limits are on CPU time, so what else runs does not matter to a program that stays clear of them: those below use at most
a fifth of the limit, or would never end. Nothing can promise as much for a program that needs 99 % of it.
"""

import contextlib
import os
import random
import subprocess
import sys
import time

import pytest
from sandbox_cases import opened

from envs.coding.sandbox import Call, Job, Limits, Status, Stdio, open_sandbox

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("load")]
"""One after the other: what one test burns would be in the times of another."""

LIMITS = Limits(cpu_s=0.5, wall_s=2.5, memory_mb=128, output_kb=64, file_mb=4, disk_mb=16)
SPIN = "import time\nwhile time.process_time() < {}: pass\n"
WORK = "import os, threading, time\ndef work():\n    "
WORK += "end = time.thread_time() + {}\n    while time.thread_time() < end: pass\n"
THREAD = "    t = threading.Thread(target=work)\n    t.start()\n    t.join()\n"
CHILD = "    if os.fork() == 0:\n        work()\n        os._exit(0)\n    os.wait()\n"
CROWD = "    if os.fork() == 0:\n        work()\n        os._exit(0)\n"


def helped(seconds, count, help_, after=""):
    """A program whose main thread waits while others work, `count` times that many CPU seconds."""
    return f"{WORK.format(seconds)}for _ in range({count}):\n{help_}{after}print(1)"


def programs(rng):
    """Of every kind: (job, the status that is right for it, how many of a hundred are of this kind).

    Most programs are short, as most are; some never end."""
    a, b = rng.randrange(1000), rng.randrange(1000)
    add, text = "a, b = map(int, input().split())\nprint(a + b)\n", f"{a} {b}\n"
    right = str(a + b)
    return {
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
        "busy thread": (Job(helped(rng.uniform(0.02, 0.1), 1, THREAD), [Stdio("", "1")]), Status.OK, 5),
        "busy children": (Job(helped(0.02, rng.randint(1, 4), CHILD), [Stdio("", "1")]), Status.OK, 5),
        "call": (Job("def f(a, b):\n    return [a + b]", [Call("f", [a, b], [a + b])]), Status.OK, 10),
        "error": (Job("1 / 0", [Stdio("", "")]), Status.ERROR, 5),
        "syntax": (Job("print(", [Stdio("", "")]), Status.SYNTAX, 3),
        "memory": (Job("x = bytearray(1 << 30)", [Stdio("", "")]), Status.MEMORY, 2),
        "large": (Job("x = bytearray(40 << 20)\nprint(len(x))", [Stdio("", str(40 << 20))]), Status.OK, 2),
        "output": (Job("while True: print('x' * 99)", [Stdio("", "")]), Status.OUTPUT_LIMIT, 1),
        "endless": (Job("while True: pass", [Stdio("", "")]), Status.TIMEOUT, 1),
        "sleeper": (Job("import time\ntime.sleep(99)", [Stdio("", "")]), Status.TIMEOUT, 1),
    }


def every_kind():
    """(kind, job, right status), one of each kind."""
    return [(kind, job, status) for kind, (job, status, _) in programs(random.Random(0)).items()]


def as_many_as_there_are(count):
    """(kind, job, right status) of `count` programs, drawn as often as there are such programs."""
    rng = random.Random(count)
    for _ in range(count):
        kinds = programs(rng)
        kind = rng.choices(list(kinds), [weight for *_, weight in kinds.values()])[0]
        job, status, _ = kinds[kind]
        yield kind, job, status


BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1_000_000))"
"""A test that was killed leaves nobody burning."""


class Overloaded:
    """Processes that do nothing but use the CPUs of this one."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.burners = [
            subprocess.Popen([sys.executable, "-I", "-S", "-c", BURN], start_new_session=True)
            for _ in range(self.count)
        ]
        time.sleep(0.5)

    def __exit__(self, *error):
        for burner in self.burners:
            burner.kill()
            burner.wait()


def judged(request, work, per_cpu):
    """(kind, right status) of every program, its status on an idle machine, and on an overloaded one."""
    with opened(request, "bwrap", LIMITS, workers=2) as sandbox:
        idle = [verdict.status for verdict in sandbox.judge([job for _, job, _ in work])]
        with Overloaded(per_cpu * (os.cpu_count() or 1)):
            overloaded = [verdict.status for verdict in sandbox.judge([job for _, job, _ in work])]
        replaced = sandbox.replaced
    rows = [(kind, right) for kind, _, right in work]
    return rows, idle, overloaded, replaced


def check(request, work, per_cpu):
    rows, idle, overloaded, replaced = judged(request, work, per_cpu)
    wrong = [
        (*row, *found)
        for row, *found in zip(rows, idle, overloaded, strict=True)
        if found != [row[1], row[1]]
    ]
    assert wrong == []
    assert replaced == 0


def test_verdicts_under_load(request):
    check(request, every_kind(), per_cpu=3)


@pytest.mark.slow
def test_a_thousand_verdicts_under_load(request):
    check(request, list(as_many_as_there_are(1000)), per_cpu=4)


STARVED = Limits(cpu_s=0.4, wall_s=0.8, memory_mb=128)
HELPED = {
    "a thread": helped(0.1, 1, THREAD),
    "a child": helped(0.1, 1, CHILD),
    "short threads, one after the other": helped(0.005, 20, THREAD),
    "short children, one after the other": helped(0.005, 20, CHILD),
    "children at a time": helped(0.025, 4, CROWD, "for _ in range(4):\n    os.wait()\n"),
}
ASLEEP = {
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()",
    "a child": "import os, time\nif os.fork() == 0:\n    time.sleep(99)\nos.wait()",
    "again and again": "import time\nwhile True: time.sleep(0.02)",
}


@contextlib.contextmanager
def one_cpu():
    """Everything that starts here stays on one CPU."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("backend", ["bwrap", "subprocess"])
def test_who_waits_for_a_helper_that_has_no_cpu_is_not_late(request, backend):
    """The main thread sleeps meanwhile; whom it waits for shares a CPU with 14 others. Who sleeps for good is late.

    All programs are judged at once: those that are helped are among the others of each other."""
    given = [*HELPED.values(), *ASLEEP.values()]
    with (
        one_cpu(),
        opened(request, backend, STARVED, workers=len(given)) as sandbox,
        Overloaded(14 - len(HELPED)),
    ):
        verdicts = sandbox.judge([Job(program, [Stdio("", "1")]) for program in given])
    late = {what: verdict for what, verdict in zip(HELPED, verdicts, strict=False) if verdict.passed == 0}
    assert late == {}
    assert verdicts[0].outcomes[0].wall_s > STARVED.wall_s, "the CPU was not taken: this test shows nothing"
    assert {verdict.status for verdict in verdicts[len(HELPED) :]} == {Status.TIMEOUT}
    assert max(verdict.outcomes[0].wall_s for verdict in verdicts[len(HELPED) :]) < 10 * STARVED.wall_s


CHOOSE = {
    "autogroup": "open('/proc/self/autogroup', 'w').write('19')",
    "nice": "os.nice(19)",
    "policy": "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))",
}


@pytest.mark.parametrize("backend", ["bwrap", "subprocess"])
def test_who_chooses_to_wait_is_late(request, backend):
    """Also where that is not refused, as in a container without our filter and in no sandbox."""
    jobs = [
        Job(f"import os\ntry:\n    {choose}\nexcept OSError: pass\nwhile True: pass", [Stdio("", "1")])
        for choose in CHOOSE.values()
    ]
    if backend == "bwrap":  # what the filter alone prevents
        jobs.append(Job("import os\nwhile True: os.sched_yield()", [Stdio("", "1")]))
    with one_cpu(), opened(request, backend, STARVED) as sandbox, Overloaded(2):
        verdicts = sandbox.judge(jobs)
        assert sandbox.replaced == 0
    assert {verdict.status for verdict in verdicts} == {Status.TIMEOUT}


def test_time_in_which_the_harness_is_busy_is_not_the_programs():
    """Its input is not sent and its output not fetched, while the harness compares another one's output."""
    limits = Limits(cpu_s=0.5, wall_s=1, output_kb=2048)

    def dawdle(given, expected):
        time.sleep(2.5)
        return True

    slow = "import sys, time\ntime.sleep(0.3)\nprint(len(sys.stdin.read()) * 'x')"
    text = "x" * 1_000_000
    with open_sandbox("subprocess", workers=2, limits=limits, trusted=True) as sandbox:
        waited, _ = sandbox.judge(
            [Job(slow, [Stdio(text, text)]), Job("print(1)", [Stdio("", "1")], compare=dawdle)]
        )
    assert waited.status is Status.OK, waited.outcomes[0].error
    assert waited.outcomes[0].wall_s < 2, "the 2.5 s of the harness are not the program's"
