"""The child process of the real engine: JSON requests on stdin, JSON answers on stdout, one a line.

    {"problem": PDDL}   -> {"text": .., "actions": [..], "done": false}     starts an episode
    {"action": command} -> {"text": .., "actions": [..], "done": ..}
    a failure           -> {"error": message}

The engine evaluates the grammar's text as Python, so instructions never come here: the parent puts them in the place of
`UNKNOWN GOAL`. With the option --plain it plays without the caches of `textworld_cache`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

from envs.alfworld.games.alfred import domain_text, grammar_text


class RealEngine:
    """ALFWorld's own stack: TextWorld's PddlEnv under ALFWorld's demangler of names."""

    def __init__(self, plain: bool) -> None:
        # alfworld makes this folder when it is imported and needs nothing in it.
        os.environ["ALFWORLD_DATA"] = tempfile.gettempdir()
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        kind = PddlEnv
        if not plain:
            from envs.alfworld.engines.textworld_cache import CachedPddlEnv, install

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
    """Serve requests until stdin ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # the planner prints, and must not print among the answers
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
