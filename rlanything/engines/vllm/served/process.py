"""One vLLM server as a process of this machine: its command, its environment, its log, its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from rlanything.core.errors import MachineError
from rlanything.core.printable import safe
from rlanything.engines.vllm.instance import BLOCK, GRAPHS, SEEING, Settings
from rlanything.engines.vllm.served import below, keeper, program
from rlanything.engines.vllm.served.wire import UNIX
from rlanything.engines.vllm.surroundings import CACHE_SIZE, EXACT, FORCED, INVARIANT, NO_COMPILER, VARIABLES

SOCKET, LOG = "socket", "log"
LINES, MOST = 20, 1 << 16
"""How many lines of a log are shown, and how many bytes of it are read."""
_NOISE = re.compile(r"nanobind: | - (leaked|\.\.\. skipped) |.*resource_tracker|.*warnings\.warn")
"""Beginnings of lines that vLLM's libraries write at every end, after the line that matters."""
_CAUSE = re.compile(r"\(EngineCore[^)]*\) ERROR .*?\] [\w.]+(Error|Exception)\b")
"""The line that says why vLLM's inner process ended. The server writes its own traceback after it, of 60 lines."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
_LAUNCH = re.compile(r"((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_\w+")
"""What torchrun tells the processes of a training. A server has a process group of its own."""


class Process:
    """A running server and all of its children. They end with this process, also when it is killed.

    Args:
        program: the command, without what `arguments` adds.
        arguments: of the command.
        environment: of the server.
        folder: for the socket and the log.
        of_ray: whether this process is a worker of Ray. See `below`.
    """

    def __init__(
        self,
        program: list[str],
        arguments: list[str],
        environment: dict[str, str],
        folder: Path,
        of_ray: bool = False,
    ) -> None:
        self._log = folder / LOG
        self.gone = False  # it is a process of this machine, which always says how it is
        self._address = f"{UNIX}{folder / SOCKET}"
        between = [below.__name__, keeper.__name__] if of_ray else [keeper.__name__]
        command = [sys.executable, "-m", *between, *program, *arguments]
        with self._log.open("ab") as log:
            self._keeper = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # a group of its own, which Ctrl-C does not reach
            )

    def where(self) -> str:
        """The address where it listens, or will listen."""
        return self._address

    @property
    def ended(self) -> bool:
        """Whether the server has ended."""
        return self._keeper.poll() is not None

    def stop(self) -> None:
        """Let it end by itself, within `keeper.GRACE_S`; then as `kill`."""
        with suppress(subprocess.TimeoutExpired):
            self._keeper.communicate(timeout=keeper.GRACE_S + 5 * keeper.LOOK_S)  # closes the pipe, and waits
        self.kill()

    def note_end(self) -> None:
        """Give the log a moment to say how the server ended, in case it is ending."""
        with suppress(subprocess.TimeoutExpired):
            self._keeper.wait(3 * keeper.LOOK_S)

    def kill(self) -> None:
        """End it and its children now."""
        with suppress(ProcessLookupError):  # the group, of which a process may be left after its leader
            os.killpg(self._keeper.pid, signal.SIGKILL)
        self._keeper.communicate()

    def last_words(self) -> str:
        """The end of its log, with nothing in it that moves a terminal's cursor.

        Above it stands the error of vLLM's inner process, where that lies further up.
        """
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - MOST))
            lines = file.read().decode("utf-8", "replace").splitlines()
        telling = [line for line in lines if not _NOISE.match(line)]
        causes = [line for line in telling[:-LINES] if _CAUSE.match(line)]
        shown = [*causes[-1:], *telling[-LINES:]]
        return "\n".join(f"    | {safe(line)}" for line in shown)


PROGRAM = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
"""vLLM's own server."""
SIGHTED_PROGRAM = [sys.executable, "-m", program.__name__]
"""The same for models that read pictures."""


