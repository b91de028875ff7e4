"""A program: the golden models on the CPU and on the second device. Prints JSON: where they lay, what they sampled."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import accelerator
import golden_cases as golden
import torch

from rlanything.buffer import TaskBuffer
from rlanything.config import Config
from rlanything.engines import placement
from rlanything.learn.packing import policy_rows
from rlanything.learn.trainer import make_trainer
from rlanything.loop.batch import LoopState
from rlanything.runs import build
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.parts import RunId, make_parts
from rlanything.stages import evaluate
from rlanything.stages.bootstrap import stage

GENERATE = {"_target_": "rlanything.engines.transformers.TransformersEngine", "max_batch": 16}
SMALL = {"rollout__tasks": 2, "rollout__rollouts": 2, "rollout__max_steps": 3, "evaluate__max_steps": 3}


def main() -> None:
    """Everything once on each device."""
    kept = accelerator.install()
    found = {place: measured(place) for place in ("cpu", accelerator.NAME)}
    json.dump(found, sys.stdout)
    assert kept


def measured(place: str) -> dict[str, Any]:
    """Bootstrap's measurements, an evaluation and an iteration with the models on one device."""
    device = torch.device(place, 0) if place != "cpu" else torch.device(place)
    placement.device = lambda train: device
    loaded, load = [], build.load

    def watched(*args: Any) -> Any:
        loaded.append(load(*args))
        return loaded[-1]

    build.load = watched
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = golden.project(Path(folder))
            config = golden.configuration(engine=GENERATE, learn__kl_reference="base", **SMALL)
            result = {
                "bootstrap": bootstrap(config, root),
                "evaluate": evaluate.evaluate_seed(config.model_dump(by_alias=True), root, "base", 0),
                "train": collected(config, root, device),
            }
    finally:
        build.load = load
    return {**result, "places": [places(model) for model, _ in loaded]}


def bootstrap(config: Config, root: Path) -> dict[str, Any]:
    """What the stage finds out about real checkpoints, with a floor that no reward model reaches."""
    model = config.model.model_copy(update={"embedded": None})
    floor = config.bootstrap.model_copy(update={"min_mu": 2.5})
    stage.make_models(config.model_copy(update={"model": model, "bootstrap": floor}), root)
    return dict(json.loads(Layout(root).bootstrap.read_text()))


def collected(config: Config, root: Path, device: torch.device) -> dict[str, Any]:
    """The tokens of an iteration of the arm that uses every model, and the reference's log-probs of them."""
    start = TaskBuffer.start(read_tasks(Layout(root).tasks("train")))
    with ExitStack() as engines:
        parts = make_parts(config, RunId(root, "full", 0, root / "live"), engines)
        result = parts.loop.collect(LoopState(0, start))
    rows = [row for lesson in result.policy for row in policy_rows(lesson, "step")]
    parts.module.trainer = make_trainer(config.train, 1)
    parts.module.trainer.strategy._root_device = device  # Lightning knows no accelerator of this name
    parts.module.prepare("policy", rows)
    episodes = [e for g in result.groups for e in g.episodes]
    return {
        "actions": [[list(s.response_ids) for s in e.trajectory.steps] for e in episodes],
        "votes": [[list(v.response_ids) for v in j.votes] for e in episodes for j in e.judgements],
        "events": [event.to_json() for event in result.events],
        "references": [x for row in rows for x in row.reference],
    }


def places(model: torch.nn.Module) -> list[str]:
    """Devices of everything that a model holds."""
    return sorted({t.device.type for t in (*model.parameters(), *model.buffers())})


if __name__ == "__main__":
    main()
