"""`make fuzz MINUTES=10`: every target for its part of the time, each in a process of its own.

An input fails when it raises anything but the project's errors, takes longer than 10 s, takes more than 1 GB, crashes
the process, or is refused by a message that does not name its file. The smallest such input of each kind is written to
tests/fuzz/corpus/<target>/, where it stays as a test.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz_child import DONE, NOW
from fuzz_search import LONGEST_S, keep
from fuzz_target import CORPUS, HERE
from fuzz_targets import TARGETS

SILENT_S = 6 * LONGEST_S
"""Seconds after which a process that tries the same input hangs outside Python."""
START_S = 120
"""Seconds that a process may take before its first input."""


def fuzz(name: str, seconds: float) -> list[str]:
    """Search one target; prints a line for it, and returns its failures."""
    with TemporaryDirectory() as text:
        folder = Path(text)
        command = [sys.executable, str(HERE / "fuzz_child.py"), name, str(seconds), text]
        with (folder / "stderr").open("wb") as errors:
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            code = _wait(child, folder / NOW)
        done = folder / DONE
        if code == 0 and done.is_file():
            head, *failures = done.read_text().splitlines()
            tried, read, took = head.split()
        else:
            tried = read = took = "?"
            failures = [_lost(name, code, folder)]
    print(f"{name:<22}{tried:>9} tried{read:>9} read{took:>8} s{len(failures):>4} failures", flush=True)
    for failure in failures:
        print(f"    {failure}", flush=True)
    return failures


def _wait(child: subprocess.Popen[bytes], now: Path) -> int | None:
    """The exit code; None for a process that was ended because it hung."""
    begun = time.monotonic()
    while child.poll() is None:
        time.sleep(0.5)
        quiet = time.time() - now.stat().st_mtime if now.exists() else time.monotonic() - begun - START_S
        if quiet > SILENT_S:
            child.kill()
            child.wait()
            return None
    return child.returncode


def _lost(name: str, code: int | None, folder: Path) -> str:
    """What ended a process, with its last input where that is to blame."""
    what = "hang" if code is None else f"exit {code}"
    said = (folder / "stderr").read_text(errors="replace")[-600:]
    if not (folder / NOW).exists():
        return f"{what} before the first input: {said}"
    return f"{what}: {keep(CORPUS / name, what, (folder / NOW).read_bytes())}\n{said}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line. The exit code is 1 when something failed."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=10.0, help="of all targets together; default: 10")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time; default: 2")
    args = parser.parse_args(argv)
    unknown = sorted(set(args.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target {unknown[0]!r}")
    names = args.targets or list(TARGETS)
    seconds = 60 * args.minutes * min(args.jobs, len(names)) / len(names)
    with ThreadPoolExecutor(args.jobs) as pool:
        failures = [found for of in pool.map(partial(fuzz, seconds=seconds), names) for found in of]
    print(f"{len(names)} targets, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
