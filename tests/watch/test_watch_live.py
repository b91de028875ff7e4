"""In a terminal: the live view is drawn anew at every look, in every size; progress of a stage is lines that update."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import watch_cases as cases
from rich.console import Console

from rlanything.core.errors import ConfigError
from rlanything.files import locks
from rlanything.runs.progress import ticker
from rlanything.runs.progress.heartbeat import FILE, Heartbeat
from rlanything.watch import holders, screen, seeds, stages
from rlanything.watch.text import words
from rlanything.watch.text.page import page
from rlanything.watch.view import Watched
from rlanything.watch.work.board import Board
from rlanything.watch.work.shown import shown
from rlanything.watch.work.taken import taken

ROOT = Path(__file__).parents[2]
LINE = "bootstrap: policy: {}/80, 0:03 so far, 1:43 left, loss 0.5"


@pytest.fixture
def project(tmp_path) -> Path:
    for number in range(3):
        cases.seed(cases.arm(tmp_path, name=f"arm{number}", key=f"{number}" * 16), mu=0.9, invalid_votes=0.5)
    return tmp_path


@pytest.mark.parametrize("width", [20, 40, 79, 80, 120, 300])
def test_no_line_is_longer_than_the_terminal(project, width):
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=True, color_system=None, markup=False, highlight=False
    )
    for part in page(Watched(project, project).look()):
        console.print(part)
    assert max(map(len, file.getvalue().splitlines())) <= width


def frames(watched: Watched, sizes: list[tuple[int, int]]) -> list[list[str]]:
    """What the live view draws in a terminal of each size (columns, lines), as lines."""
    file = io.StringIO()
    width, height = sizes[0]
    console = Console(
        file=file,
        force_terminal=True,
        color_system=None,
        width=width,
        height=height,
        markup=False,
        highlight=False,
    )
    following = iter(sizes[1:])

    def pause(_: float) -> None:
        try:
            console.size = next(following)
        except StopIteration:
            raise KeyboardInterrupt from None

    screen.follow(watched, console, pause)
    text = file.getvalue()
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1, "the first screen is back"
    drawn = text.partition("\x1b[?1049l")[0].split("\x1b[H")[1:]
    return [
        re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", frame).split("\n")
        for frame in drawn
        if frame.strip("\x1b[?25l")
    ]


def test_what_does_not_fit_the_height_is_left_out_and_a_resize_is_followed(project):
    sizes = [(100, 24), (100, 40), (60, 10), (30, 5), (20, 2), (120, 60)]
    drawn = frames(Watched(project, project), sizes)[-len(sizes) :]
    for lines, (width, height) in zip(drawn, sizes, strict=True):
        assert len(lines) <= height, f"{width}x{height}"
        assert max(map(len, lines)) <= width, f"{width}x{height}"
    left_out = ["more lines" in " ".join(lines) for lines in drawn]
    assert left_out == [True, False, True, True, True, False]


def test_in_a_low_terminal_the_end_is_lost_and_not_what_is_urgent(tmp_path):
    """Three finished arms of four seeds, and one in training that has two troubles: all of it has 35 lines."""
    for name in ("a", "b", "c"):
        for number in range(4):
            cases.finished(tmp_path, name, number=number)
    place = cases.arm(tmp_path, "zeta", seeds=2)
    folder = cases.seed(place, mu=0.9, invalid_votes=0.5)
    with locks.held(folder / "lock", "busy"):
        (lines,) = frames(Watched(tmp_path, tmp_path), [(100, 24)])[-1:]
    text = "\n".join(lines)
    assert len(lines) <= 24
    assert text.count("! zeta/seed-0: ") == 2
    assert "rollout, turn 3" in text
    assert "seconds an iteration: " in text
    assert 0 < text.find("! zeta/seed-0") < text.find("zeta/seed-0  █") < text.find("a/seed-0  ")


def test_what_continues_a_run_stands_above_the_finished_ones(tmp_path):
    for number in range(20):
        cases.finished(tmp_path, "a", number=number)
    cases.seed(cases.arm(tmp_path, "zeta"))
    (lines,) = frames(Watched(tmp_path, tmp_path), [(100, 10)])[-1:]
    assert "zeta is not running (4 iterations are kept)" in "\n".join(lines)


def test_curves_are_ascii_where_the_encoding_has_nothing_else(project):
    assert screen.blocks("ascii") == screen.words.PLAIN
    assert screen.blocks("utf-8") == screen.words.BLOCKS
    command = [sys.executable, "-m", "rlanything", "--root", str(project), "watch"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stdout.decode("ascii").count("arm1/seed-0") >= 2


def test_of_lines_about_the_same_work_only_the_last_is_shown(tmp_path):
    board = Board(tmp_path, "bootstrap")
    assert board.take("bootstrap: made") == "bootstrap: made"
    assert board.take(LINE.format(1)) is None
    assert board.take(LINE.format(2)) is None
    assert board.take(LINE.format(2).replace("policy", "adapter")) is None
    text = board.rows(50).plain.split("\n")
    assert len(text) == 3
    assert "policy: 2/80" in text[0]
    assert all(len(line) <= 50 for line in text)
    assert board.take(LINE.format(80)) is None
    assert "policy" not in board.rows(50).plain


def test_the_lines_of_a_ticker_are_those_that_are_updated(tmp_path, capsys):
    for unit in ("", "iteration"):
        one = ticker.Ticker("full seed 0", 80, unit=unit).at_once()
        one.tick(3, "loss 0.5")
        assert Board(tmp_path, "train --arm full").take(capsys.readouterr().err.rstrip("\n")) is None


def test_seeds_at_work_are_a_line_each(tmp_path, monkeypatch):
    place = cases.arm(tmp_path, seeds=2)
    folder = cases.seed(place)
    written = (folder / "timing.jsonl").stat().st_mtime
    monkeypatch.setattr(seeds, "time", SimpleNamespace(time=lambda: written))
    cases.seed(place, 1, published=2)
    stage = holders.lock_of(tmp_path, "train --arm full")
    stage.parent.mkdir(parents=True)
    with locks.held(folder / "lock", "busy"), locks.held(stage, "busy"):
        text = Board(tmp_path, "train --arm full").rows(120).plain.split("\n")
        narrow = Board(tmp_path, "train --arm full").rows(80).plain.split("\n")
        plain = Board(tmp_path, "train --arm full", words.PLAIN).rows(80).plain
    assert "tokens/s, accuracy" in narrow[0]
    assert len(narrow[0]) == 80
    assert words.BLOCKS[-1] in narrow[0]
    assert plain.isascii(), "the bar and the mark of a cut line, too"
    assert [len(line) for line in plain.split("\n")] == [len(line) for line in narrow]
    assert [line.split()[0] for line in text] == ["full/seed-0", "full/seed-1", "train"]
    assert "2/10" not in text[1]
    assert "1/10 waiting" in text[1]
    assert "4/10 rollout, turn 3, 0:14 left, 800 tokens/s, accuracy 0.50, in_domain 0.40, mu 1.30" in text[0]


PROGRAM = f"""
import subprocess, sys, time
from pathlib import Path
from rlanything.watch.work.shown import shown
from rlanything.watch.work.taken import taken
with shown(Path(sys.argv[1]), "bootstrap", "", False):
    for k in range(6):
        print({LINE!r}.format(k), file=sys.stderr, flush=True)
        time.sleep(0.4)
    subprocess.run(["sh", "-c", "echo from a child; printf '10%%\\r30%%\\n\\033[2J' >&2"])
    print("from itself")
    END
