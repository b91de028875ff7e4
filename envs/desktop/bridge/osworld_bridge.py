#!/usr/bin/env python3
"""Serves OSWorld's `DesktopEnv` over the protocol of docs/osworld.md: JSON lines on standard input and output.

A program of its own: run it with the Python that has OSWorld's `desktop_env`. It imports nothing of this project, so
the file can be copied to another machine: `python osworld_bridge.py --provider_name docker --headless`. Every option
but those under `own` is an argument of `DesktopEnv`. `python osworld_bridge.py --describe` prints the digest of the
evaluators and ends, without a virtual machine. `--provider_name docker --fetch` fetches the image of a
machine, and ends.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = 1
LONGEST_MESSAGE = 2000
ENDINGS = ("DONE", "FAIL")
QUOTES = {"'", "\\"}
"""Keys that OSWorld puts into Python code between single quotes: they are typed instead, which it quotes properly. So
are letters that its list of keys does not have."""
NAMES = {"super": "win", "space": " "}
"""Keys that OSWorld's list has under another name."""
OF_TASK = {"_set_task_info", "setup"}
"""Functions of OSWorld in which a task file is read and its set-up is performed."""
TURN = 600
"""Seconds that a machine of docker waits until those before it were started. OSWorld starts one after the other, all
under one lock, and gives up after 10 seconds."""


class Refused(Exception):
    """A request that is not one of the protocol."""


class Server:
    """Answers requests. make: returns a `DesktopEnv`, called when the first task is set up."""

    def __init__(self, make: Callable[[bool], Any], facts: dict[str, str], options: dict[str, Any]) -> None:
        self._make, self._facts, self._options = make, facts, options
        self._env: Any = None
        self._asked = {"screenshot": True, "tree": False}

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer to one request. An error is an answer too."""
        number = request.get("id") if isinstance(request, dict) else None
        try:
            return {"id": number, "ok": self._do(request)}
        except Refused as error:
            return _error(number, "protocol", str(error))
        except Exception as error:
            return _error(number, fault(request.get("do"), error), f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Stop the virtual machine."""
        if self._env is not None:
            env, self._env = self._env, None
            env.close()

    def _do(self, request: Any) -> dict[str, Any]:
        if not isinstance(request, dict):
            raise Refused("a request is a JSON object")
        known = {"hello": self._hello, "reset": self._reset, "step": self._step, "evaluate": self._evaluate}
        if request.get("do") not in known:
            raise Refused(f"do must be one of {', '.join(known)}")
        return known[request["do"]](request)

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        self._asked = {name: bool(request.get(name)) for name in self._asked}
        screen = [self._options["screen_width"], self._options["screen_height"]]
        return {"version": VERSION, "world": "osworld", "screen": screen, "facts": self._facts}

    def _reset(self, request: dict[str, Any]) -> dict[str, Any]:
        task = request.get("task")
        if not isinstance(task, dict):
            raise Refused("task must be an object")
        if self._env is None:
            self._env = self._make(self._asked["tree"])
        try:
            observation = self._env.reset(task_config=task)
        except Exception:
            # OSWorld notes this only after a set-up that succeeded, and else would not revert the machine next time.
            self._env.is_environment_used = True
            raise
        if self._options["settle"]:  # OSWorld's own runs wait for the applications too, and look again
            time.sleep(self._options["settle"])
            observation = self._env._get_obs()
        return self._sight(observation, False)

    def _step(self, request: dict[str, Any]) -> dict[str, Any]:
        actions = request.get("actions")
        if self._env is None or not isinstance(actions, list) or not actions:
            raise Refused("step needs a task that was set up, and a list of actions")
        moves = [move for action in actions for move in plain(action)]
        for move in moves[:-1]:
            self._env.step(move, pause=0)
        observation, _reward, done, _info = self._env.step(moves[-1], pause=self._options["pause"])
        return self._sight(observation, bool(done))

    def _evaluate(self, _request: dict[str, Any]) -> dict[str, Any]:
        if self._env is None:
            raise Refused("evaluate needs a task that was set up")
        time.sleep(self._options["before_evaluation"])
        score = float(self._env.evaluate())
        # OSWorld gives its evaluators None for what a machine did not answer, and they may make 0 of it.
        if score < 1 and not self._env._get_obs().get("screenshot"):
            raise OSError("the machine was not reached when it was evaluated")
        return {"score": score}

    def _sight(self, observation: dict[str, Any], done: bool) -> dict[str, Any]:
        picture = observation.get("screenshot") if self._asked["screenshot"] else None
        tree = observation.get("accessibility_tree") if self._asked["tree"] else None
        if self._asked["screenshot"] and not picture:
            raise RuntimeError("OSWorld returned no screenshot")
        if self._asked["tree"] and tree is None:
            raise RuntimeError("OSWorld returned no accessibility tree")
        encoded = base64.b64encode(picture).decode("ascii") if picture else None
        return {"screenshot": encoded, "tree": tree, "done": done}


