"""Questions in LiveBench's format with answers to them, to compare two graders on: right, wrong, and odd."""

from __future__ import annotations

import json
from collections.abc import Iterator

from format_cases import functional_case, livebench_question, stdin_case

from envs.coding.family import CodingFamily
from envs.coding.problem import Problem
from rlanything.core.types import Json, Task

Pair = tuple[dict[str, Json], str]

SUM = livebench_question(
    public_test_cases=json.dumps([stdin_case("2\n1 2\n", "3\n")]),
    private_test_cases=json.dumps([stdin_case("3\n4 5 6\n", "15\n"), stdin_case("1\n-7\n", "-7\n")]),
)
READ = "n = int(input())\nxs = list(map(int, input().split()))\n"
SUMS = [
    f"{READ}print(sum(xs))",
    f"{READ}print(sum(xs), end='')",
    f"{READ}print(' ', sum(xs), '  \\n\\n')",
    f"{READ}print(f'{{sum(xs):.3f}}')",
    f"{READ}print(f'{{sum(xs)}}e0')",
    f"{READ}print('0' + str(sum(xs)))",
    f"{READ}print(sum(xs) + 0.001)",
    f"{READ}print(sum(xs))\nprint()",
    f"{READ}print(sum(xs))\nprint('done')",
    f"{READ}print('sum', sum(xs))",
    f"{READ}print([sum(xs)])",
    f"{READ}print(n)",
    f"{READ}print(max(xs))",
    f"{READ}print(sum(xs) if n > 1 else 0)",
    f"{READ}print(sum(xs))\nexit()",
    f"{READ}print(sum(xs))\nimport sys\nsys.exit(0)",
    f"{READ}print(sum(xs))\nraise ValueError('after all')",
    f"{READ}assert False",
    "n = input()\nprint(sum(int(x) for x in input().split()))",
    "import sys\nlines = sys.stdin.read().split('\\n')\nprint(sum(map(int, lines[1].split())))",
    "import sys\nsys.stdin.readline()\nprint(sum(map(int, sys.stdin.readline().split())))",
    "import sys\nprint(sum(map(int, sys.stdin.readlines()[1].split())))",
    "def solve():\n    input()\n    print(sum(map(int, input().split())))\n\nif __name__ == '__main__':\n    solve()",
    "class A:\n    def run(self):\n        input()\n        return sum(map(int, input().split()))\nprint(A().run())",
    "from collections import *\ninput()\nprint(sum(Counter(map(int, input().split())).elements()))",
    "input()\nprint(reduce(lambda a, b: a + b, map(int, input().split())))",
    "input()\nd = deque(map(int, input().split()))\nprint(sum(d))",
    "input(); input(); input()",
    "print(3)",
    "print(",
    "pass",
    "",
    "I am not able to solve this.",
    "while True: pass",
    "import time\ntime.sleep(30)",
    f"def f(n):\n    return f(n - 1) + 1 if n else 0\n{READ}f(4000)\nprint(sum(xs))",
    "def f():\n    return f()\nf()",
    "import no_such_module\n" + READ + "print(sum(xs))",
    "import numpy_but_not\nprint(3)",
    "input()\nprint(*map(int, input().split()), sep='+')",
    "input()\nprint(eval(input().replace(' ', '+')))",
    "import numpy as np\ninput()\nprint(np.array(input().split(), dtype=int).sum())",
    "import numpy as np\ninput()\nprint(np.array(input().split(), dtype=float).sum())",
    "import numpy as np\ninput()\nprint(np.array(input().split()).sum())",
    "from sortedcontainers import SortedList\ninput()\nprint(sum(SortedList(map(int, input().split()))))",
    "from scipy.special import comb\ninput()\nprint(sum(map(int, input().split())) * int(comb(3, 0)))",
]
DIFFERENT = [
    ("import os\nos.system('true')\n" + READ + "print(sum(xs))", 0, 1),
    ("import sys\nxs = sys.stdin.buffer.read().split()\nprint(sum(map(int, xs[1:])))", 0, 1),
    (
        f"{READ}total = 0\ndef add(x):\n    global total\n    total += x\nfor x in xs: add(x)\nprint(total)",
        0,
        1,
    ),
    (f"{READ}print(sum(xs))\nimport sys\nsys.exit(1)", 1, 0),
]
"""(program, LiveBench's score, ours): LiveBench takes `os.system` away, replaces standard input by an object without
`buffer`, puts the program into a function, where `global` finds nothing, and ignores exit codes. Here a program is run
as Python runs it."""
FUNCTIONS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "total": (
        [("[1, 2, 3]", "6"), ("[]", "0"), ("[-1]", "-1")],
        [
            "def total(xs): return sum(xs)",
            "def total(xs: List[int]) -> int: return sum(xs)",
            "class Solution:\n    def total(self, xs: List[int]) -> int:\n        return sum(xs)",
            "class Solution:\n    def total(self, xs):\n        return float(sum(xs))",
            "class Solution:\n    def total(self, xs):\n        return str(sum(xs))",
            "class Solution:\n    def total(self, xs):\n        print(sum(xs))",
            "class Solution:\n    def other(self, xs):\n        return sum(xs)",
            "class Solution:\n    def total(self):\n        return 6",
            "class Solution:\n    def total(self, xs):\n        return max(xs)",
            "class Solution:\n    def total(self, xs):\n        while True: pass",
            "def sum_of(xs): return sum(xs)",
            "total = sum",
            "total = lambda xs: sum(xs)",
            "def total(xs): return True if xs == [1, 2, 3] else sum(xs)",
        ],
    ),
    "pairUp": (
        [("[1, 2]\n[3, 4]", "[[1, 3], [2, 4]]"), ("[]\n[]", "[]")],
        [
            "class Solution:\n    def pairUp(self, a, b):\n        return [[x, y] for x, y in zip(a, b)]",
            "class Solution:\n    def pairUp(self, a, b):\n        return tuple([x, y] for x, y in zip(a, b))",
            "class Solution:\n    def pairUp(self, a, b):\n        return [[y, x] for x, y in zip(a, b)]",
            "class Solution:\n    def pairUp(self, a, b):\n        return None",
            "class Solution:\n    def pairUp(self, a, b):\n        return {1, 2}",
            "class Solution:\n    def pairUp(self, a):\n        return a",
        ],
    ),
    "half": (
        [("3", "1.5"), ("4", "2.0"), ("-1", "-0.5")],
        [
            "def half(x): return x / 2",
            "def half(x): return x // 2",
            "def half(x): return x * 0.5",
            "def half(x): return round(x / 2, 5)",
            "def half(x): return Decimal(x) / 2",
            "from fractions import Fraction\ndef half(x): return float(Fraction(x, 2))",
        ],
    ),
    "isEven": (
        [("2", "true"), ("3", "false")],
        [
            "class Solution:\n    def isEven(self, n: int) -> bool:\n        return n % 2 == 0",
            "class Solution:\n    def isEven(self, n: int) -> bool:\n        return int(n % 2 == 0)",
            "class Solution:\n    def isEven(self, n: int) -> bool:\n        return 'true' if n % 2 == 0 else 'false'",
            "class Solution:\n    def isEven(self, n: int) -> bool:\n        return None if n % 2 else True",
        ],
    ),
    "greet": (
        [('"Ann"', '"Hello, Ann"'), ('"\\u00e9\\n"', '"Hello, \\u00e9\\n"')],
        [
            "def greet(name): return 'Hello, ' + name",
            "def greet(name): return f'Hello, {name}'",
            "def greet(name): return 'Hello, ' + name.strip()",
            "def greet(name): return ['Hello, ' + name]",
        ],
    ),
}
START = "class Solution:\n    def total(self, xs):\n        s = 0"
COMPLETIONS = [
    "        return sum(xs)",
    f"{START}\n        return sum(xs)",
    "        for x in xs:\n            s += x\n        return s",
    "        return s",
    "return sum(xs)",
    "class Solution:\n    def total(self, xs):\n        return sum(xs)",
]


