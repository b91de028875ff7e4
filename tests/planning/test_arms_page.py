"""docs/arms.md has every arm of experiments/arm/ with its switches, and says which are composed by default."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from rlanything.config import CONTROLS, ArmConfig, parse
from rlanything.planning import compose
from rlanything.report.results.arms import ARMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "arms.md").read_text()


def rows(first: str) -> list[list[str]]:
    """The cells of the page's table whose first column is `first`, the header included."""
    lines = PAGE[PAGE.index(f"| {first} |") :].splitlines()
    table = lines[: next(k for k, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table if "---" not in line]


def test_the_table_is_what_the_files_say():
    header, *found = rows("arm")
    assert header[1:-1] == list(ArmConfig.model_fields)
    default = compose.compose((), ROOT)["arms"]
    for name, *switches, composed in found:
        declared = yaml.safe_load((ROOT / "experiments" / "arm" / f"{name}.yaml").read_text())
        assert [yaml.safe_load(value) for value in switches] == [declared[key] for key in header[1:-1]]
        assert composed == ("yes" if name in default else "no")
    assert {name for name, *_ in found} == {
        path.stem for path in (ROOT / "experiments" / "arm").glob("*.yaml")
    }


def test_the_command_for_an_arm_named_frozen_makes_the_arm_policy():
    (override,) = re.findall(r"`rlanything config write (\S+arms\.frozen=\S+)`", PAGE)
    arms = parse(compose.compose([override], ROOT)).arms
    assert arms["frozen"] == arms["policy"]
    assert not arms["frozen"].train_reward


def test_every_arm_has_its_place_in_the_report_and_every_key_its_explanation():
    assert {path.stem for path in (ROOT / "experiments" / "arm").glob("*.yaml")} < set(ARMS)
    assert [row[0] for row in rows("key")[1:]] == list(ArmConfig.model_fields)
    assert set(re.findall(r"^- \*\*`(\w+)`\*\*", PAGE, re.M)) | {"full"} == set(ARMS) - set(CONTROLS)