def fault(do: Any, error: BaseException) -> str:
    """Whose fault an error is: `task`, `evaluator` or `world`.

    A task is at fault where OSWorld reads its file, or performs its set-up, and an evaluator where it runs. All else is
    a fault of the machine or its provider. So is an `OSError` under any of it, among them those of `requests`: nobody
    was reached.
    """
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    if any(isinstance(one, OSError) for one in chain):
        return "world"
    called = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    if do == "reset":
        return "task" if called & OF_TASK else "world"
    return "evaluator" if do == "evaluate" else "world"


def plain(action: Any) -> list[Any]:
    """The actions of OSWorld that do what one action of the protocol does.

    Endings and waiting are texts there: `evaluate` compares the last action with the text FAIL. pyautogui types `>`
    where it is asked to type `<`, so that sign is pressed as shift and comma.
    """
    if not isinstance(action, dict) or not isinstance(action.get("action_type"), str):
        raise Refused("an action is an object with action_type")
    kind = action["action_type"]
    if kind in ENDINGS:
        return [kind]
    if kind == "WAIT":
        seconds = action.get("seconds", 1)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= 60:
            raise Refused("seconds must be a number from 0 to 60")
        time.sleep(seconds)
        return ["WAIT"]
    given = {name: checked(name, value) for name, value in action.items() if name != "action_type"}
    if kind == "TYPING":
        return _typing(given.get("text", ""))
    if kind == "PRESS" and (_typed(given.get("key", "")) or given.get("key") == "<"):
        return _typing(given["key"])
    keys = given.get("keys", [given.get("key", "")])
    if kind in ("KEY_DOWN", "KEY_UP", "HOTKEY") and any(map(_typed, keys)):
        # An error would cost the machine and take the episode out of the statistics, for an ordinary reply.
        return _typing(given["key"]) if kind == "KEY_DOWN" else ["WAIT"]
    return [{"action_type": kind, "parameters": {name: _key(value) for name, value in given.items()}}]


def checked(name: str, value: Any) -> Any:
    """A parameter of an action, of a type that OSWorld can put into its commands."""
    if name in ("x", "y", "dx", "dy", "num_clicks") and type(value) is int and abs(value) <= 100000:
        return value
    if name == "button" and value in ("left", "middle", "right"):
        return value
    if name == "text" and isinstance(value, str):
        return value
    if name == "key" and isinstance(value, str):
        return value
    if name == "keys" and isinstance(value, list) and value and all(isinstance(key, str) for key in value):
        return value
    raise Refused(f"parameter {str(name)[:40]} is unknown or has a wrong value")


def _typed(key: str) -> bool:
    """Whether OSWorld can type a letter, and not press it."""
    return key in QUOTES or not key.isascii()


def _key(value: Any) -> Any:
    """Names of keys as OSWorld writes them. It refuses all names that it does not have."""
    if isinstance(value, list):
        return [_key(key) for key in value]
    return NAMES.get(value, value)


def _typing(text: str) -> list[Any]:
    parts = text.split("<")
    moves: list[Any] = []
    for place, part in enumerate(parts):
        if place:
            moves.append({"action_type": "HOTKEY", "parameters": {"keys": ["shift", ","]}})
        if part:
            moves.append({"action_type": "TYPING", "parameters": {"text": part}})
    return moves or [{"action_type": "TYPING", "parameters": {"text": ""}}]


def _error(number: Any, kind: str, message: str) -> dict[str, Any]:
    return {"id": number, "error": {"kind": kind, "message": message[:LONGEST_MESSAGE]}}