def arguments(model: Path, listens: Path | tuple[str, int], settings: Settings) -> list[str]:
    """Of vLLM's server: where it listens, token ids, and draws by `draw.OwnDraw`.

    listens: the path of a Unix socket, which only this user can open; or host and port, which other machines reach.
    """
    place = {"host": listens[0], "port": listens[1]} if isinstance(listens, tuple) else {"uds": listens}
    valued = {
        "model": model,
        "served-model-name": "rlanything",
        **place,
        "load-format": "safetensors",
        "dtype": settings.dtype,
        "distributed-executor-backend": "uni",
        "max-model-len": settings.context,
        "max-num-seqs": settings.max_batch,
        "max-num-batched-tokens": settings.max_batched_tokens,
        "block-size": BLOCK,
        "kv-cache-memory-bytes": settings.cache_bytes,
        "gpu-memory-utilization": 0.01,  # unused, but for a check that so much memory is free
        "logprobs-mode": "processed_logits",
        "logits-processors": "rlanything.engines.vllm.draw:OwnDraw",
        "generation-config": "vllm",  # no defaults from the checkpoint
    }
    if not settings.eager:
        valued |= {name.replace("_", "-"): json.dumps(value) for name, value in GRAPHS.items()}
    switches = []
    for name, value in (SEEING if settings.sighted else {}).items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            switches.append(option if value else f"no-{option}")
        else:
            valued[option] = value
    switches += ["skip-tokenizer-init", "enable-scale-out", "no-async-scheduling", "disable-log-stats"]
    switches += ["disable-uvicorn-access-log", *(["enforce-eager"] if settings.eager else [])]
    switches.append("enable-prefix-caching" if settings.prefix_caching else "no-enable-prefix-caching")
    if settings.lora_rank:
        valued |= {"max-lora-rank": settings.lora_rank, "max-loras": settings.loras}
        switches.append("enable-lora")
    values = [part for name, value in valued.items() for part in (f"--{name}", str(value))]
    return values + [f"--{name}" for name in switches]


def environment(device: str, folder: Path, *, lora: bool = False, invariant: bool = False) -> dict[str, str]:
    """Of vLLM's server. Variables that the user has set stay, but for torchrun's and those that results depend on.

    On GPUs it sees only that of this process. lora: whether it is given LoRA's weights alone. invariant: whether it has
    kernels that give a request the same bits in any batch. Raises `MachineError` as `own_device`.
    """
    given = {name: value for name, value in os.environ.items() if not _LAUNCH.fullmatch(name)}
    found = {**VARIABLES, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", **given}
    found |= {
        "VLLM_SERVER_DEV_MODE": "1",  # weights can be taken over
        **{name: VARIABLES[name] for name in FORCED},  # one process less on a CPU, and our logits processor
        "TMPDIR": str(folder),  # its sockets lie there, and go with it
        "VLLM_RPC_BASE_PATH": str(folder),
        INVARIANT: str(int(invariant)),
    }
    found.pop(CACHE_SIZE, None)
    if lora:
        found["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"  # LoRA's weights can be taken over alone
    if device == "cpu":
        found[NO_COMPILER] = "1"
    if device == "cuda":
        found = {**EXACT, **found, VISIBLE: own_device()}
    return found


def own_device() -> str:
    """The name of the GPU that this process trains on, as a server must be told it.

    It is the one of the local rank among those that the process may see. Raises `MachineError` where they are too few.
    """
    rank, seen = int(os.environ.get("LOCAL_RANK", "0")), os.environ.get(VISIBLE)
    if seen is None:
        return str(rank)
    names = [name.strip() for name in seen.split(",") if name.strip()]
    if rank >= len(names):
        raise MachineError(
            f"{VISIBLE} = {seen!r}: has {len(names)} GPUs, and the process with LOCAL_RANK = {rank} needs one "
            f"of its own for its servers; allowed: at least {rank + 1} of them, or fewer processes (train.devices)"
        )
    return names[rank]
