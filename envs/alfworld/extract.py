"""Extracts the facts of ALFWorld that this family is built from, once, out of the MIT-licensed package `alfworld`.

    python -m venv scratch && scratch/bin/pip install --no-deps alfworld==0.4.2
    scratch/bin/python envs/alfworld/extract.py envs/alfworld/facts

Writes rooms.json (floor plans, affordances, goals), alfred.pddl, alfred.twl2 and NOTICE. Nothing else here imports
`alfworld`, so a base install needs neither that package nor a compiler.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

VERSION = "0.4.2"

NOTICE = f"""The files in this folder are data of the Python package alfworld {VERSION} (https://github.com/alfworld/alfworld),
extracted by envs/alfworld/extract.py:

alfred.pddl, alfred.twl2  unchanged copies of the planning domain and of the text grammar.
rooms.json                the layouts of 120 AI2-THOR floor plans, the affordance tables, the split of the floor plans
                          into train and test, and the goal templates, in one file. Changed: receptacles that shared a
                          location were moved apart, and receptacles whose place the package does not list (stove
                          burners, toilets, ..) were given invented coordinates.

They are used under the package's licence:
"""

UNLISTED = {
    "StoveBurner": 4,
    "HandTowelHolder": 2,
    "CoffeeMachine": 1,
    "Toaster": 1,
    "GarbageCan": 1,
    "Toilet": 1,
    "ToiletPaperHanger": 1,
    "TowelHolder": 1,
    "LaundryHamper": 1,
    "Bed": 1,
    "Sofa": 1,
    "Desk": 1,
    "Dresser": 1,
    "SideTable": 1,
    "CoffeeTable": 1,
    "CounterTop": 1,
    "DiningTable": 1,
    "Shelf": 1,
    "Drawer": 2,
    "Cabinet": 2,
    "Ottoman": 1,
    "ArmChair": 1,
    "TVStand": 1,
    "Cart": 1,
    "Safe": 1,
}
"""Furniture that a floor plan has but whose place the package does not list: class -> how many we put there."""


def class_of(object_id: str) -> str:
    """`Sink|..|SinkBasin` -> `SinkBasin`, `Apple|..` -> `Apple`."""
    return object_id.split("|")[-1] if object_id.endswith("Basin") else object_id.split("|")[0]


def _listed(points: dict[str, list[float]], fixed: set[str]) -> dict[str, str]:
    """Receptacles with a known viewpoint: id -> `loc|x|z|rotation|horizon` (quarter metres, quarter turns, degrees)."""
    found: dict[str, str] = {}
    for object_id, (x, z, rotation, horizon) in points.items():
        name, *rest = object_id.split("|")
        # one bath is called a sink basin in the package: its name and its class would disagree
        full = "|".join([name, *rest[:3], f"{name}Basin"]) if name in ("Sink", "Bathtub") else object_id
        if class_of(full) in fixed:
            found[full] = f"loc|{round(x * 4)}|{round(z * 4)}|{round(rotation / 90) % 4}|{int(horizon)}"
    return found


def _unlisted(classes: set[str], listed: dict[str, str], rng: random.Random) -> dict[str, str]:
    """Receptacles of classes without a viewpoint, at invented coordinates."""
    known = {class_of(r) for r in listed}
    found: dict[str, str] = {}
    for name, count in UNLISTED.items():
        for _ in range(count if name in classes and name not in known else 0):
            x, y, z = rng.uniform(-3, 3), rng.uniform(0, 1.2), rng.uniform(-3, 3)
            place = f"loc|{round(x * 4)}|{round(z * 4)}|{rng.randrange(4)}|45"
            found[f"{name}|{x:+06.2f}|{y:+06.2f}|{z:+06.2f}"] = place
    return found


def _distinct(receptacles: dict[str, str]) -> dict[str, str]:
    """The same receptacles, moved along x until no two share a location and none is at the agent's start."""
    used = {"loc|0|0|0|0"}
    moved: dict[str, str] = {}
    for name in sorted(receptacles):
        _, x, z, rotation, horizon = receptacles[name].split("|")
        column = int(x)
        while f"loc|{column}|{z}|{rotation}|{horizon}" in used:
            column += 1
        moved[name] = f"loc|{column}|{z}|{rotation}|{horizon}"
        used.add(moved[name])
    return moved


def _room(layouts: Path, number: int, kind: str, split: str, fixed: set[str]) -> dict[str, Any]:
    points = json.loads((layouts / f"FloorPlan{number}-openable.json").read_text())
    classes = set(json.loads((layouts / f"FloorPlan{number}-objects.json").read_text()))
    listed = _listed(points, fixed)
    everything = {**listed, **_unlisted(classes, listed, random.Random(f"floor plan {number}"))}
    return {
        "kind": kind,
        "split": split,
        "receptacles": _distinct(everything),
        "objects": sorted(classes - fixed),
    }


def extract(source: Path) -> dict[str, Any]:
    """Everything of rooms.json, read from an installed `alfworld` package at `source`."""
    import alfworld.gen.constants as constants  # only here: the family itself never imports the package
    import alfworld.gen.goal_library as goals

    fixed = set(constants.RECEPTACLES) - set(constants.MOVABLE_RECEPTACLES)
    kinds = {n: kind for kind, numbers in constants.SCENE_TYPE.items() for n in numbers}
    splits = dict.fromkeys(constants.TRAIN_SCENE_NUMBERS, "train") | dict.fromkeys(
        constants.TEST_SCENE_NUMBERS, "test"
    )
    types = [t for t in constants.GOALS if "movable" not in t]
    layouts = source / "gen" / "layouts"
    return {
        "source": f"alfworld {VERSION} (MIT)",
        "rooms": {str(n): _room(layouts, n, kinds[n], splits[n], fixed) for n in sorted(splits)},
        "holds": {r: sorted(o) for r, o in sorted(constants.VAL_RECEPTACLE_OBJECTS.items()) if r in fixed},
        "affords": {action: sorted(objects) for action, objects in constants.VAL_ACTION_OBJECTS.items()},
        "openable": sorted(constants.OPENABLE_CLASS_SET & fixed),
        "movable": sorted(constants.MOVABLE_RECEPTACLES),
        "receptacle_classes": sorted(fixed),
        "object_classes": sorted(set(constants.OBJECTS_SET) - fixed),
        "goals": {
            t: {
                "rooms": sorted(constants.GOALS_VALID[t]),
                "templates": goals.gdict[t]["templates"],
                "pddl": goals.gdict[t]["pddl"],
            }
            for t in types
        },
    }


def main() -> None:
    """Command line: the folder to write to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out: Path = parser.parse_args().out
    package = distribution("alfworld")
    if package.version != VERSION:
        raise SystemExit(f"alfworld {VERSION} is needed, found {package.version}")
    source = Path(str(package.locate_file("alfworld")))
    out.mkdir(parents=True, exist_ok=True)
    (out / "rooms.json").write_text(json.dumps(extract(source), sort_keys=True, indent=1) + "\n")
    for name in ("alfred.pddl", "alfred.twl2"):
        shutil.copyfile(source / "data" / name, out / name)
    licence = next(f for f in package.files or () if f.name == "LICENSE")
    terms = Path(str(package.locate_file(licence))).read_text(encoding="utf-8")
    (out / "NOTICE").write_text(f"{NOTICE}\n{terms}", encoding="utf-8")


if __name__ == "__main__":
    main()
