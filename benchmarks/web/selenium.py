"""The selenium environment that comes with MiniWoB++, in a process of its own: `python -m benchmarks.web` starts it.

Selenium's drivers and browsers go on when the process that started them is killed. This one closes them when its input
ends, and that ends with the process that asks, however it ends. For each line with a number of seconds it prints a line
of JSON: steps per second. Its arguments are the kinds of pages.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing

from benchmarks.web.pace import MOST_STEPS, rate


def main(kinds: Sequence[str]) -> int:
    """Answer until the input ends; returns the exit code."""
    with closing(_clicks(kinds)) as steps:
        for line in sys.stdin:
            print(json.dumps({"whole": rate(steps, float(line))}), flush=True)
    return 0


def _clicks(kinds: Sequence[str]) -> Generator[None]:
    """Steps of whole episodes, the kinds in turn, with random clicks on elements; never ends.

    The first step starts a browser for each kind: while others are measured none starts."""
    from miniwob.action import ActionTypes
    from miniwob.environment import MiniWoBEnvironment

    rng, seed, made = random.Random(0), 0, []
    with ExitStack() as opened:
        for kind in kinds:
            made.append(MiniWoBEnvironment(subdomain=kind))
            opened.callback(made[-1].close)
            made[-1].reset(seed=0)
            made[-1].set_record_screenshots(False)
        while True:
            environment, seed = made[seed % len(made)], seed + 1
            seen, _ = environment.reset(seed=seed)
            for _ in range(MOST_STEPS):
                refs = [element["ref"] for element in seen["dom_elements"] if element["ref"] > 0]
                action = environment.unwrapped.create_action(ActionTypes.CLICK_ELEMENT, ref=rng.choice(refs))
                seen, _, done, _, _ = environment.step(action)
                yield
                if done:
                    break


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
