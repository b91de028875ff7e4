"""What a fork does to run a program: descriptors, limits, the program, and Python's usual shutdown."""

import atexit
import builtins
import json
import linecache
import os
import random
import resource
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from envs.coding.sandbox.inside.seal import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

Body = Callable[[], None]
Sizes = list[int]

MEMORY_EXIT = 91
"""Exit code of a fork that ended with an uncaught MemoryError."""
leave = os._exit
"""Kept here before a program can replace it."""
READY, COMPILED = 1, 2
"""How far a fork came: its process is set up, its program is compiled. A failure before `READY` is not the program's
fault; before `COMPILED`, no part of the program has run."""
RESULT, STAGE = 3, 4
"""The descriptors of the result, and of how far the fork came: a byte for each. The second one is closed before the
program runs, which can therefore not take back what it says."""
STACK = 64 << 20
SIGNALS = 1024
"""Signals that wait and POSIX timers at a time."""
PIPE = 65536
BYTE_ORDER_MARK = "\ufeff"
LONG = 1 << 63
TOO_LARGE_EXIT = 255
"""Exit code of a number that is no C long."""
FLUSH_EXIT = 120
"""Exit code of a program whose output cannot be written at its end."""


def restrict(limits: dict[str, Any]) -> None:
    """Set the limits that the kernel enforces for each process."""
    memory, size, cpu = limits["memory_mb"] << 20, limits["file_mb"] << 20, int(limits["cpu_s"]) + 2
    for forbidden in (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(forbidden, (0, 0))
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (SIGNALS, SIGNALS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits["open_files"],) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    if limits["count_processes"]:
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"] + 1,) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def take_descriptors(ends: tuple[int, ...]) -> None:
    """Make `ends` the descriptors 0, 1, 2, ... and close all others, those to the harness among them."""
    for number, end in enumerate(ends):
        os.dup2(end, 200 + number)
    for number in range(len(ends)):
        os.dup2(200 + number, number)
    os.closerange(len(ends), 1024)


def open_streams() -> None:
    """Python's standard streams in UTF-8 on the new descriptors, set up and named as Python does it."""
    sys.stdin = sys.__stdin__ = stream(0, "<stdin>", "r", "surrogateescape")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = stream(1, "<stdout>", "w", "surrogateescape")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stream(2, "<stderr>", "w", "backslashreplace", 1)  # type: ignore[misc]


def stream(end: int, name: str, mode: str, errors: str, buffering: int = -1) -> Any:
    """A text stream on a descriptor, which changes no end of line."""
    made: Any = open(end, mode, buffering, "utf-8", errors, newline="\n", closefd=False)  # noqa: SIM115
    made.buffer.raw.name = name
    return made


def become(ends: tuple[int, ...], sizes: Sizes, limits: dict[str, Any]) -> None:
    """Turn this fork into the program. `ends`: stdin, stdout, stderr, result, stage. Never returns.

    On stdin come the program and the call, `sizes` says how long, and then what the program may read.
    """
    code = 1
    try:
        take_descriptors(ends)
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_DUMPABLE, 1)  # lets the watcher see which memory is shared
        signal.signal(signal.SIGINT, signal.default_int_handler)
        open_streams()
        restrict(limits)
        reached()
        code = ending(running(sizes))
        code = finish() or code
    except MemoryError:
        code = MEMORY_EXIT
    except BaseException as error:
        os.write(2, repr(error).encode("utf-8", "replace")[:1000])
    finally:
        leave(code)


def ending(part: Body) -> int:
    """Run a part of a program; the exit code that Python would give it."""
    try:
        part()
    except SystemExit as stop:
        return asked(stop)
    except MemoryError:
        return MEMORY_EXIT
    except BaseException as error:
        return shown(error)
    return 0


def asked(stop: SystemExit) -> int:
    """The exit code that a program asks for; 1 for an object, which is written instead."""
    try:
        code = stop.code
        if code is None:
            return 0
        if isinstance(code, int):
            short = int.__ge__(code, -LONG) and int.__lt__(code, LONG)
            return int.__and__(code, 255) if short else TOO_LARGE_EXIT
        if sys.stderr is not None:
            try:
                sys.stderr.write(str(code))
            finally:
                sys.stderr.write("\n")
    except BaseException:
        return 1
    return 1


def shown(error: BaseException) -> int:
    """Show an uncaught exception, without the frames of the watcher; the exit code."""
    own = error.__traceback__ and error.__traceback__.tb_next and error.__traceback__.tb_next.tb_next
    hook = getattr(sys, "excepthook", sys.__excepthook__)
    if hook is not sys.__excepthook__:
        try:
            hook(type(error), error, own)
        except SystemExit as stop:
            return asked(stop)
        except BaseException as another:
            print_exception(another)
        else:
            return 1
    print_exception(error, own, -8)
    return 1


def print_exception(
    error: BaseException, own: types.TracebackType | None = None, limit: int | None = None
) -> None:
    """Print an exception, where standard error is still there."""
    try:
        if sys.stderr is not None:
            traceback.print_exception(type(error), error, own, limit)
    except BaseException:
        return


def finish() -> int:
    """What Python does when the main program has ended: wait for threads, call exit functions, flush; the exit code."""
    for part in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        try:
            part()
        except MemoryError:
            return MEMORY_EXIT
        except BaseException as error:
            print_exception(error)
    done = flushed("stdout", "stderr")
    flushed("__stdout__")
    return 0 if done else FLUSH_EXIT


def flushed(*names: str) -> bool:
    """Flush those of the standard streams that are open; whether no error occurred."""
    done = True
    for name in names:
        found = getattr(sys, name, None)
        try:
            if found is not None and not found.closed:
                found.flush()
        except BaseException:
            done = False
    return done


def reached() -> None:
    """Say that the next of `READY` and `COMPILED` is reached."""
    os.write(STAGE, b".")


def put(data: bytes) -> None:
    """Write bytes to the result descriptor."""
    while data:
        data = data[os.write(RESULT, data[:PIPE]) :]


def take(size: int) -> str:
    """The next part of what the harness sent."""
    data = bytearray()
    while len(data) < size:
        part = os.read(0, min(PIPE, size - len(data)))
        if not part:
            raise EOFError("the harness sent too little")
        data += part
    return data.decode("utf-8", "surrogatepass")


def running(sizes: Sizes) -> Body:
    """A body that compiles and runs a program: as `__main__`, or to call one function of it.

    `random` has the same seed in every test, so that a program that guesses always guesses the same.
    """

    def body() -> None:
        source, question = take(sizes[0]).removeprefix(BYTE_ORDER_MARK), take(sizes[1])
        code = compile(source, "<program>", "exec", dont_inherit=True)
        reached()
        os.close(STAGE)
        random.seed(0)
        name = "solution" if question else "__main__"
        module = sys.modules[name] = types.ModuleType(name)
        module.__dict__["__builtins__"] = builtins
        linecache.cache["<program>"] = (len(source), None, source.splitlines(True), "<program>")
        try:
            exec(code, module.__dict__)  # noqa: S102 - the purpose of the box
            if question:
                call(module, *json.loads(question))
        finally:
            flushed("stdout", "stderr")

    return body


def call(module: types.ModuleType, name: str, arguments: list[Any]) -> None:
    """Call the function, or the method of `Solution`, and send back what it returns as JSON."""
    home = module.__dict__
    if name in home:
        function = home[name]
    elif "Solution" in home:
        function = getattr(home["Solution"](), name)
    else:
        raise NameError(f"the program defines neither {name} nor a class Solution")
    put(json.dumps(function(*arguments)).encode())
