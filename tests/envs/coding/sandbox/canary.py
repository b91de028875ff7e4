"""Programs that leave a word wherever a program can, and one that looks for it wherever a program can look."""

import hashlib
import secrets

from envs.coding.sandbox import Call, Job, Stdio

HEAD, LENGTH = 7, 15
"""Bytes of the word that the search knows, and of all of it: as many as a process may have in its name."""

PLANT = "import ctypes, os, sys, time\nword = input()\nlibc = ctypes.CDLL(None)\n"
PLANTERS = {
    "standard output": "print(word * 999)",
    "standard error": "sys.stderr.write(word * 999)",
    "more output than allowed": "while True: print(word * 999, flush=True)",
    "output of a long test": "for _ in range(5):\n print(word, flush=True)\n time.sleep(0.05)",
    "exception": "raise ValueError(word)",
    "message of exit": "sys.exit(word)",
    "wide letters": "print(word + chr(0x1f600))\nword += chr(0x20ac)\nopen('wide', 'w').write(word)",
    "environment": "os.environ[word] = word\nsys.argv.append(word)\nsys.path.append(word)",
    "content of a file": "open('file', 'w').write(word * 999)",
    "name of a file": "open(word, 'w')",
    "names of many files": "for k in range(400): open(f'{word}{k:0200}', 'w').close()",
    "name of a folder": "os.makedirs(f'{word}/{word}/{word}')\nos.symlink(word, word + '-')",
    "file that is deleted": "file = open(word, 'w')\nfile.write(word * 999)\nfile.flush()\nos.unlink(word)",
    "name of a process": "libc.prctl(15, word.encode())\ntime.sleep(0.2)",
    "name of a thread": "import threading\n"
    "def work(): libc.prctl(15, word.encode()), time.sleep(0.2)\nthreading.Thread(target=work).start()",
    "process that stays": "if os.fork() == 0:\n os.setsid()\n for n in (0, 1, 2, 3): os.close(n)\n time.sleep(60)",
    "descriptors": "import socket\nr, w = os.pipe()\na, b = socket.socketpair()\nos.write(w, word.encode() * 99)\n"
    "a.send(word.encode() * 99)\nsocket.send_fds(a, [b'x'], [r, b.fileno()])",
    "its own pipes": "for n in '0123':\n try: os.write(os.open('/proc/self/fd/' + n, os.O_RDWR), word.encode() * 99)\n"
    " except OSError: pass",
    "shared memory": "import mmap\nopen('map', 'w+b').truncate(1 << 16)\n"
    "mmap.mmap(os.open('map', os.O_RDWR), 1 << 16).write(word.encode() * 99)",
    "timers": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 60)\n"
    "value = (ctypes.c_char * 64)(*word.encode())\nlibc.timer_create(1, value, ctypes.byref(ctypes.c_void_p()))",
    "locks": "import fcntl\nfcntl.flock(open(word, 'w'), fcntl.LOCK_EX)",
}

SEARCH = """
import hashlib, os, re, signal, sys

found = []
widths = (b"", b"\\0", b"\\0\\0\\0")  # what Python puts between letters, where some are wide
pattern = re.compile(b"|".join(b"".join(bytes([letter]) + zeros for letter in HEAD) for zeros in widths))


def look(data, where):
    for match in pattern.finditer(data):
        width = len(match.group()) // len(HEAD)
        tail = data[match.end() : match.end() + TAIL * width : width]
        if hashlib.sha256(tail).hexdigest() == DIGEST:
            found.append(where)


def memory():
    with open("/proc/self/maps") as areas, open("/proc/self/mem", "rb", 0) as mem:
        for area in areas.read().splitlines():
            low, high = (int(end, 16) for end in area.split()[0].split("-"))
            for at in range(low, high, 1 << 24) if " r" in area else ():
                try:
                    mem.seek(at)
                    look(mem.read(min((1 << 24) + 64, high - at)), "memory: " + area)
                except (OSError, ValueError):
                    pass


def content(path):
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(file, 1 << 20)
    finally:
        os.close(file)


def folder(top):
    for path, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            look(name, b"name in " + path)
        for name in (b".", *files, *folders):
            here = os.path.join(path, name)
            try:
                if os.path.islink(here):
                    look(os.readlink(here), here)
                elif os.path.isfile(here):
                    look(content(here), here)
                elif os.stat(here).st_mtime_ns == 1234567891234567890:
                    found.append(b"time of " + here)
            except OSError:
                pass


memory()
folder(".")
for number in os.listdir("/proc/self/fd"):
    try:
        look(os.fsencode(os.readlink("/proc/self/fd/" + number)), "descriptor")
        if int(number) > 3:
            look(os.read(int(number), 1 << 20), "descriptor")
    except OSError:
        pass
for name in os.environ.items():
    look(os.fsencode(" ".join(name)), "environment")
if any(open("/proc/self/timers").read()) or signal.sigpending():
    found.append("timers")
if SEALED:
    for top in ("/tmp", "/dev", "/run", "/var", "/home", "/root"):
        folder(top)
    for top in ("/proc", "/proc/1", "/proc/self", "/proc/net", "/proc/sysvipc"):
        for name in os.listdir(top) if os.access(top, os.R_OK) else ():
            if name not in ("kmsg", "kcore", "mem", "pagemap", "clear_refs"):
                try:
                    look(content(f"{top}/{name}"), f"{top}/{name}")
                except OSError:
                    pass
    if {name for name in os.listdir("/proc") if name.isdigit()} != {"1", str(os.getpid())}:
        found.append("a process")
print(found)
"""


def new_word() -> str:
    """A word that was never seen."""
    return secrets.token_hex(LENGTH)[:LENGTH]


def search(word: str, sealed: bool) -> str:
    """A program that prints where it found a word. It holds the first letters, and of the others a digest."""
    head, tail = word[:HEAD].encode(), word[HEAD:].encode()
    known = {
        "HEAD": head,
        "TAIL": len(tail),
        "DIGEST": hashlib.sha256(tail).hexdigest(),
        "SEALED": sealed,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in known.items()) + SEARCH


def planters(word: str) -> dict[str, list[Job]]:
    """Jobs by what they leave a word in: input, then whatever a program can write to."""
    show = "def show(x):\n    return [x, {x: x}]"
    return {
        "source": [Job(f"# {word}\nx_{word} = '{word}'\nprint('{word}')", [Stdio("")] * 2)],
        "source that does not compile": [Job(f"x = '{word}' (", [Stdio("")])],
        "standard input": [Job("print(len(input()))", [Stdio(f"{word}\n" * 9)] * 2)],
        "input that nobody reads": [Job("pass", [Stdio(word * 99_999)])],
        "arguments and result": [Job(show, [Call("show", [word])])],
        "name of a function": [Job("pass", [Call(word, [])])],
        "expected output": [Job("print(1)", [Stdio("", word)])],
        **{what: [Job(PLANT + program, [Stdio(word)])] for what, program in PLANTERS.items()},
        "times of the folder": [Job("import os\nos.utime('.', ns=(1234567891234567890,) * 2)", [Stdio("")])],
    }
