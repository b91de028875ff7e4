"""Every attack is contained, gets the verdict that it deserves, and leaves nothing for the next program."""

import os
import secrets
import socket

import pytest
from attack_suite import ATTACKS
from conftest import opened

from envs.coding.sandbox import Call, Job, Limits, Status, Stdio

LIMITS = Limits(
    cpu_s=0.5, wall_s=1.5, memory_mb=256, output_kb=256, file_mb=4, disk_mb=16, files=500, processes=12
)
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


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """Things outside: a readable file, a writable folder, a secret in the environment, a listening socket."""
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o777)
    (folder / "file").write_text("outside\n")
    (folder / "file").chmod(0o666)
    name = f"sandbox-{secrets.token_hex(8)}"
    os.environ["SANDBOX_SECRET"] = "outside"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        yield {"HOST_FILE": str(folder / "file"), "HOST_FOLDER": str(folder), "HOST_SOCKET": name}
    del os.environ["SANDBOX_SECRET"]
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text() == "outside\n"


def backend(name):
    @pytest.fixture(scope="module")
    def attacked(host, request):
        with opened(request, name, LIMITS) as sandbox:
            yield sandbox

    return attacked


bwrap, docker, plain = backend("bwrap"), backend("docker"), backend("subprocess")


def judged(sandbox, attack, host):
    """The attack's verdict and the next program's, both from the same box."""
    program = attack.program
    for name, thing in host.items():
        program = program.replace(name, thing)
    expected = f"answer-{secrets.token_hex(8)}" if attack.secret else "contained"
    test = Call(attack.function, [], expected) if attack.function else Stdio("", expected)
    before, priority = sandbox.replaced, str(os.getpriority(os.PRIO_PROCESS, 0))
    following = NEXT.replace("SEALED", str(SEALED[sandbox])).replace("PRIORITY", priority)
    verdict, after = sandbox.run([Job(program, [test]), Job(following, [Stdio("", "clean")])])
    assert sandbox.replaced == before, "the box did not survive"
    return verdict.outcomes[0], after.outcomes[0]


SEALED = {}


def contained(sandbox, attack, host):
    found, after = judged(sandbox, attack, host)
    assert found.status in attack.right, found
    assert found.cpu_s < 3 * LIMITS.cpu_s
    assert after.status is Status.OK, after


@pytest.mark.parametrize("name", ATTACKS)
def test_bwrap(bwrap, host, name):
    SEALED[bwrap] = True
    contained(bwrap, ATTACKS[name], host)


@pytest.mark.parametrize("name", ATTACKS)
def test_docker(docker, host, name):
    SEALED[docker] = True
    contained(docker, ATTACKS[name], host)


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.everywhere])
def test_subprocess(plain, host, name):
    SEALED[plain] = False
    contained(plain, ATTACKS[name], host)
