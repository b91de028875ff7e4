"""Small programs about all that surrounds a program in Python: exits, errors, streams, threads, hooks, source text."""

IMPORTS = "import atexit, io, os, signal, sys, threading, time, traceback\n"

OUTPUTS = [
    "print(1, 'a', None, sep='-', end='|')",
    "print('é€\U0001f600')",
    "print('\\udcff\\udc80')",
    "print('\\ud800')",
    "sys.stdout.write('no end of line')",
    "sys.stdout.buffer.write(b'\\xff\\xfe raw\\n')",
    "sys.stdout.flush()",
    "os.write(1, b'past the buffer\\n')",
    "print('to stderr', file=sys.stderr)",
    "print('now', flush=True)",
    "print('x' * 9000)",
    "print('a\\r\\nb\\rc')",
    "print(__name__, __doc__, len(sys.argv), sys.argv[1:])",
    "print(type(__builtins__).__name__, __spec__, __package__)",
    "import __main__\nprint(__main__ is sys.modules['__main__'], 'atexit' in vars(__main__))",
    "print(*((s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.fileno(), s.isatty(), s.writable())"
    " for s in (sys.stdin, sys.stdout, sys.stderr)))",
    "print(sys.stdout is sys.__stdout__, type(sys.stdout.buffer).__name__, sys.stdout.newlines)",
    "sys.stdout.reconfigure(encoding='latin-1', errors='replace')\nprint('é€')",
    "print(sys.getrecursionlimit(), threading.current_thread().name, threading.active_count())",
    "import pickle\nclass A:\n    x = 1\nprint(pickle.loads(pickle.dumps(A)) is A, A.__module__)",
    "from dataclasses import dataclass\n@dataclass\nclass B:\n    b: 'int' = 2\nprint(B())",
    "y: int = 3\nprint(__annotations__)",
    "print(eval('1 + y' if 'y' in globals() else '2'))",
    "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('async')\nasyncio.run(main())",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    print(len(traceback.format_exc()) > 0)",
]
INPUTS = [
    "print(repr(input()))",
    "print(repr(input('prompt> ')))",
    "print(repr(sys.stdin.read()))",
    "print([line for line in sys.stdin])",
    "print(sys.stdin.buffer.readline())",
    "print(int(input()))",
    "print(sum(map(int, input().split())))",
    "print(repr(sys.stdin.readline()), repr(sys.stdin.read(1)))",
    "print(os.read(0, 3))",
    "try:\n    while True: print(input())\nexcept EOFError as e:\n    print('end', e)",
]
STDIN = ["", "1 2\n3\n", "7\n", "é\n\U0001f600", "a\r\nb\rc\n", "\n\n", "x" * 100_000, "no end"]
THREADS = [
    "t = threading.Thread(target=print, args=('thread',))\nt.start()\nt.join()",
    "threading.Thread(target=lambda: (threading.main_thread().join(), print('later'))).start()",
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "t = threading.Thread(target=sys.exit, args=(3,))\nt.start()\nt.join()",
    "t = threading.Timer(0.01, print, args=('timer',))\nt.start()\nt.join()",
    "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    "print(list(pool.map(abs, [-1, 2])))",
    "def more():\n    threading.main_thread().join()\n"
    "    threading.Thread(target=print, args=('thread of a thread',)).start()\n"
    "threading.Thread(target=more).start()",
    "threading.excepthook = lambda a: print('thread hook', a.exc_type.__name__)",
    "pid = os.fork()\nif pid == 0:\n    sys.exit(0)\nprint(os.waitpid(pid, 0)[1])",
    "sys.stdout.flush()\nif os.fork() == 0:\n    print('child')\n    os._exit(0)\nos.wait()",
]
AT_EXIT = [
    "atexit.register(print, 'at exit')",
    "atexit.register(lambda: 1 / 0)",
    "atexit.register(sys.exit, 5)",
    "atexit.register(lambda: atexit.register(print, 'within'))",
    "atexit.register(sys.stdout.flush)",
    "atexit.register(os._exit, 6)",
    "atexit.register(lambda: os.write(1, b'raw at exit\\n'))",
    "atexit.register(lambda: threading.Thread(target=print, args=('thread at exit',)).start())",
]
HOOKS = [
    "sys.excepthook = lambda *a: print('hook', a[0].__name__)",
    "sys.excepthook = lambda *a: sys.exit(4)",
    "sys.excepthook = lambda *a: sys.exit(0)",
    "sys.excepthook = lambda *a: 1 / 0",
    "sys.excepthook = None",
    "del sys.excepthook",
    "sys.unraisablehook = lambda a: print('unraisable', a.exc_type.__name__)",
    "sys.settrace(None)",
    "sys.displayhook = None",
    "signal.signal(signal.SIGTERM, lambda *a: print('term'))\nos.kill(os.getpid(), signal.SIGTERM)",
    "signal.signal(signal.SIGALRM, lambda *a: print('alarm'))\nsignal.setitimer(0, 0.01)\ntime.sleep(0.05)",
]
STREAMS = [
    "sys.stdout.close()",
    "sys.stdin.close()",
    "sys.stderr.close()",
    "os.close(0)",
    "os.close(1)",
    "os.close(2)",
    "sys.stdout = None",
    "sys.stderr = None",
    "sys.stdin = None",
    "sys.stdout = sys.stderr",
    "sys.stdout = io.StringIO()",
    "sys.stdout = sys.__stdout__",
    "del sys.stdout",
    "sys.stdin = io.StringIO('replaced\\n')",
    "sys.stdout = open(1, 'w', closefd=False)",
    "sys.stdout = os.fdopen(os.dup2(1, 9), 'w', 1)",
    "sys.stdout.detach()",
]
RECURSION = [
    "def f(n): return n and 1 + f(n - 1)\nprint(f(900))",
    "def f(n): return n and 1 + f(n - 1)\ntry:\n    f(10 ** 6)\nexcept RecursionError as e:\n    print('deep')",
    "def f(n): return n and 1 + f(n - 1)\nsys.setrecursionlimit(6000)\nprint(f(5000))",
    "def f(): f()\nf()",
]
# Not tuples: CPython 3.11 and 3.12 differ on `sys.exit(())`. Not MemoryError: it is a status of its own.
VALUES = [
    *(
        "None",
        "True",
        "False",
        "1.0",
        "0.0",
        "'text'",
        "''",
        "'é'",
        "b'x'",
        "b''",
        "[]",
        "[1]",
        "{}",
        "set()",
        "object()",
    ),
    *("Exception('x')", "SystemExit(3)", "ValueError", "int", "1j", "...", "NotImplemented"),
    *map(str, (0, 1, 2, 127, 128, 255, 256, 257, -1, -2, -255, -256)),
    *(
        f"{sign}2**{bits}{more}"
        for sign in ("", "-")
        for bits in (31, 32, 63, 64, 70, 200)
        for more in ("-1", "", "+3")
    ),
]
ERRORS = [
    *(
        "Exception",
        "BaseException",
        "ValueError",
        "KeyError('é')",
        "StopIteration",
        "OSError(2,'no')",
        "GeneratorExit",
    ),
    *("KeyboardInterrupt", "RecursionError", "SyntaxError('x')", "UnicodeDecodeError('a',b'b',0,1,'c')"),
    *(
        "AssertionError",
        "ExceptionGroup('g',[ValueError(1)])",
        "SystemError",
        "ImportError",
        "IndentationError",
    ),
]
ENDS = [
    *(f"sys.exit({value})" for value in VALUES),
    *(f"raise SystemExit({value})" for value in VALUES),
    *(f"raise {error}" for error in ERRORS),
    *(f"exit({value})" for value in ("", "3", "2**70", "'bye'")),
    *(f"os._exit({value})" for value in (0, 1, 255, 256)),
    *(f"os.kill(os.getpid(), {number})" for number in (2, 9, 11, 13, 15, 6)),
    "raise SystemExit",
    "raise SystemExit(1, 2)",
    "e = SystemExit()\ne.code = 7\nraise e",
    "class Exit(SystemExit): code = 8\nraise Exit",
    "class Exit(SystemExit):\n    @property\n    def code(self): raise ValueError\nraise Exit",
    "class Code(int): pass\nsys.exit(Code(9))",
    "class Code(int):\n    def __and__(self, other): return 0\nsys.exit(Code(9))",
    "class Text:\n    def __str__(self): raise ValueError\nsys.exit(Text())",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "try:\n    sys.exit(3)\nfinally:\n    print('finally')",
    "try:\n    sys.exit(3)\nexcept SystemExit as e:\n    print(repr(e.code))",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError from e",
    "try:\n    sys.exit(3)\nfinally:\n    sys.exit(2**70)",
    "quit()",
    "os.abort()",
    "assert False, 'said'",
    "next(iter([]))",
    "undefined",
    "import no_such_module",
    "from sys import nothing",
    "class C:\n    sys.exit(11)",
    "print(end='')",
]
UNREADABLE = [
    "print(",
    "return 1",
    "x = = 1",
    "await x",
    "  print(1)",
    "def f(:",
    "0777",
    "yield 1",
    "break",
    "'abc",
    "f'{'",
    "def f():\n    nonlocal z",
    "from __future__ import nope",
    "x = 1\n\ty = 2",
    "if 1:\n        a\n    b",
    "print(1)\0",
    "\ufeff",
    "a\u00a0b",
    "é = 1; print(é); $",
    "class",
    "(" * 300,
    "x = 1 +\\",
    "1 = x",
    "f(**a, *b)",
    "lambda: (yield) = 1",
    "del f()",
    "import a.b as c.d",
]


def _source(rng, text):
    """The same program as another text."""
    kind = rng.randrange(12)
    if kind == 0:
        return "\ufeff" + text
    if kind == 1:
        return text.replace("\n", "\r\n")
    if kind == 2:
        return "# -*- coding: utf-8 -*-\n" + text
    if kind == 3:
        return text.rstrip("\n")
    if kind == 4:
        return "\n\f\n" + text + "\n\\\n"
    if kind == 5:
        return "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in text.splitlines())
    return text


def program(rng):
    """(source, standard input)."""
    pieces = rng.choices(OUTPUTS, k=rng.randint(0, 3))
    for others, chance in (
        (INPUTS, 0.5),
        (THREADS, 0.3),
        (AT_EXIT, 0.4),
        (HOOKS, 0.3),
        (STREAMS, 0.3),
        (RECURSION, 0.1),
        (UNREADABLE, 0.05),
    ):
        if rng.random() < chance:
            pieces.append(rng.choice(others))
    rng.shuffle(pieces)
    if rng.random() < 0.6:
        pieces.append(rng.choice(ENDS))
    return _source(rng, IMPORTS + "\n".join(pieces) + "\n"), rng.choice(STDIN)
