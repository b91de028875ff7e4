"""Programs end in the sandbox as they end in CPython: the same status, exit code and output."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from plain_programs import program

from envs.coding.sandbox import Job, Limits, Status, Stdio, open_sandbox
from envs.coding.sandbox.backends.box import ENVIRONMENT

LIMITS = Limits(cpu_s=10, wall_s=30)


def cpython(path, source, stdin):
    """(status, exit code, output) of a file that the interpreter runs."""
    path.write_bytes(source.encode())
    command = [sys.executable, "-I", "-B", "-X", "utf8", path]
    done = subprocess.run(
        command,
        input=stdin.encode(),
        capture_output=True,
        env=ENVIRONMENT,
        cwd=path.parent,
        timeout=30,
        check=False,
    )
    return _status(source, done.returncode), done.returncode, done.stdout.decode("utf-8", "replace")


def _status(source, code):
    try:
        compile(source.removeprefix("\ufeff"), "x", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError):
        return Status.SYNTAX
    return Status.ERROR if code else Status.OK


def differences(folder, count):
    rng = random.Random(count)
    programs = [program(rng) for _ in range(count)]
    with ThreadPoolExecutor(2) as pool:
        right = list(pool.map(lambda k: cpython(folder / f"p{k}.py", *programs[k]), range(count)))
    with open_sandbox("subprocess", workers=2, limits=LIMITS, trusted=True) as sandbox:
        results = sandbox.judge([Job(source, [Stdio(stdin)]) for source, stdin in programs])
    for (source, stdin), (status, code, output), result in zip(programs, right, results, strict=True):
        (found,) = result.outcomes
        # An interrupted program ends CPython by the signal, as code 130 or -2; here it is an error like others.
        same_code = code < 0 or not found.error.startswith("exit code") or found.error == f"exit code {code}"
        if (found.status, found.output) != (status, output) or not same_code:
            yield (
                source,
                stdin[:99],
                (status, code, output[-300:]),
                (found.status, found.output[-300:], found.error),
            )


def test_sixty_programs_end_as_in_cpython(tmp_path):
    assert list(differences(tmp_path, 60)) == []


@pytest.mark.slow
def test_two_thousand_programs_end_as_in_cpython(tmp_path):
    assert list(differences(tmp_path, 2000)) == []
