"""Worlds for tests: the bridge over a stand-in for OSWorld's package, and programs that say what they must not."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from envs.desktop.bridge import osworld_bridge
from envs.desktop.bridge.world import Settings
from envs.desktop.osworld.family import OSWorldFamily
from envs.desktop.small.expert import play
from envs.desktop.small.family import DesktopFamily
from envs.desktop.small.templates import templates
from rlanything.core.types import Task

STUB = Path(__file__).parent / "stub"
SCREEN = (96, 64)
RUN = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[2:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
BRIDGE = (
    sys.executable, "-c", RUN, str(STUB), str(osworld_bridge.__file__), "--provider_name", "docker", "--pause", "0",
    "--settle", "0", "--before_evaluation", "0", "--screen_width", str(SCREEN[0]), "--screen_height", str(SCREEN[1]),
    "--cache_dir", tempfile.gettempdir(),
)  # fmt: skip
TYPED = {"func": "typed", "expected": "a<b"}
"""An evaluator of the stand-in: whether this was typed."""
SHELL = {"launch": ["lxterminal", "--command=/bin/sh"], "files": {}, "checks": []}
"""A terminal on the small desktop."""
LIAR = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "hello":
        ok = {"version": 1, "world": "liar", "screen": [96, 64], "facts": {}}
        print(json.dumps({"id": asked["id"], "ok": ok}), flush=True)
    else:
        ID = asked["id"]
        {body}
"""


def settings(command=BRIDGE, **more) -> Settings:
    return Settings(tuple(command), **{"start": 30.0, "timeout": 30.0, "trees": True, **more})


def liar(body: str) -> tuple[str, ...]:
    """A world that says hello, and then runs `body` for every request."""
    return (sys.executable, "-c", LIAR.replace("{body}", body))


def content(name: str, evaluator: dict, **more) -> dict:
    return {
        "id": name,
        "instruction": f"Type what {name} wants.",
        "config": [],
        "evaluator": evaluator,
        **more,
    }


def write(folder: Path, apps: dict[str, list[dict]]) -> Path:
    """A folder like `evaluation_examples` with these tasks, the same in both folders."""
    for kind in ("examples", "new_examples"):
        for app, tasks in apps.items():
            (folder / kind / app).mkdir(parents=True)
            for task in tasks:
                (folder / kind / app / f"{task['id']}.json").write_text(json.dumps(task))
    index = {app: [task["id"] for task in tasks] for app, tasks in apps.items()}
    (folder / "test_nogdrive.json").write_text(json.dumps(index))
    return folder


def extended(name: str) -> dict:
    """A task with the paper's extension."""
    templates = {"evaluator1": 'Type "one" into note1.txt.', "evaluator2": 'Type "two" into note1.txt.'}
    evaluators = {
        key: {"func": "typed", "expected": word} for key, word in zip(templates, ("one", "two"), strict=True)
    }
    extra = {
        "task_template": templates,
        "evaluator_list": evaluators,
        "current_task": dict([*templates.items()][:1]),
    }
    return content(name, evaluators["evaluator1"], **extra)


def data(folder: Path) -> Path:
    return write(
        folder,
        {
            "os": [extended("e1"), extended("e2"), content("p1", TYPED)],
            "chrome": [content("c1", TYPED)],
            "multi_apps": [content("m1", TYPED), content("m2", {"func": "infeasible"})],
        },
    )


def family(folder: Path, command=BRIDGE, **more) -> OSWorldFamily:
    given = {"observe": "tree", "screen": SCREEN, "worlds": 4, "timeout": 30.0, **more}
    return OSWorldFamily(str(folder), command, **given)


def task(evaluator: dict, **more) -> Task:
    payload = {
        "app": "os",
        "file": "",
        "evaluators": "",
        "key": "",
        "content": content("t", evaluator, **more),
    }
    return Task("osworld", "Type it.", payload)


def small_task(name: str, key: str, row: int = 0) -> Task:
    """A task of the small desktop: its template, the evaluator, and the row of the template."""
    said = templates()[name].instructions(row)[key]
    return Task("desktop", said, {"template": name, "row": row, "key": key})


def solved(family: DesktopFamily, made: Task) -> bool:
    """Whether the expert succeeds."""
    environment = family.environment()
    try:
        return list(play(environment, environment.reset(made, 0), family.expert(made)))[-1][1].success
    finally:
        environment.close()


def typed(world, text: str):
    """What the world shows after a text was typed."""
    return world.step([{"action_type": "TYPING", "text": text}, {"action_type": "WAIT", "seconds": 1}])
