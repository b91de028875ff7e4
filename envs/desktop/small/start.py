"""Becomes bubblewrap, with an account for the box. A program of its own: `box` says its arguments.

The kernel limits the processes of each user, but never those of root: a fork bomb of an agent would take every process
number of the machine before `guard` could run. So a box that root starts has a user whom no other box has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ORDINARY = 1000
"""The user of a box that has a user namespace of its own, and the group of every box."""
FIRST_USER, USERS = 2 * 10**9, 2**30
"""User ids that no account of the machine has."""
EVERYBODY = ["0", "0", str(2**32 - 1)]
"""The user ids of a process that is in no user namespace of its own."""
ROOTS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN")
"""What `guard` needs to leave root for good."""


def is_root() -> bool:
    """Whether the kernel takes this process for the machine's root."""
    return os.getuid() == 0 and Path("/proc/self/uid_map").read_text().split() == EVERYBODY


def account() -> tuple[int, list[str]]:
    """(the user id of a new box, the options of bubblewrap with which it gets that user).

    A box of root begins as root. Its id is drawn: among a thousand boxes, two have the same one with a probability of
    0.0005, and then they share the limit of one.
    """
    if not is_root():
        return ORDINARY, ["--unshare-user", "--uid", str(ORDINARY), "--gid", str(ORDINARY)]
    user = FIRST_USER + int.from_bytes(os.urandom(4), "big") % USERS
    kept = [word for name in ROOTS for word in ("--cap-add", name)]
    return user, ["--cap-drop", "ALL", *kept, "--setenv", "ACCOUNT", f"{user}:{ORDINARY}"]


def data(text: str) -> str:
    """The number of an open file with this text, for bubblewrap to read."""
    number = os.memfd_create("account", 0)
    os.write(number, text.encode())
    os.lseek(number, 0, os.SEEK_SET)
    return str(number)


def main(arguments: list[str]) -> None:
    """Replace this process by bubblewrap. `arguments`: more options, and the command of the box."""
    user, options = account()
    people = data(f"user:x:{user}:{ORDINARY}::/home/user:/bin/sh\n")
    groups = data(f"user:x:{ORDINARY}:\n")
    files = ["--perms", "0755", "--dir", "/etc", "--perms", "0644", "--ro-bind-data", people, "/etc/passwd"]
    files += ["--perms", "0644", "--ro-bind-data", groups, "/etc/group"]
    os.execvp("bwrap", ["bwrap", "--clearenv", *options, *files, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
