"""Runs inside the box, with LiveBench's own interpreter: lines of JSON in, a line of JSON for each out.

In: {"question": ..., "answer": ...}. Out: {"score": 0 or 1}, or {"error": ...} when the grader itself failed. Knows the
standard library and LiveBench, nothing of this project. Arguments: the repository's folder, the user id to become (0:
stay), limits of processes and of memory in MB.
"""

import json
import os
import pathlib
import resource
import sys
import types

ERROR = 500
"""Most characters of an error."""
HEAVY = {
    "livebench.agentic_code_runner.eval.harness.constant": (
        "EVALUATION_WORKDIR",
        "FIX_PATCH_RUN_LOG_FILE",
        "REPORT_FILE",
    ),
    "livebench.agentic_code_runner.eval.harness.report": ("Report",),
    "livebench.agentic_code_runner.eval.harness.test_result": ("TestStatus",),
    "livebench.common": (),
    "shortuuid": (),
}
"""Modules that the grader's file imports for other kinds of task, with the names it takes from them. They need dozens
of packages, and nothing here calls them."""


def restrict(uid: int, processes: int, memory_mb: int) -> None:
    """Become another user, and set limits."""
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    # Of this user id where it is the box's own, else of the box's user namespace.
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    memory = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def stand_in(repository: str) -> None:
    """Put empty modules where the heavy ones would be imported."""
    sys.path.insert(0, repository)
    for name, attributes in HEAVY.items():
        module = types.ModuleType(name)
        for attribute in attributes:
            setattr(module, attribute, None)
        sys.modules[name] = module
    sys.modules["livebench.common"].LIVE_BENCH_ROOT_PATH = pathlib.Path(repository, "livebench")  # type: ignore[attr-defined]


def main(repository: str, uid: str, processes: str, memory_mb: str) -> None:
    """Grade every line of standard input."""
    restrict(int(uid), int(processes), int(memory_mb))
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the grader and the programs print; results keep a descriptor of their own
    stand_in(repository)
    from livebench.process_results.coding.utils import LCB_generation_process_results as process_results

    for line in sys.stdin:
        pair = json.loads(line)
        try:
            found = {"score": process_results(pair["question"], pair["answer"])}
        except Exception as error:  # whatever the grader raises is an answer that was not graded
            found = {"error": f"{type(error).__name__}: {error}"[:ERROR]}
        results.write(json.dumps(found) + "\n")
        results.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
