"""Runs a module one process further down: `python -m rlanything.engines.vllm.served.below MODULE ARGUMENTS`.

A worker of Ray that ends kills its children with SIGKILL, and nothing below them. `keeper` and `remover` do their work
when the worker ends, so they must not be its children. This small process is the child, and waits for them.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys


def main(module: str, arguments: list[str]) -> None:
    """Run `module` as a program in a child of this process, which leads its process group.

    Each of the two ends with the other. When this one is killed, the module has lost its parent, which it looks for.
    When the module ends, however it does, this one kills what is left of the group.
    """
    child = os.fork()
    if child == 0:
        sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    try:
        os.waitpid(child, 0)
    finally:
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
