"""What fails: pages that hang or crash, a browser that is killed, programs that are not installed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from scripted import chat_model, prompts
from web_cases import act, browsers, evaluate, shows, small

from envs.web.browser import launch
from envs.web.browser.asking import read
from envs.web.browser.pool import Pool, Settings, _alone, _key
from envs.web.browser.view import BrowserError, BrowserTimeout
from rlanything.config import RolloutConfig
from rlanything.core.errors import EnvironmentFailure, MachineError
from rlanything.core.types import Status
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hangs", "never-loads"])
def test_a_page_that_does_not_answer_is_given_up(ours, kind):
    began = time.monotonic()
    with pytest.raises(BrowserTimeout, match=f"the page {kind} did not answer within 10 s"):
        shows(ours, kind)
    assert time.monotonic() - began < 10 + 60
    assert shows(ours, "plain", "click 1").success, "another page still works"


@pytest.mark.long
def test_a_crashed_page_is_an_error_and_the_next_call_works(ours):
    shows(ours, "plain")
    renderers = [p for p in browsers() if "--type=renderer" in p.cmdline()]
    for renderer in renderers:
        renderer.kill()
    with pytest.raises((BrowserError, BrowserTimeout)):
        shows(ours, "plain", "click 1")
    assert shows(ours, "plain", "click 1").success


@pytest.mark.long
def test_a_killed_browser_is_started_again(patient):
    shows(patient, "plain")
    for process in browsers():
        process.kill()
    with pytest.raises((BrowserError, BrowserTimeout)) as caught:
        shows(patient, "plain", "click 1")
    assert isinstance(caught.value, EnvironmentFailure)
    assert shows(patient, "plain", "click 1").success
    assert patient.starts == 2


@pytest.mark.long
def test_with_a_second_try_a_killed_browser_is_not_noticed(patient):
    first = patient.play("plain", "1", [])
    patient._views.clear()
    for process in browsers():
        process.kill()
    assert patient.play("plain", "1", [], tries=2) == first


def test_the_browser_ends_with_a_process_that_is_killed():
    program = (
        "import psutil, time\nfrom envs.web.browser.pool import Pool, Settings\n"
        "pool = Pool(Settings())\npool.play('click-test', '1', [])\n"
        "print(*(p.pid for p in psutil.Process().children(recursive=True)), flush=True)\ntime.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    started = [int(pid) for pid in child.stdout.readline().split()]
    assert started
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    until = time.monotonic() + 30
    while (left := [pid for pid in started if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == []


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_missing_chromium_is_named(monkeypatch):
    monkeypatch.setattr(launch.shutil, "which", lambda _name: None)
    with pytest.raises(MachineError, match=r"no Chromium is installed .*apt install chromium"):
        small(most_pages=31).environment()  # no pool with these settings is open in this process
    with pytest.raises(MachineError, match="chromium: there is no file /nowhere"):
        Pool(Settings(chromium="/nowhere"))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(launch, "find_spec", lambda _name: None)
    with pytest.raises(MachineError, match=r"MiniWoB\+\+ are not installed: pip install 'rlanything\[web\]'"):
        launch.pages(None)
    monkeypatch.setitem(sys.modules, "playwright", None)
    with pytest.raises(MachineError, match=r"Playwright is not installed: pip install 'rlanything\[web\]'"):
        launch.playwright()


def test_a_missing_folder_of_pages_is_named(tmp_path):
    with pytest.raises(MachineError, match="pages: there is no folder"):
        launch.pages(str(tmp_path / "none"))


def test_a_missing_page_is_named(ours):
    with pytest.raises(BrowserError, match=r"there is no page .*click-test\.html"):
        shows(ours, "click-test")


def test_a_chromium_that_does_not_start_says_why(tmp_path):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho no display >&2\nexit 3\n")
    broken.chmod(0o755)
    made = Pool(Settings(chromium=str(broken), timeout=20))
    with pytest.raises((BrowserError, BrowserTimeout), match="chromium"):
        made.play("click-test", "1", [])


def test_a_chromium_that_does_not_start_in_time_is_no_page_that_does_not_answer(tmp_path, monkeypatch):
    path = tmp_path / "chromium"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    monkeypatch.setattr("envs.web.browser.pool.STARTING", 1.0)
    made = Pool(Settings(chromium=str(path)))
    with pytest.raises(BrowserTimeout, match=f"Chromium .*{path.name}.* did not start within 1 s"):
        shows(made, "click-test")
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("ahead", [False, True])
def test_the_loop_goes_on_with_a_fresh_browser_after_one_was_killed(pool, monkeypatch, ahead):
    """ahead: whether episodes are played ahead; then no episode pays, as each is asked for again by itself."""
    if not ahead:
        monkeypatch.setattr(Pool, "play_ahead", lambda *_: None)
    family = small()
    tasks = family.make("train", 2, 0)
    starts, killed = family._stage.pool.starts, []

    def script(_request):
        if not killed:
            killed.extend(browsers())
            for process in killed:
                process.kill()
        return "click 1"

    config = RolloutConfig(max_tokens=8, timeout_s=60.0)
    worker = RolloutWorker(family, chat_model(script), prompts(), config)
    sampling = Sampling(run_seed=3, phase="act", iteration=0, temperature=0.8, max_steps=2)
    first, second = worker.roll_out([Assignment(i, task, 1) for i, task in enumerate(tasks)], sampling)
    assert killed
    assert family._stage.pool.starts == starts + 1
    assert second.counts, "the browser was started again"
    if ahead:
        assert first.counts
    else:
        assert (first.status, first.counts) in ((Status.ENV_ERROR, False), (Status.TIMEOUT, False))


def test_a_page_that_answers_for_fewer_episodes_than_were_asked_is_asked_for_each(ours):
    shows(ours, "plain")
    evaluate(ours, "plain", "() => { const all = rla.plays; rla.plays = (asked) => all(asked).slice(1); }")
    both = [("0", [act("click 1")]), ("1", [])]
    with pytest.raises(BrowserError, match="something that is no list of 2 views"):
        ours._call("plain", lambda tabs: read(tabs.of("plain")[0], [_key("plain", *one) for one in both]), 1)
    ours.play_ahead({"plain": both})
    assert [ours.play("plain", *one).success for one in both] == [True, False]


@pytest.mark.long
def test_no_episode_pays_for_another_one_that_is_played_ahead_with_it(ours):
    shows(ours, "plain")
    wrong = act("type 2 x")  # a link has no value: an error in the page
    ours.play_ahead({"plain": [("0", [act("click 1")]), ("1", [wrong]), ("2", [act("click 1")])]})
    assert shows(ours, "plain", "click 1", seed="0").success
    with pytest.raises(BrowserError, match="the page plain failed"):
        ours.play("plain", "1", [wrong])
    assert shows(ours, "plain", "click 1", seed="2").success


@pytest.mark.long
def test_a_page_that_nobody_waits_for_any_longer_is_thrown_away(ours):
    shows(ours, "plain")
    key = _key("hangs", "1", [])
    with pytest.raises(BrowserTimeout, match="the browser did not answer within 2 s"):
        ours._wait(ours._work("hangs", lambda tabs: ours._played(tabs, _alone(tabs, key), False), 30), 2)
    assert shows(ours, "plain", "click 1").success
    assert ours.starts == 2


def test_a_start_that_is_cut_off_stops_its_driver(monkeypatch):
    stopped = []

    class Driver:
        chromium = property(lambda self: self)
        async_playwright = __call__ = lambda self: self

        async def start(self):
            return self

        async def launch(self, **_options):
            await asyncio.sleep(60)

        async def stop(self):
            stopped.append(True)

    monkeypatch.setattr(launch, "playwright", Driver)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(launch.launch("chromium"), 0.05))
    assert stopped == [True]


def test_a_page_has_no_way_out_of_its_scripts(ours):
    shows(ours, "plain")
    assert evaluate(ours, "plain", "() => [alert('x'), confirm('x'), prompt('x')].length") == 3
