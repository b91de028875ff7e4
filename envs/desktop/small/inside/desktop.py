"""The servers of the small desktop and the application of the present task. Part of the program in the box."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hands  # type: ignore[import-not-found, unused-ignore]
import home  # type: ignore[import-not-found, unused-ignore]
import pictures  # type: ignore[import-not-found, unused-ignore]
import tree  # type: ignore[import-not-found, unused-ignore]
from faults import BadTask  # type: ignore[import-not-found, unused-ignore]
from hands import SCREEN  # type: ignore[import-not-found, unused-ignore]
from home import HOME, RUN, STATE  # type: ignore[import-not-found, unused-ignore]
from keyboard import Keyboard  # type: ignore[import-not-found, unused-ignore]

DISPLAY = ":1"
STARTING, SHOWING, QUIET = 90.0, 30.0, 0.08
"""Seconds for a server to start, for an application to show its window, and without a change until a screen is calm."""
CALM = 1.5
"""Longest wait for a calm screen, seconds."""
SETTLING = 20.0
"""Longest wait for the window manager, seconds."""
TAKEN = 0.5
"""Longest wait for what a key changes on the screen, seconds: a key may change nothing."""
CRASHES = (
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
)
"""What ends a program for its own fault. Other signals are sent by somebody, and here that is the agent."""


class Desktop:
    """The servers that run all the time, and the application of the present task."""

    def __init__(self) -> None:
        self._servers: list[subprocess.Popen[bytes]] = []
        self._apps: list[subprocess.Popen[bytes]] = []
        self._program = ""
        self._buttons: list[Any] = []
        RUN.mkdir(parents=True, exist_ok=True)
        frame = RUN / "frame"
        frame.mkdir(exist_ok=True)
        size = f"{SCREEN[0]}x{SCREEN[1]}x24"
        self._serve(
            "Xvfb", DISPLAY, "-screen", "0", size, "-nolisten", "tcp", "-fbdir", str(frame), "-noreset"
        )
        self.frame = frame / "Xvfb_screen0"
        _until(
            lambda: Path(f"/tmp/.X11-unix/X{DISPLAY[1:]}").exists() and self.frame.exists(), "Xvfb", STARTING
        )
        os.environ.update(
            DISPLAY=DISPLAY, HOME=str(HOME), XDG_RUNTIME_DIR=str(RUN), GDK_BACKEND="x11", NO_AT_BRIDGE="0",
            GTK_MODULES="gail:atk-bridge", GSETTINGS_BACKEND="memory", LANG="C.UTF-8", GTK_OVERLAY_SCROLLING="0",
            DBUS_SESSION_BUS_ADDRESS=f"unix:path={RUN}/bus", SHELL="/bin/sh", TZ="UTC", GTK_THEME="Adwaita",
            **{f"XDG_{name}_HOME": str(STATE / name) for name in ("CONFIG", "CACHE", "DATA", "STATE")},
        )  # fmt: skip
        self._serve("dbus-daemon", "--session", f"--address=unix:path={RUN}/bus", "--nofork", "--nopidfile")
        _until((RUN / "bus").exists, "dbus-daemon", STARTING)
        self._serve("/usr/libexec/at-spi-bus-launcher", "--launch-immediately")
        self._serve("openbox")
        _until(
            lambda: _desktops() > 0, "openbox", STARTING
        )  # a window that opens before it never gets the keyboard
        tree.connect(STARTING)
        self._press_first_key()
        self._keyboard = Keyboard()
        self._kept, self._running = home.present(), _processes()

    def reset(self, task: dict[str, Any]) -> None:
        """End the last application, empty the home, write the files and start the application.

        What the servers have in memory stays. So an episode of an agent has a desktop of its own (`DesktopFamily`).
        Raises `BadTask` for what no desktop can do. Any other exception says that this desktop does not work.
        """
        self.check_running()
        self._keyboard.let_go()
        self._end()
        home.fill(task, self._kept)
        hands.xdo("mousemove", str(SCREEN[0] - 2), str(SCREEN[1] - 2))
        command = task["launch"]
        if shutil.which(command[0]) is None:
            raise BadTask(f"{command[0]} is not installed: apt install {command[0]}")
        self._program = str(command[0])
        self._apps = [
            subprocess.Popen(
                command, cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        ]  # fmt: skip
        patience = min(float(task.get("patience", SHOWING)), SHOWING)
        _until(lambda: self._alive(command[0]) and tree.has_window(), f"the window of {command[0]}", patience)
        _until(_has_focus, f"the focus of {command[0]}", patience)
        for keys in task.get("begin", []):
            self.calm()
            hands.xdo("key", "--", "+".join(map(hands.key, keys.split("+"))))
        self.calm()

    def calm(self) -> None:
        """Wait until the screen has stopped changing."""
        until, last = time.monotonic() + CALM, pictures.digest(self.frame)
        time.sleep(QUIET)
        while time.monotonic() < until and (now := pictures.digest(self.frame)) != last:
            last = now
            time.sleep(QUIET)

    def pressed(self, press: Callable[[], None]) -> None:
        """Press a key, and wait until the screen has changed and no button is down that was not before.

        The calculator shows a key as a button that is down for a moment, and ignores the same key meanwhile.
        """
        before, buttons = pictures.digest(self.frame), self._buttons
        down = tree.down(buttons)
        press()
        _within(TAKEN, lambda: pictures.digest(self.frame) != before)
        _within(CALM, lambda: tree.down(buttons) <= down)

    def settled(self) -> None:
        """Wait until the window manager has worked through all that has happened, and the screen is calm.

        It works for long on every change of the keyboard. It answers in order, so another number of its desktops, none
        of which is in use, says that it is done with what came before.
        """
        count = _desktops()
        for wanted in (count + 1, count):
            hands.xdo("set_num_desktops", str(wanted))
            _until(lambda wanted=wanted: _desktops() == wanted, "an answer of openbox", SETTLING)  # type: ignore[misc]
        self.calm()

    def act(self, action: dict[str, Any]) -> None:
        """Perform one action of `computer_13`."""
        self._buttons = tree.buttons() if action.get("action_type") == "TYPING" else []
        hands.act(action, self._keyboard, self.pressed, self.settled)

    def check_running(self) -> None:
        """Raise where a server has ended, or a process that one of them has started."""
        if any(server.poll() is not None for server in self._servers) or not self._running <= _processes():
            raise RuntimeError("a server of the desktop has ended")

    def check_application(self) -> None:
        """Raise where the application of the task has crashed. One that was closed or killed has not."""
        for app in self._apps:
            status = app.poll() or 0
            if status > 0 or -status in CRASHES:
                raise RuntimeError(f"{self._program} crashed: it ended with status {status}")

    def _press_first_key(self) -> None:
        """Press a key that does nothing, so that an agent's first key is not lost.

        The X server tells of a new keyboard at the first key of all. The window manager then gives its shortcuts up for
        a moment to take them again, and one that is pressed meanwhile is lost.
        """
        hands.xdo("key", "shift")
        self.settled()

    def _alive(self, name: str) -> bool:
        self.check_running()
        if self._apps[0].poll() not in (None, 0):  # 0: it has handed over to another process of its own
            raise RuntimeError(f"{name} ended with status {self._apps[0].poll()}")
        return True

    def _end(self) -> None:
        """Kill every process that was not there before the first task, until there is none."""
        _until(self._alone, "the end of the last application", STARTING)
        self._apps = []

    def _alone(self) -> bool:
        """Whether only the servers run. Others are killed."""
        for app in self._apps:
            app.poll()  # collects it
        others = _processes() - self._running
        for number in others:
            _kill(number)
        return not others

    def _serve(self, *command: str) -> None:
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(f"{command[0]} is not installed")
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._servers.append(subprocess.Popen(command, **quiet))  # type: ignore[call-overload]


def _until(ready: Callable[[], bool], what: str, limit: float) -> None:
    until = time.monotonic() + limit
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not appear within {limit:g} s")
        time.sleep(0.02)


def _within(limit: float, ready: Callable[[], bool]) -> None:
    """Wait until something holds, and no longer than `limit` seconds."""
    until = time.monotonic() + limit
    while not ready() and time.monotonic() < until:
        time.sleep(0.01)


def _desktops() -> int:
    """How many desktops the window manager has, or 0 where none has taken over the screen."""
    found = subprocess.run(["xdotool", "get_num_desktops"], capture_output=True, timeout=20, check=False)
    return int(found.stdout) if found.returncode == 0 else 0


def _has_focus() -> bool:
    """Whether the window that is active has the keyboard: keys that come earlier are lost."""
    said = []
    for what in ("getactivewindow", "getwindowfocus"):
        found = subprocess.run(["xdotool", what], capture_output=True, timeout=20, check=False)
        said.append(found.stdout.strip() if found.returncode == 0 else b"")
    return said[0] != b"" and said[0] == said[1] and tree.has_focus()


def _processes() -> frozenset[int]:
    """All processes of the box: this one, the first one, the servers and what they started, and the applications."""
    return frozenset(int(place.name) for place in Path("/proc").glob("[0-9]*"))


def _kill(number: int) -> None:
    try:
        os.kill(number, signal.SIGKILL)
    except OSError:
        return
