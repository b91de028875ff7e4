"""Declared studies: the project's own, and changes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.study.registration import register, registered
from rlanything.checks.workspace import Workspace

ROOT = Path(__file__).parents[3]
OWN = ROOT / "experiments" / "check" / "study.yaml"
STUDIES = sorted(f"{path.parent.name}.yaml" for path in (ROOT / "checks").glob("*/registration.json"))
HYPOTHESIS = {"claim": "It is.", "arm": "policy", "over": "outcome", "metric": "in_domain"}


def space_of(study: Study, pins: Sequence[str] = ()) -> Workspace:
    return Workspace.of("case", study, ROOT, ROOT / "params.yaml", 1, pins)


def declared(tmp_path: Path, **changes: object) -> Study:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(OWN.read_text()), **changes}))
    return load_study(file)


def begun(space) -> tuple[Study, Workspace, Path]:
    """The study, registered and begun."""
    study, where, place = space
    register(study, where, place)
    registered(study, where, place, "now")
    return space


def as_published(space) -> tuple[Study, Workspace, Path]:
    """The study with results that lie there, and a workspace that other code has given another name."""
    study, where, place = space
    register(study, where, place)
    (place / "study.json").write_text(json.dumps({"declared": study.model_dump(mode="json")}))
    return space
