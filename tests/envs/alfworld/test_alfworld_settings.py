"""Constructor arguments: what is wrong is named, with what is allowed and the nearest name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from envs.alfworld.family import AlfworldFamily


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"engine": "fst"}, "engine: 'fst' is not one of fast, textworld (did you mean fast?)"),
        ({"task_types": ["heet"]}, "did you mean heat?"),
        ({"task_types": "heat"}, "neither a list of names nor a mapping"),
        ({"task_types": {"heat": -1}}, "the share of heat must be a number >= 0"),
        ({"task_types": {"heat": 0}}, "at least one of"),
        ({"levels": {"eazy": 1}}, "did you mean easy?"),
        ({"receptacles": [10, 6]}, "receptacles: [10, 6] is not [least, most] with 4 <= least <= most <= 50"),
        ({"receptacles": 8}, "receptacles: 8 is not [least, most]"),
        ({"distractors": [1.5, 3]}, "distractors"),
        ({"ood_receptacles": [1, 2]}, "ood_receptacles"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds above 0"),
        ({"timeout": True}, "timeout: True"),
        ({"data": ["games"]}, "data: ['games'] is not a text"),
        ({"habits": {"lok": 0.5}}, "habits: 'lok' is not one of look, inventory (did you mean look?)"),
        ({"habits": {"look": 1.5}}, "habits.look: 1.5 is not a probability from 0 to 1"),
        ({"habits": ["look"]}, "is not a mapping from names (look, inventory) to probabilities"),
        ({"held_out": ["heet"]}, "did you mean heat?"),
        ({"held_out": "heat"}, "held_out: 'heat' is not a list of names"),
        ({"held_out": ["heat", "heat"]}, "names one twice"),
        ({"held_out": ["heat"], "task_types": ["pick", "look"]}, "held_out: 'heat' is not one of pick, look"),
        ({"held_out": ["look", "pick"], "task_types": ["pick", "look"]}, "leaves none of pick, look"),
        ({"on_bad_file": "ignore", "data": None}, "on_bad_file"),
        ({"data": "/nowhere/at/all"}, "has none of the folders"),
        ({"data": "$ALFWORLD_DATA_THAT_IS_NOT_SET"}, "names an environment variable that is not set"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        AlfworldFamily(**arguments)
    assert says in str(caught.value)


def test_unknown_split() -> None:
    with pytest.raises(ValueError, match="did you mean in_domain"):
        AlfworldFamily().make("indomain", 1, 0)


def test_impossible_settings_are_said_not_looped() -> None:
    family = AlfworldFamily(receptacles=[50, 50], task_types=["look"])
    with pytest.raises(ValueError, match="no train room gives a"):
        family.make("train", 1, 0)


def test_importing_the_family_needs_nothing_heavy() -> None:
    code = (
        "import sys, envs.alfworld.family as f; f.AlfworldFamily().make('train', 1, 0);"
        "print([m for m in ('torch', 'numpy', 'alfworld', 'textworld', 'fast_downward') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
