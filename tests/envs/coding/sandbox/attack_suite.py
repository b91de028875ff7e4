"""The attacks: programs in `attacks/`, and a few that are better made than written.

The head of a program says what is right for it:

    # right: STATUS ...     every status that is a right verdict
    # everywhere            limits contain it, so the back end `subprocess` does too
    # expects: SECRET       the expected output is a secret that the program looks for; otherwise it is `contained`
    # call: NAME            it is tested as a function without arguments, whose result would be `contained`

Programs that try something forbidden print `contained` when all of it was refused, and what they got otherwise. They
may use what `PRELUDE` defines. HOST_FILE, HOST_FOLDER and HOST_SOCKET stand for things that exist outside.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from envs.coding.sandbox import Status

PRELUDE = """\
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"
def refused(attempt, *arguments, **named):
    try:
        print("escaped:", attempt, arguments, attempt(*arguments, **named))
    except (OSError, ValueError):
        pass
def call(function, *arguments):
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno())
    return "done"
def system(x86, arm, *arguments):
    return call(libc.syscall, ctypes.c_long(arm if ARM else x86), *arguments)
"""


@dataclass(frozen=True)
class Attack:
    program: str
    right: tuple[Status, ...]
    everywhere: bool = True
    secret: bool = False
    function: str = ""


def read(path: Path) -> Attack:
    text = path.read_text()
    head = dict(re.findall(r"^# (right|expects|call): (.+)$", text, re.MULTILINE))
    return Attack(
        PRELUDE + text,
        tuple(map(Status, head["right"].split())),
        "\n# everywhere\n" in text,
        head.get("expects") == "SECRET",
        head.get("call", ""),
    )


ATTACKS = {path.stem: read(path) for path in sorted(Path(__file__).with_name("attacks").glob("*.py"))} | {
    "compile_brackets": Attack("x = " + "(" * 100_000, (Status.SYNTAX,)),
    "compile_signs": Attack("x = " + "-" * 1_000_000 + "1", (Status.SYNTAX, Status.MEMORY)),
    "compile_sum": Attack("x = 1" + " + 1" * 100_000, (Status.SYNTAX, Status.MEMORY)),
    "compile_blocks": Attack(
        "".join(" " * i + "if 1:\n" for i in range(200)) + " " * 200 + "pass", (Status.SYNTAX,)
    ),
    "compile_lone_surrogate": Attack("print('contained')  # \ud800", (Status.SYNTAX,)),
    "compile_null": Attack("print('contained')\0", (Status.SYNTAX,)),
    "compile_large": Attack("x = [" + "1, " * 2_000_000 + "]", (Status.TIMEOUT, Status.MEMORY, Status.WRONG)),
}
