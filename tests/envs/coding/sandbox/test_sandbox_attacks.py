"""Every attack is contained, gets the verdict that it deserves, and leaves nothing for the next program."""

import json
import os
import secrets
import shutil
import socket
import subprocess
from pathlib import Path

import attack_suite
import pytest
from attack_suite import ATTACKS, LIMITS, problem
from sandbox_cases import opened

from envs.coding.sandbox import Status

ROOT = Path(__file__).parents[4]
PYTHON = "/usr/bin/python3"
NOBODY = 65534


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


def quick(names):
    """What only waits for a time limit takes the same road on every back end: it is quick on one."""
    waits = {name for name, attack in ATTACKS.items() if attack.everywhere and Status.TIMEOUT in attack.right}
    return [pytest.param(name, marks=[pytest.mark.slow] if name in waits else []) for name in names]


def test_there_are_attacks_of_every_kind():
    kinds = {
        kind: sum(name.startswith(kind) for name in ATTACKS) for kind in ("outside", "processes", "resources")
    }
    assert len(ATTACKS) >= 100
    assert min(kinds.values()) >= 15


@pytest.mark.parametrize("name", ATTACKS)
def test_bwrap(bwrap, host, name):
    assert problem(bwrap, ATTACKS[name], True, host) == ""


@pytest.mark.long
@pytest.mark.parametrize("name", quick(ATTACKS))
def test_docker(docker, host, name):
    assert problem(docker, ATTACKS[name], True, host) == ""


@pytest.mark.parametrize("name", quick(name for name, attack in ATTACKS.items() if attack.everywhere))
def test_subprocess(plain, host, name):
    assert problem(plain, ATTACKS[name], False, host) == ""


@pytest.mark.slow
def test_bwrap_as_an_ordinary_user(host, public_sources):
    """Root enters a box by another road than other users: both must hold."""
    if os.getuid() != 0:
        pytest.skip("root is needed to become another user; test_bwrap is this test for you")
    if shutil.which("bwrap") is None or not Path(PYTHON).exists():
        pytest.skip("missing: apt install bubblewrap python3")
    found = subprocess.run(
        [PYTHON, public_sources / Path(attack_suite.__file__).relative_to(ROOT), host["HOST_FILE"]],
        env={"PYTHONPATH": str(public_sources), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    assert json.loads(found.stdout) == {"attacks": len(ATTACKS), "problems": {}}
