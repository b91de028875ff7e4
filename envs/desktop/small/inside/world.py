#!/usr/bin/python3
"""A small desktop: Xvfb, openbox and real applications, served over the protocol of docs/osworld.md.

A program of its own, which runs in a box (`box`) with the system's Python: it needs the module `gi` with Atspi, and
nothing of this project but the modules beside it. `guard` is around all of it, `desktop` has the servers and the
application, `hands` mouse and keys, `keyboard` letters of other languages, `home` the folder, `tree` and `pictures`
what is shown, `taskfile` what a task is, and `verdicts` the checks.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import guard  # type: ignore[import-not-found, unused-ignore]
import pictures  # type: ignore[import-not-found, unused-ignore]
import taskfile  # type: ignore[import-not-found, unused-ignore]
import tree  # type: ignore[import-not-found, unused-ignore]
import verdicts  # type: ignore[import-not-found, unused-ignore]  # beside this file, in the box
from desktop import Desktop  # type: ignore[import-not-found, unused-ignore]
from faults import BadTask, Refused  # type: ignore[import-not-found, unused-ignore]
from hands import SCREEN  # type: ignore[import-not-found, unused-ignore]
from home import HOME  # type: ignore[import-not-found, unused-ignore]

VERSION = 1
VERIFYING = 3.0
"""Longest wait until what an application writes is there, seconds: a verdict that does not hold by then is final."""


class Server:
    """Answers requests. An error is an answer too."""

    def __init__(self) -> None:
        self._desktop = Desktop()
        self._asked: dict[str, Any] = {}
        self._task: dict[str, Any] = {}
        self._gave_up = False

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer to one request."""
        number, do = (request.get("id"), request.get("do")) if isinstance(request, dict) else (None, None)
        try:
            return {"id": number, "ok": self._do(str(do), request)}
        except Exception as error:
            kind = {BadTask: "task", Refused: "protocol"}.get(type(error), "world")
            message = f"{type(error).__name__}: {error}"[:2000]
            return {"id": number, "error": {"kind": kind, "message": message}}

    def _do(self, do: str, request: Any) -> dict[str, Any]:
        if do == "hello":
            self._asked = {name: request.get(name) for name in ("screenshot", "tree")}
            return {"version": VERSION, "world": "small", "screen": list(SCREEN), "facts": {}}
        if do == "reset":
            taskfile.check(request.get("task"))
            self._task, self._gave_up = request["task"], False
            self._desktop.reset(self._task)
            return self._sight(False)
        if do == "step":
            return self._sight(self._act(request["actions"]))
        if do == "evaluate":
            self._check()
            return {"score": float(self._succeeded())}
        raise Refused("do must be one of hello, reset, step, evaluate")

    def _act(self, actions: list[dict[str, Any]]) -> bool:
        """Perform actions, and wait until the screen is calm. Whether the last one ended the task."""
        said = ""
        for action in actions:
            said = action.get("action_type", "")
            if said not in ("DONE", "FAIL"):
                self._desktop.act(action)
        self._gave_up = said == "FAIL"
        self._desktop.calm()
        return said in ("DONE", "FAIL")

    def _succeeded(self) -> bool:
        """Whether all checks hold, now or soon. No task here is infeasible, so an agent that gave up has failed."""
        if self._gave_up:
            return False
        until = time.monotonic() + VERIFYING
        while not all(verdicts.holds(check, HOME, tree.items) for check in self._task["checks"]):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def _check(self) -> None:
        """Raise where the agent has nothing to act on any more, for which it is not to blame."""
        self._desktop.check_running()
        self._desktop.check_application()

    def _sight(self, done: bool) -> dict[str, Any]:
        self._check()
        picture = (
            base64.b64encode(pictures.png(self._desktop.frame)).decode()
            if self._asked["screenshot"]
            else None
        )
        return {"screenshot": picture, "tree": tree.xml() if self._asked["tree"] else None, "done": done}


def main() -> None:
    """Answer requests until the input ends."""
    requests, answers = guard.begin()
    server = Server()
    for line in requests:
        answers.write(json.dumps(server.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