print("afterwards")
"""


def in_terminal(root: Path, program: str) -> tuple[int, str]:
    """What a program writes into a terminal, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm", "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
        os.environ.pop(ticker.VARIABLE, None)
        os.execv(sys.executable, [sys.executable, "-c", program, str(root)])
    found, end = b"", time.monotonic() + 120
    while time.monotonic() < end and select.select([terminal], [], [], 120)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        found += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), found.decode()


@pytest.mark.long
@pytest.mark.parametrize(("last", "code"), [("pass", 0), ("raise SystemExit(7)", 7)])
def test_in_a_terminal_lines_are_updated_and_what_else_is_printed_stays(tmp_path, last, code):
    status, out = in_terminal(tmp_path, PROGRAM.replace("END", last))
    assert status == code
    for said in ("from a child\r\n", "30%\r\n", "from itself\r\n", "\\x1b[2J"):
        assert out.count(said) == 1
    assert "10%" not in out
    assert "\x1b[2J" not in out, "a child's escape sequences are none"
    assert "\x1b[?25l" not in out, "the cursor stays visible: after a kill nobody would show it again"
    assert 0 < out.count("policy: ") <= out.count("\x1b[1A"), "each drawing is erased"
    assert ("afterwards" in out) is (code == 0)
    assert (tmp_path / stages.TIMES).exists() is (code == 0)


