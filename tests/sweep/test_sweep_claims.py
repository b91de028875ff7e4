"""Who works on what: a claim holds while its process lives, and no longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil

from rlanything.sweep.claims import Claims, Worker, _born

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def other_host(name: str = "elsewhere") -> Worker:
    return replace(Worker.here(), host=name)


def process(child: subprocess.Popen[bytes]) -> Worker:
    return replace(Worker.here(), pid=child.pid, born=_born(psutil.Process(child.pid)))


def test_a_claim_is_taken_once(tmp_path):
    child = subprocess.Popen(SLEEPER)
    try:
        first, second = Claims(tmp_path, process(child)), Claims(tmp_path, Worker.here())
        assert first.take("trial-0000")
        assert not second.take("trial-0000")
        assert second.held("trial-0000")
        assert first.keep("trial-0000")
        assert not second.keep("trial-0000")
    finally:
        child.kill()
        child.wait()


def test_a_claim_lapses_at_once_when_its_process_is_killed_here(tmp_path):
    child = subprocess.Popen(SLEEPER)
    first, second = Claims(tmp_path, process(child)), Claims(tmp_path, Worker.here())
    assert first.take("trial-0000")
    child.kill()
    child.wait()
    assert not second.held("trial-0000")
    assert second.take("trial-0000")
    assert not first.keep("trial-0000")


def test_a_number_that_another_process_has_now_does_not_keep_a_claim(tmp_path):
    """Process numbers come again after a reboot; the time of birth tells them apart."""
    gone = replace(Worker.here(), born=1.0)
    assert Claims(tmp_path, gone).take("trial-0000")
    assert Claims(tmp_path, Worker.here()).take("trial-0000")


def test_machines_of_one_name_and_number_are_two(tmp_path):
    """The first namespace of process numbers is called the same on every Linux; the machine's start is not."""
    here = Worker.here()
    name, space, started = here.host.split(":", 2)[0], *here.host.split(":", 1)[1].rsplit(":", 1)
    assert len(started) == 36
    twin = replace(here, host=f"{name}:{space}:{'0' * 36}", pid=2**22 + 1)
    assert Claims(tmp_path, twin).take("trial-0000")
    assert not Claims(tmp_path, here).take("trial-0000")
    assert replace(twin, pid=here.pid).name != here.name


def test_a_clock_that_is_set_takes_no_claim(tmp_path, monkeypatch):
    """The time of birth is made of the machine's start, which moves with the clock."""
    child = subprocess.Popen(SLEEPER)
    try:
        assert Claims(tmp_path, process(child)).take("trial-0000")
        was = psutil.boot_time()
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: was + 3600)
        assert psutil.Process(child.pid).create_time() > was + 3600
        assert not Claims(tmp_path, Worker.here()).take("trial-0000")
    finally:
        child.kill()
        child.wait()


def test_a_claim_of_another_machine_lapses_with_time(tmp_path):
    far, near = Claims(tmp_path, other_host()), Claims(tmp_path, Worker.here(), lapse_s=5.0)
    assert far.take("trial-0000")
    assert not near.take("trial-0000")
    old = time.time() - 10
    os.utime(tmp_path / "trial-0000.json", (old, old))
    assert not near.held("trial-0000")
    assert near.take("trial-0000")
    assert not far.keep("trial-0000")


def test_a_worker_that_is_silent_for_long_finds_its_claim_gone(tmp_path):
    far, near = Claims(tmp_path, other_host()), Claims(tmp_path, Worker.here(), lapse_s=-1.0)
    assert far.take("trial-0000")
    assert near.take("trial-0000")
    far.release("trial-0000")
    assert json.loads((tmp_path / "trial-0000.json").read_text())["worker"]["host"] == near.worker.host


def test_what_a_killed_worker_left_running_is_stopped(tmp_path):
    worker, orphan = subprocess.Popen(SLEEPER), subprocess.Popen(SLEEPER)
    first = Claims(tmp_path, process(worker))
    assert first.take("trial-0000")
    first.started("trial-0000", psutil.Process(orphan.pid))
    worker.kill()
    worker.wait()
    assert orphan.poll() is None
    assert Claims(tmp_path, Worker.here()).take("trial-0000")
    assert not psutil.pid_exists(orphan.pid)


def test_half_a_claim_of_a_full_disk_is_no_claim(tmp_path):
    (tmp_path / "trial-0000.json").write_text('{"worker": {"ho')
    assert Claims(tmp_path, Worker.here()).take("trial-0000")


def test_a_released_claim_can_be_taken(tmp_path):
    first = Claims(tmp_path, other_host())
    first.take("trial-0000")
    first.release("trial-0000")
    assert Claims(tmp_path, Worker.here()).take("trial-0000")