def describe() -> dict[str, str]:
    """What decides about success: the digest of OSWorld's evaluators, and the commit of its checkout if it has one."""
    import desktop_env

    root = Path(desktop_env.__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted((root / "evaluators").rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    commit = _commit(Path(desktop_env.__file__).resolve())
    return {"evaluators": digest.hexdigest(), **({"commit": commit} if commit else {})}


def _commit(module: Path) -> str:
    """The commit of the repository that has this file, or ''. A repository around an installed package has not."""
    asked = ["git", "-C", str(module.parent)]
    try:
        for words in (["ls-files", "--error-unmatch", module.name], ["rev-parse", "HEAD"]):
            said = subprocess.run([*asked, *words], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def options(arguments: list[str] | None) -> dict[str, Any]:
    """The options of the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--provider_name", default="vmware", help="vmware, virtualbox, docker, aws, azure, ...")
    made.add_argument("--region", default=None, help="of a cloud's machines")
    made.add_argument("--path_to_vm", default=None)
    made.add_argument("--snapshot_name", default=None)
    made.add_argument("--os_type", default="Ubuntu")
    made.add_argument("--client_password", default="")
    made.add_argument("--cache_dir", default="cache", help="folder for a folder of this program alone")
    made.add_argument("--screen_width", type=int, default=1920)
    made.add_argument("--screen_height", type=int, default=1080)
    made.add_argument("--headless", action="store_true")
    made.add_argument("--enable_proxy", action="store_true")
    own = made.add_argument_group("own")
    own.add_argument("--pause", type=float, default=2.0, help="seconds between an action and the screenshot")
    own.add_argument(
        "--settle", type=float, default=60.0, help="seconds between the set-up and the first screenshot"
    )
    own.add_argument(
        "--before_evaluation", type=float, default=20.0, help="seconds before the evaluator runs"
    )
    own.add_argument("--describe", action="store_true", help="print the digest of the evaluators, and end")
    own.add_argument("--fetch", action="store_true", help="fetch the image of docker's machine, and end")
    chosen = vars(made.parse_args(arguments))
    if chosen["fetch"] and chosen["provider_name"] != "docker":
        made.error("--fetch needs --provider_name docker")
    return chosen


def maker(chosen: dict[str, Any]) -> Callable[[bool], Any]:
    """A function that makes a `DesktopEnv` from the options that its version knows. Many may do so at the same time."""
    from desktop_env.desktop_env import DesktopEnv

    known = inspect.signature(DesktopEnv.__init__).parameters
    given = {name: value for name, value in chosen.items() if name in known and value is not None}
    given["screen_size"] = (chosen["screen_width"], chosen["screen_height"])

    def make(tree: bool) -> Any:
        if chosen["provider_name"] == "docker":
            with contextlib.suppress(ImportError):  # a version without the module, which may not need it
                wait_longer()
            with contextlib.suppress(ImportError):
                fetch(chosen)
        return DesktopEnv(action_space="computer_13", require_a11y_tree=tree, **given)

    return make


def wait_longer() -> None:
    """Let a machine of docker wait for its turn, where this version of OSWorld has turns. Raises `ImportError`."""
    import desktop_env.providers.docker.provider as provider

    if hasattr(provider, "LOCK_TIMEOUT"):
        provider.LOCK_TIMEOUT = max(provider.LOCK_TIMEOUT, TURN)


def fetch(chosen: dict[str, Any]) -> None:
    """Have the image of docker's machine in the folder that OSWorld keeps it in. Raises `ImportError`.

    One program fetches and the others wait: all would add to the same file, and OSWorld takes an image that another
    program is still unpacking for a whole one.
    """
    if chosen["path_to_vm"]:
        return
    import desktop_env.providers.docker.manager as manager
    from filelock import FileLock  # which docker's provider needs too

    folder = Path(getattr(manager, "VMS_DIR", "docker_vm_data"))
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "fetch.lock"):
        manager.DockerVMManager().get_vm_path(os_type=chosen["os_type"], region=chosen["region"])


def main(arguments: list[str] | None = None) -> None:
    """Answer requests until the input ends."""
    chosen = options(arguments)
    # OSWorld and what it imports print to standard output, also when they are imported. It belongs to the protocol.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if chosen["fetch"]:
        fetch(chosen)
        return
    facts = {**describe(), "provider": chosen["provider_name"]}
    if chosen["describe"]:
        print(json.dumps(facts, indent=1), file=out, flush=True)
        return
    # OSWorld writes the results of a task into a folder with the task's name, and its evaluators read them there. Other
    # programs have rollouts of the same task.
    os.makedirs(chosen["cache_dir"], exist_ok=True)
    chosen["cache_dir"] = tempfile.mkdtemp(prefix="world-", dir=chosen["cache_dir"])
    server = Server(maker(chosen), facts, chosen)
    try:
        for line in sys.stdin.buffer:
            try:
                request = json.loads(line)
            except ValueError:
                request = None
            out.write(json.dumps(server.answer(request)) + "\n")
            out.flush()
    finally:
        shutil.rmtree(chosen["cache_dir"], ignore_errors=True)  # first: a machine may take too long to stop
        server.close()


if __name__ == "__main__":
    main()