def test_without_a_terminal_nothing_is_taken_and_the_level_is_given_back(tmp_path, monkeypatch, capfd):
    monkeypatch.delenv(ticker.VARIABLE, raising=False)
    for level, chosen in (("", "lines"), ("quiet", "quiet"), ("verbose", "verbose")):
        with shown(tmp_path, "bootstrap", level, False):
            assert ticker.level() == chosen
            ticker.Ticker("work", 3).at_once().tick(1)
    assert ticker.VARIABLE not in os.environ
    assert capfd.readouterr().err.count("work: 1/3") == 2
    assert list(stages.times(tmp_path)) == ["bootstrap"]
    monkeypatch.setenv(ticker.VARIABLE, "qiet")
    with pytest.raises(ConfigError, match="did you mean 'quiet'"), shown(tmp_path, "bootstrap", "", False):
        raise AssertionError


def test_a_heartbeat_says_the_phase_and_does_not_mind_a_full_disk(tmp_path):
    import json

    beat = Heartbeat(tmp_path)
    beat.begin(7)
    with beat.phase("rollout"), beat.phase("generate"):
        now = json.loads((tmp_path / FILE).read_text())
    assert (now["iteration"], now["phase"], now["calls"]) == (7, "rollout", 0)
    with beat.phase("sync"):
        assert json.loads((tmp_path / FILE).read_text())["phase"] == "rollout"
    assert set(beat.lap().phases) == {"rollout", "rollout/generate", "sync"}
    for folder in (tmp_path / "gone", None):
        with Heartbeat(folder).phase("learn"):
            pass


@pytest.mark.parametrize(("encoding", "drawn"), [("ascii", words.PLAIN), ("utf-8", words.BLOCKS)])
def test_a_command_draws_what_the_encoding_of_its_terminal_has(tmp_path, monkeypatch, encoding, drawn):
    master, terminal = pty.openpty()
    place = cases.arm(tmp_path, seeds=1)
    folder = cases.seed(place)
    stage = holders.lock_of(tmp_path, "train --arm full")
    stage.parent.mkdir(parents=True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv(ticker.VARIABLE, raising=False)
    with os.fdopen(terminal, "w", encoding=encoding) as file:
        monkeypatch.setattr(sys, "stderr", file)
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        with (
            locks.held(folder / "lock", "busy"),
            locks.held(stage, "busy"),
            shown(tmp_path, "train --arm full", "", plain=False),
        ):
            text = b""
            while b"\n" not in text.partition(b"full/seed-0")[2]:
                assert select.select([master], [], [], 60)[0], "it draws nothing"
                text += os.read(master, 1 << 16)
    os.close(master)
    line = text.partition(b"full/seed-0")[2].decode(encoding)
    assert line.split()[0][0] == drawn[-1]
    assert "\\u" not in line


def test_a_stage_goes_on_printing_when_its_terminal_is_gone(tmp_path, monkeypatch):
    """The terminal's end of the pair is closed, as by a window that is closed; whoever wrote into the pipe went on."""
    master, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        done = threading.Event()

        def stage() -> None:
            with taken(Board(tmp_path, "train --arm full")):
                os.close(master)
                for number in range(20_000):
                    os.write(file.fileno(), f"iteration {number} of many\n".encode())
            done.set()

        threading.Thread(target=stage, daemon=True).start()
        assert done.wait(120), "it hangs: nobody reads what it prints"
