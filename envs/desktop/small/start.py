"""Becomes bubblewrap, as a user whom no other box has. A program of its own: `box` says its arguments.

The kernel limits the processes of each user, but never those of root: a fork bomb of an agent would take every process
number of the machine before `guard` could run. So root leaves root first. The program of the box may lie where only
root can read. It is read before, and bubblewrap gets open files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("inside")
GIVEN = {
    "passwd": "user:x:1000:1000::/home/user:/bin/sh\n",
    "group": "user:x:1000:\n",
    "machine-id": "0123456789abcdef0123456789abcdef\n",
}
"""Files of the box that are the same on every machine: an account, its group, and a name for D-Bus."""
USER = ("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
"""Nothing in the box may make a namespace, in which it could mount more memory."""
FIRST_USER, USERS = 200_000_000, 2**29
"""User ids that accounts hardly have, below 2 ** 31 for bubblewrap. Two of a thousand boxes have the same one with a
probability of 0.001, and then share the limit of one."""
EVERYBODY = ["0", "0", str(2**32 - 1)]
"""The user ids of a process that is in no user namespace of its own."""


def main(arguments: list[str]) -> None:
    """Replace this process by bubblewrap. `arguments`: more options, and the command of the box."""
    files = {f"/etc/{name}": text.encode() for name, text in GIVEN.items()}
    files |= {f"/world/{path.name}": path.read_bytes() for path in sorted(PROGRAM.glob("*.py"))}
    given = [word for place, data in files.items() for word in ("--ro-bind-data", opened(data), place)]
    if os.getuid() == 0 and Path("/proc/self/uid_map").read_text().split() == EVERYBODY:
        leave_root()
    os.execvp("bwrap", ["bwrap", "--clearenv", *USER, *given, *arguments])


def opened(data: bytes) -> str:
    """The number of an open file with this content, for bubblewrap to read."""
    number = os.memfd_create("given", 0)
    os.write(number, data)
    os.lseek(number, 0, os.SEEK_SET)
    return str(number)


def leave_root() -> None:
    """Become a user of this box's own, for good."""
    user = FIRST_USER + int.from_bytes(os.urandom(4), "big") % USERS
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


if __name__ == "__main__":
    main(sys.argv[1:])
