"""The bridge over a stand-in for OSWorld's provider of docker: machines that start at once, and their image."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from envs.desktop.bridge import osworld_bridge

DOCKER = "desktop_env.providers.docker"
IMAGE = Path("docker_vm_data/Ubuntu.qcow2")


class Manager:
    """Fetches an image as OSWorld does: where there is none yet, it adds to a file, and unpacks it in its place."""

    def get_vm_path(self, os_type, region, screen_size=(1920, 1080)):
        assert (os_type, region) == ("Ubuntu", None)
        if not IMAGE.exists():
            IMAGE.parent.mkdir(exist_ok=True)
            for part in ("half of ", "an image"):
                with IMAGE.with_suffix(".zip").open("a") as fetched:
                    fetched.write(part)
                time.sleep(0.05)
            IMAGE.touch()
            time.sleep(0.05)
            IMAGE.write_text(IMAGE.with_suffix(".zip").read_text())
        return str(IMAGE)


class Machine:
    """Stands in for `DesktopEnv`."""

    def __init__(self, path_to_vm=None, action_space="", require_a11y_tree=True, screen_size=()):
        self.image = Path(path_to_vm or Manager().get_vm_path("Ubuntu", None)).read_text()


@pytest.fixture
def modules(monkeypatch, tmp_path):
    """A version of OSWorld with the provider; a test may take a module out again."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for name in ("desktop_env", "desktop_env.desktop_env", "desktop_env.providers", DOCKER):
        found[name] = ModuleType(name)
    for name in ("provider", "manager"):
        found[f"{DOCKER}.{name}"] = ModuleType(name)
    found["desktop_env.desktop_env"].DesktopEnv = Machine
    found[f"{DOCKER}.provider"].LOCK_TIMEOUT = 10
    found[f"{DOCKER}.manager"].DockerVMManager = Manager
    for name, module in found.items():
        monkeypatch.setitem(sys.modules, name, module)
    return found


def made(*options: str) -> Machine:
    return osworld_bridge.maker(osworld_bridge.options(["--provider_name", "docker", *options]))(False)


def test_a_machine_waits_for_its_turn_as_long_as_many_others_need(modules):
    made()
    assert modules[f"{DOCKER}.provider"].LOCK_TIMEOUT >= 600


def test_machines_that_start_at_once_fetch_one_whole_image(modules):
    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        machines = list(threads.map(lambda _: (together.wait(), made())[1], range(8)))
    assert {machine.image for machine in machines} == {"half of an image"}


def test_an_image_of_ones_own_is_not_fetched(modules, tmp_path):
    own = tmp_path / "own.qcow2"
    own.write_text("own")
    assert made("--path_to_vm", str(own)).image == "own"
    assert not IMAGE.parent.exists()


@pytest.mark.parametrize("missing", ["provider", "manager"])
def test_a_version_without_these_modules_works_as_well(modules, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, f"{DOCKER}.{missing}", None)
    assert made().image == "half of an image"


def test_a_version_whose_machines_do_not_wait_is_left_as_it_is(modules):
    del modules[f"{DOCKER}.provider"].LOCK_TIMEOUT
    made()
    assert not hasattr(modules[f"{DOCKER}.provider"], "LOCK_TIMEOUT")


def test_the_image_can_be_fetched_before_any_machine_starts(modules, monkeypatch):
    monkeypatch.setattr("os.dup2", lambda *_: None)
    osworld_bridge.main(["--provider_name", "docker", "--fetch"])
    assert IMAGE.read_text() == "half of an image"


def test_the_image_of_another_provider_is_not_fetched(capsys):
    with pytest.raises(SystemExit):
        osworld_bridge.options(["--provider_name", "vmware", "--fetch"])
    assert "--fetch needs --provider_name docker" in capsys.readouterr().err
