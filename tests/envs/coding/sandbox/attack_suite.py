"""The attacks: programs in `attacks/`, and a few that are better made than written.

The head of a program says what is right for it:

    # right: STATUS ...     every status that is a right verdict
    # everywhere            limits contain it, so the back end `subprocess` does too
    # expects: SECRET       the expected output is a secret that the program looks for; otherwise it is `contained`
    # call: NAME            it is tested as a function without arguments, whose result would be `contained`

Programs that try something forbidden print `contained` when all of it was refused, and what they got otherwise. They
may use what `PRELUDE` defines. HOST_FILE, HOST_FOLDER and HOST_SOCKET stand for things that exist outside.
"""

import json
import os
import re
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from envs.coding.sandbox import Call, Job, Limits, Sandbox, Status, Stdio, open_sandbox

LIMITS = Limits(
    cpu_s=0.5, wall_s=1.5, memory_mb=256, output_kb=256, file_mb=4, disk_mb=16, files=500, processes=12
)
# Filling memory takes CPU time, more on some machines than on others: what another limit must end has enough of it.
ROOM = replace(LIMITS, cpu_s=15, wall_s=45)

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

    @property
    def limits(self) -> Limits:
        return LIMITS if Status.TIMEOUT in self.right else ROOM


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


NEXT = """
import colorsys, gc, json, os, re, sys, threading
found = []
if os.listdir("."):
    found.append("files")
if sys.getrecursionlimit() != 1000 or sys.gettrace() or gc.callbacks or "MARK" in os.environ:
    found.append("state of the interpreter")
if os.umask(0) != 0o22 or os.getpriority(os.PRIO_PROCESS, 0) != PRIORITY or threading.active_count() != 1:
    found.append("state of the process")
if SEALED:
    if {n for n in os.listdir("/proc") if n.isdigit()} != {"1", str(os.getpid())}:
        found.append("processes")
    room, folder = os.statvfs("."), os.stat(".")
    if room.f_files - room.f_ffree > 2 or room.f_blocks - room.f_bfree > 16:
        found.append("disk")
    if folder.st_uid == os.getuid() and (folder.st_mode & 0o7777, folder.st_mtime) != (0o700, 0):
        found.append("work folder")
    if len(open("/proc/sysvipc/shm").readlines()) > 1:
        found.append("shared memory")
print(found or "clean")
"""


def problem(sandbox: Sandbox, attack: Attack, sealed: bool, host: dict[str, str]) -> str:
    """What is wrong with the attack's verdict, with the next program's in the same box, or with the box; or ''."""
    program = attack.program
    for name, thing in host.items():
        program = program.replace(name, thing)
    expected = f"answer-{secrets.token_hex(8)}" if attack.secret else "contained"
    test = Call(attack.function, [], expected) if attack.function else Stdio("", expected)
    replaced, priority = sandbox.replaced, str(os.getpriority(os.PRIO_PROCESS, 0))
    following = NEXT.replace("SEALED", str(sealed)).replace("PRIORITY", priority)
    verdict, after = sandbox.judge(
        [Job(program, [test], attack.limits), Job(following, [Stdio("", "clean")])]
    )
    (found,) = verdict.outcomes
    if found.status not in attack.right:
        return f"{found.status} is not right: {found.output[:500]} {found.error}"
    if found.cpu_s > 3 * attack.limits.cpu_s:
        return f"{found.cpu_s} s of CPU time"
    if after.status is not Status.OK:
        return f"the next program finds: {after.outcomes[0]}"
    return "" if sandbox.replaced == replaced else "the box did not survive"


def main() -> int:
    """All attacks on bwrap, for users and interpreters that have no pytest: prints {attack: problem}."""
    with open_sandbox("bwrap", workers=1, limits=LIMITS) as sandbox:
        host = {"HOST_FILE": sys.argv[1], "HOST_FOLDER": str(Path(sys.argv[1]).parent), "HOST_SOCKET": "none"}
        found = {name: problem(sandbox, attack, True, host) for name, attack in ATTACKS.items()}
    print(json.dumps({"attacks": len(found), "problems": {name: why for name, why in found.items() if why}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
