"""Every status from real programs, on every back end."""

from dataclasses import replace

import pytest

from envs.coding.sandbox import Call, Job, Status, Stdio

ADD = "a, b = map(int, input().split())\nprint(a + b)\n"

ENDINGS = {
    "right": (ADD, "1 2\n", "3\n", Status.OK),
    "spaces do not count": (ADD + "print()\nprint('  ')\n", "1 2\n", "3", Status.OK),
    "another answer": (ADD, "1 2\n", "4\n", Status.WRONG),
    "words run together": ("print('12')", "", "1 2", Status.WRONG),
    "no answer": ("pass", "", "3\n", Status.WRONG),
    "exception": ("print(3)\n1 / 0", "", "3\n", Status.ERROR),
    "exit code": ("import sys\nprint(3)\nsys.exit(1)", "", "3\n", Status.ERROR),
    "exit with a message": ("import sys\nprint(3)\nsys.exit('no')", "", "3\n", Status.ERROR),
    "exit 0": ("print(3)\nexit(0)", "", "3\n", Status.OK),
    "signal": ("import os\nprint(3, flush=True)\nos.kill(os.getpid(), 11)", "", "3\n", Status.ERROR),
    "crash": ("import ctypes\nctypes.string_at(0)", "", "", Status.ERROR),
    "input by name": (
        "a, b = open('/dev/stdin').read().split()\nprint(int(a) + int(b))",
        "1 2\n",
        "3\n",
        Status.OK,
    ),
    "input by its descriptor": ("print(open(0).read())", "3", "3", Status.OK),
    "outputs by name": (
        "for name in ('stderr', 'stdout'):\n print(3, file=open(f'/dev/{name}', 'w'))",
        "",
        "3\n",
        Status.OK,
    ),
    "end of input": ("input()", "", "", Status.ERROR),
    "syntax": ("print(3", "", "3\n", Status.SYNTAX),
    "null byte": ("print(3)\0", "", "3\n", Status.SYNTAX),
    "surrogate": ("print('\ud800')", "", "3\n", Status.SYNTAX),
    "endless": ("while True: pass", "", "", Status.TIMEOUT),
    "asleep": ("import time\ntime.sleep(60)", "", "", Status.TIMEOUT),
    "one large list": ("x = [0] * 10**9", "", "", Status.MEMORY),
    "growing": ("x = []\nwhile True: x.append(bytearray(1 << 20))", "", "", Status.MEMORY),
    "too much output": ("while True: print('x' * 1000)", "", "", Status.OUTPUT_LIMIT),
    "too much error output": (
        "import sys\nwhile True: sys.stderr.write('x' * 1000)",
        "",
        "",
        Status.OUTPUT_LIMIT,
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_status(box, name):
    program, stdin, expected, status = ENDINGS[name]
    # Filling memory takes CPU time, more on some machines than on others: what another limit must end has enough of it.
    limits = None if status is Status.TIMEOUT else replace(box.limits, cpu_s=15, wall_s=45)
    (verdict,) = box.judge([Job(program, [Stdio(stdin, expected)], limits)])
    assert verdict.status is status, verdict
    assert verdict.passed == (status is Status.OK)


CALLS = {
    "function": ("def f(x, y): return [x, (y, 2)]", [{"a": 1}, None], [{"a": 1}, [None, 2]], Status.OK),
    "method": ("class Solution:\n def f(self, x): return x + 1", [1], 2, Status.OK),
    "float": ("def f(x): return x / 2", [4], 2, Status.OK),
    "nothing returned": ("def f(x): pass", [1], None, Status.OK),
    "wrong": ("def f(x): return x", [1], 2, Status.WRONG),
    "order of a list": ("def f(x): return x[::-1]", [[1, 2]], [1, 2], Status.WRONG),
    "prints": ("def f(x): print(2)", [1], 2, Status.WRONG),
    "too few arguments": ("def f(x): return x", [], 2, Status.ERROR),
    "no such function": ("def g(x): return x", [1], 1, Status.ERROR),
    "no such method": ("class Solution: pass", [1], 1, Status.ERROR),
    "raises": ("def f(x): raise KeyError", [1], 1, Status.ERROR),
    "not JSON": ("def f(x): return {1, 2}", [1], [1, 2], Status.ERROR),
    "deeper than JSON": (
        "def f(x):\n v = []\n for _ in range(10**5): v = [v]\n return v",
        [1],
        [],
        Status.ERROR,
    ),
    "main part does not run": (
        "def f(x): return x\nif __name__ == '__main__': input()",
        [1],
        1,
        Status.OK,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(box, name):
    program, arguments, expected, status = CALLS[name]
    (verdict,) = box.judge([Job(program, [Call("f", arguments, expected)])])
    assert verdict.status is status, verdict


def test_unjudged_gives_what_came_out(box):
    jobs = [Job(ADD, [Stdio("1 2")]), Job("def f(x):\n print('hi')\n return [x]", [Call("f", [1])])]
    printed, returned = (verdict.outcomes[0] for verdict in box.judge(jobs))
    assert (printed.status, printed.output, printed.result) == (Status.OK, "3\n", None)
    assert (returned.status, returned.output, returned.result) == (Status.OK, "hi\n", [1])


def test_traceback_names_the_line_and_not_the_box(box):
    (verdict,) = box.judge([Job("x = 1\nprint(x / 0)", [Stdio("")])])
    error = verdict.outcomes[0].error
    assert error.splitlines()[1:3] == ['  File "<program>", line 2, in <module>', "    print(x / 0)"]
    assert "sandbox" not in error


def test_exit_functions_and_threads_run_before_the_end(box):
    program = (
        "import atexit, threading, time\natexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\nprint('main')"
    )
    (verdict,) = box.judge([Job(program, [Stdio("", "main thread last")])])
    assert verdict.status is Status.OK, verdict


def test_a_megabyte_of_input_arrives(box):
    numbers = list(range(200_000))
    program = "import sys\nprint(sum(map(int, sys.stdin.read().split())))"
    (verdict,) = box.judge([Job(program, [Stdio(" ".join(map(str, numbers)), str(sum(numbers)))])])
    assert verdict.status is Status.OK, verdict


def test_input_that_nobody_reads(box):
    (verdict,) = box.judge([Job("print(1)", [Stdio("x" * (1 << 20), "1")])])
    assert verdict.status is Status.OK


def test_tests_of_a_program_share_nothing(box):
    program = (
        "import builtins, os\nn = getattr(builtins, 'n', 0)\nbuiltins.n = n + 1\n"
        "print(n, os.listdir('.'))\nopen('x', 'w')"
    )
    (verdict,) = box.judge([Job(program, [Stdio("", "0 []")] * 3)])
    assert verdict.passed == 3


def test_a_program_that_guesses_guesses_the_same_again(box):
    guess = "import random\nprint(random.random(), random.sample(range(99), 5), list({'a', 'b', 'c', 'd'}))"
    first, second = box.judge([Job(guess, [Stdio("")] * 2), Job(f"\n{guess}", [Stdio("")])])
    assert len({outcome.output for outcome in (*first.outcomes, *second.outcomes)}) == 1


def test_stop_at_failure_leaves_the_rest_out(box):
    tests = [Stdio("1 2", "3"), Stdio("1 2", "4"), Stdio("1 2", "3")]
    whole, stopped = box.judge([Job(ADD, tests), Job(ADD, tests, stop_at_failure=True)])
    assert [o.status.value for o in whole.outcomes] == ["ok", "wrong", "ok"]
    assert [o.status.value for o in stopped.outcomes] == ["ok", "wrong"]


def test_without_output_there_are_the_same_statuses_and_no_text(box):
    noisy = "import sys\nprint('x' * 99)\nsys.stderr.write('x' * 99)\n"
    calls = "def f():\n    return [1]"
    work = [
        (noisy, Stdio("", "x" * 99)),
        (noisy + "1 / 0", Stdio("")),
        ("1 +", Stdio("")),
        (calls, Call("f", [], [1])),
    ]
    full, bare = (
        box.judge([Job(p, [test] * 2, keep_output=keep) for p, test in work]) for keep in (True, False)
    )
    assert [verdict.status.value for verdict in full] == ["ok", "error", "syntax", "ok"]
    assert [verdict.status for verdict in bare] == [verdict.status for verdict in full]
    assert all((o.output, o.result, o.error) != ("", None, "") for verdict in full for o in verdict.outcomes)
    assert all((o.output, o.result, o.error) == ("", None, "") for verdict in bare for o in verdict.outcomes)


@pytest.mark.long
def test_a_shared_run_gives_the_verdicts_of_two(box):
    programs = [ADD, "1 / 0", "while True: pass", "1 +", "print(3)\nimport sys\nsys.exit(1)"]
    tests = [Stdio("1 2", "3"), Stdio("1 2", "4"), Stdio("2 2", "4"), Stdio("2 2", "4 ")]
    apart, shared = (
        box.judge([Job(program, tests, share_runs=share) for program in programs]) for share in (False, True)
    )
    assert [[o.status for o in v.outcomes] for v in shared] == [[o.status for o in v.outcomes] for v in apart]
    assert [[o.output for o in v.outcomes] for v in shared] == [[o.output for o in v.outcomes] for v in apart]


def test_own_limits_and_comparison_of_a_job(box):
    slow = "import time\nwhile time.process_time() < 0.4: pass\nprint(1.0)"
    limits = replace(box.limits, cpu_s=0.2)
    tight, close = box.judge(
        [
            Job(slow, [Stdio("", "1")], limits=limits),
            Job(slow, [Stdio("", "1")], compare=lambda given, expected: float(given) == float(expected)),
        ]
    )
    assert (tight.status, close.status) == (Status.TIMEOUT, Status.OK)


FORKS = """
import os, time
shared = bytearray(80 << 20)
for _ in range(5):
    if os.fork() == 0:
        own = bytearray(os.urandom(1 << 20)) * OWN
        time.sleep(0.5)
        os._exit(0)
for _ in range(5):
    os.wait()
print("done")
"""


def test_memory_that_processes_share_counts_once(bwrap):
    jobs = [Job(FORKS.replace("OWN", own), [Stdio("", "done")]) for own in ("1", "60")]
    light, heavy = bwrap.judge(jobs)
    assert (light.status, heavy.status) == (Status.OK, Status.MEMORY), (light, heavy)
