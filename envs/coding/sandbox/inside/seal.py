"""Privileges that the watcher drops before it forks: root, gains by exec, readable memory, system calls."""

import base64
import ctypes
import os
import signal
from typing import Any

SEALED = os.getpid() == 1
"""Whether this is process 1 of its own pid namespace.

Process 1 cannot be signalled from inside, kills all others with one `kill(-1)`, and inherits every orphan. Elsewhere
the watcher is a subreaper, and kills what it finds among its children.
"""

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 22, 23, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CAPABILITIES = 64
"""More than there are."""
CAPABILITY_VERSION = 0x20080522
SECCOMP_MODE_FILTER = 2
FILTER_ENTRY = 8
"""Bytes of a struct sock_filter."""

libc = ctypes.CDLL(None, use_errno=True)


class FilterProgram(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def prctl(option: int, value: int, extra: int = 0) -> None:
    """Call prctl(2). Raises OSError."""
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(extra), 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def install_filter(program: bytes) -> None:
    """Load a seccomp filter, for this process and for all that it forks."""
    code = ctypes.create_string_buffer(program, len(program))
    whole = FilterProgram(len(program) // FILTER_ENTRY, ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(whole))


def become_user(uid: int, folder: str) -> None:
    """Leave root for good, with the work folder; the kernel drops most capabilities with it."""
    os.chown(folder, uid, uid)
    for number in range(CAPABILITIES):
        if libc.prctl(PR_CAPBSET_READ, number) == 1:
            prctl(PR_CAPBSET_DROP, number)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Drop what is left, those that a program would inherit among them."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset failed")


def harden(settings: dict[str, Any]) -> None:
    """Drop the privileges. Not dumpable: forks have the same user id and must not trace or read this process.

    When process 1 dies with its parent, the kernel kills everything in its namespace. Elsewhere the watcher does it.
    """
    if settings["uid"] is not None:
        become_user(settings["uid"], settings["folder"])
    if SEALED:
        drop_capabilities()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if settings["filter"]:
        install_filter(base64.b64decode(settings["filter"]))
    # Process 1 ignores signals without a handler. With Python's own handler, a fork could interrupt it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
