"""The child process of the real engine: one JSON request a line on stdin, one JSON answer a line on stdout.

    {"problem": PDDL}   -> {"text": .., "actions": [..], "done": false}     starts an episode
    {"action": command} -> {"text": .., "actions": [..], "done": ..}
    anything failing    -> {"error": what happened}

The task sentence never comes here: the grammar's text is evaluated as Python, so the sentence is data that the
parent puts in place of `UNKNOWN GOAL` afterwards. Start it with --plain to play without the caches of
`textworld_speed`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

from envs.alfworld.facts import domain_text, grammar_text


class RealEngine:
    """ALFWorld's own stack: TextWorld's PddlEnv under ALFWorld's demangler of names."""

    def __init__(self, plain: bool) -> None:
        # alfworld makes its data folder when it is imported; nothing in it is needed, so it is one that exists.
        os.environ["ALFWORLD_DATA"] = tempfile.gettempdir()
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        kind = PddlEnv
        if not plain:
            from envs.alfworld.textworld_speed import CachedPddlEnv, install

            install()
            kind = CachedPddlEnv
        self._env = AlfredDemangler(kind(EnvInfos(won=True, admissible_commands=True)))

    def answer(self, request: dict[str, str]) -> dict[str, Any]:
        """The answer to one request."""
        if "problem" in request:
            game = {
                "pddl_domain": domain_text(),
                "grammar": grammar_text(),
                "pddl_problem": request["problem"],
            }
            self._env.load(game)
            state, done = self._env.reset(), False
        else:
            state, _, done = self._env.step(request["action"])
        return {"text": state.feedback, "actions": state["admissible_commands"], "done": bool(done)}


def main() -> None:
    """Serves requests until stdin ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # the planner prints; that must not get between the answers
        engine = RealEngine(plain="--plain" in sys.argv)
        for line in sys.stdin:
            try:
                answer = engine.answer(json.loads(line))
            except (
                Exception,
                SystemExit,
            ) as error:  # the planner exits on bad input; the parent decides what to do
                answer = {"error": f"{type(error).__name__}: {error}"}
            replies.write(json.dumps(answer) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