def fenced(program: str) -> str:
    return f"Here it is:\n```python\n{program}\n```\nThat is all."


def pairs() -> Iterator[Pair]:
    """All of them, some 240."""
    yield from ((SUM, program) for program in SUMS)
    yield from ((SUM, fenced(program)) for program in SUMS[:4])
    yield SUM, f"```python\nprint(3)\n```\nor better\n```python\n{SUMS[0]}\n```"
    yield SUM, f"```python\n{SUMS[0]}\n```\nor better\n```python\nprint(3)\n```"
    yield SUM, f"{SUMS[0]}\n```"
    yield SUM, f"```python\n{SUMS[0]}"
    for name, (tests, programs) in FUNCTIONS.items():
        yield from ((function_question(name, tests), fenced(program)) for program in programs)
    question = function_question("total", FUNCTIONS["total"][0])
    completion = {**question, "task": "coding_completion", "partial_solution": START}
    yield from ((completion, fenced(answer)) for answer in COMPLETIONS)
    yield from generated(CodingFamily())


def function_question(name: str, tests: list[tuple[str, str]]) -> dict[str, Json]:
    """A question about a function, as LeetCode's are in LiveBench."""
    rows = [functional_case(*test) for test in tests]
    origin = {**livebench_question()["original_json"], "metadata": json.dumps({"func_name": name})}
    return livebench_question(
        question_id=name,
        public_test_cases=json.dumps(rows[:1]),
        private_test_cases=json.dumps(rows[1:]),
        original_json=origin,
    )


def generated(family: CodingFamily) -> Iterator[Pair]:
    """Problems of the world with right and wrong programs."""
    for task in family.make("train", 22, 0) + family.make("out_of_domain", 22, 0):
        question = world_question(task)
        right = family.demonstrate(task, 0, 0.0)[0][1]
        yield question, right
        yield question, fenced("def main():\n    " + right.replace("\n", "\n    ") + "\nmain()")
        yield from ((question, family.demonstrate(task, seed, 1.0)[0][1]) for seed in range(2))


def world_question(task: Task) -> dict[str, Json]:
    """A problem of the world as LiveBench would hold it."""
    rows = [stdin_case(f"{case.input}\n", f"{case.output}\n") for case in Problem.from_task(task).cases]
    return livebench_question(
        question_id=task.task_id,
        turns=[task.instruction],
        public_test_cases=json.dumps(rows[:2]),
        private_test_cases=json.dumps(rows[2:]),
    )
