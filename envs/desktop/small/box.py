"""The box around a small desktop: bubblewrap, without network, with its own processes and home."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from rlanything.core.errors import MachineError

PYTHON = "/usr/bin/python3"
"""The system's: it has the module `gi`, which is no package of the registry."""
PROGRAMS = {
    "bwrap": "bubblewrap", "Xvfb": "xvfb", "openbox": "openbox", "xdotool": "xdotool", "dbus-daemon": "dbus",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core", "mousepad": "mousepad", "thunar": "thunar",
    "galculator": "galculator", "lxterminal": "lxterminal", "gnumeric": "gnumeric",
}  # fmt: skip
"""Program -> the Debian package that has it."""
BINDING = "python3-gi gir1.2-atspi-2.0"
ETC = (
    "fonts",
    "ld.so.cache",
    "alternatives",
    "gtk-3.0",
    "xdg",
    "mime.types",
    "mailcap",
)
FONTS = "/var/cache/fontconfig"
"""The system's cache of its fonts. Without it every application reads all of their files when it starts."""
PLACES = (("/home/user", 2**27), ("/tmp", 2**27), ("/run/user", 2**26), ("/dev/shm", 2**26))
"""Where the programs in the box may write, each with its size in bytes; it is memory. Nothing else is writable."""
NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
STARTED = ("envs.desktop.small.start", "envs.desktop.small.inside")
"""What becomes bubblewrap, with the user of the box; and what runs there. A run depends on all their modules:
`runs/imports.py` finds these names."""


@cache
def missing() -> str:
    """What is not installed, and how to get it; '' where nothing is missing."""
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    try:
        test = "import gi; gi.require_version('Atspi', '2.0')"
        if subprocess.run([PYTHON, "-c", test], capture_output=True, timeout=60, check=False).returncode:
            packages.append(BINDING)
    except OSError:
        packages += ["python3", BINDING]
    if packages:
        return f"the desktop needs: apt install --no-install-recommends {' '.join(packages)}"
    helped = subprocess.run(
        ["bwrap", "--help"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    return "" if "--disable-userns" in helped else "the desktop needs bubblewrap 0.8 or newer"


def versions() -> dict[str, str]:
    """Debian package -> version of everything that the desktop runs; empty where there is no dpkg."""
    packages = [*PROGRAMS.values(), *BINDING.split()]
    try:
        said = subprocess.run(
            ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *packages],
            capture_output=True, text=True, timeout=60, check=False,
        ).stdout  # fmt: skip
    except OSError:
        return {}
    return dict(pair for line in said.splitlines() if len(pair := line.split(" ", 1)) == 2 and pair[1])


def command(screen: tuple[int, int] = (1024, 768)) -> tuple[str, ...]:
    """What starts a world, with a screen of this size in pixels. Raises `MachineError` naming what is missing."""
    if reason := missing():
        raise MachineError(reason)
    system = [place for place in ("/usr", "/bin", "/sbin", "/lib", "/lib64") if Path(place).exists()]
    mounts = [word for place in system for word in ("--ro-bind", place, place)]
    for name in ETC:
        mounts += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    mounts += ["--ro-bind-try", FONTS, FONTS]
    # Not --die-with-parent: its parent is a thread, and worlds are started by threads that end. The program ends with
    # its input. It is the first process of the box, so with it everything in the box ends.
    own = [*NAMESPACES, "--hostname", "desktop", "--new-session", "--as-pid-1"]
    folders = ["--proc", "/proc", "--dev", "/dev", *(word for place in PLACES for word in _writable(*place))]
    closed = ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/home/user"]
    path = ["--setenv", "PATH", "/usr/bin:/bin:/usr/sbin:/sbin", "--setenv", "HOME", "/home/user"]
    size = ["--setenv", "SCREEN", f"{screen[0]}x{screen[1]}"]
    run = [PYTHON, "-I", "-c", "import sys; sys.path.insert(0, '/world'); import world; world.main()"]
    start = (PYTHON, "-I", str(Path(__file__).with_name("start.py")))
    return (*start, *own, *mounts, *folders, *closed, *path, *size, *run)


def _writable(place: str, size: int) -> list[str]:
    """Options that make an empty folder of at most `size` bytes."""
    return ["--perms", "0700", "--size", str(size), "--tmpfs", place]
