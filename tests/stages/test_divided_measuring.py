"""Measurements that two processes of torchrun divide: the results of one process.

Log-probs of the panel's trajectories agree to rounding, because batches differ. All else is the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import golden_cases as golden
import pytest
from golden_processes import with_params
from rank_cases import two_ranks
from stage_cases import contents
from torch.multiprocessing import ProcessRaisedException

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.engines.native import NativeEngine
from rlanything.files.reader import read_objects
from rlanything.stages import evaluate
from rlanything.stages.bootstrap import stage

pytestmark = pytest.mark.integration

BASES = {role: {"path": f"checkpoints/{role}"} for role in ("policy", "reward", "adapter")}
JUDGES = {
    "one": {"path": "checkpoints/reward", "votes": 2},
    "two": {"path": "checkpoints/policy", "votes": 1},
}
CHANGES = {
    "model__embedded": None,
    **{f"model__{role}": source for role, source in BASES.items()},
    "train__iterations": 1,
    "train__workers": 1,  # so that every sample of the measurement alone is drawn in its process
    "evaluate__labels": "judge",
    "evaluate__judges": JUDGES,
    "evaluate__reward_policy": {"path": "checkpoints/policy", "temperature": 0.7},
    "evaluate__cooling": {"temperatures": [0.3, 1.0], "tasks": 3, "repeats": 1},
}
MEASURED = ("models", "labels", "evaluation")
"""The folders that the commands write."""


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    """A project with tasks, and with checkpoints that are not embedded."""
    root = with_params(golden.project(tmp_path_factory.mktemp("divided") / "project"), **CHANGES)
    (root / "models").rename(root / "checkpoints")
    return root


def copied(root: Path, place: Path) -> Path:
    shutil.copytree(root, place, symlinks=True)
    return place


def measure() -> None:
    """All that is measured of the base models, in the folder of the project."""
    for words in ("bootstrap", "label", "evaluate --arm base", "evaluate --arm base_cooled"):
        assert main(words.split()) == 0


def counted(do: Callable[[], None]) -> None:
    """Call `do`, then write how many samples this process has drawn."""
    drawn, generate = [], NativeEngine.generate

    def remembered(engine, requests):
        drawn.extend(requests)
        return generate(engine, requests)

    with mock.patch.object(NativeEngine, "generate", remembered):
        do()
    Path(f"drawn-{os.environ.get('RANK', 'alone')}").write_text(str(len(drawn)))


def measured(root: Path) -> dict[str, Any]:
    """What the commands wrote: the lines of panels, and the bytes of everything else."""
    found = {
        f"{folder}/{name}": data for folder in MEASURED for name, data in contents(root / folder).items()
    }
    return found | {name: list(read_objects(root / name)) for name in found if name.endswith(".jsonl.gz")}


def without_logprobs(found: dict[str, Any]) -> tuple[dict[str, Any], list[float]]:
    """The same with those of the panels taken out, and these."""
    kept: list[float] = []
    for lines in found.values():
        for line in lines if isinstance(lines, list) else ():
            for step in line["trajectory"]["steps"]:
                kept += step.pop("logprobs")
    return found, kept


def drawn(root: Path, rank: str) -> int:
    return int((root / f"drawn-{rank}").read_text())


@pytest.fixture(scope="module")
def alone(start, tmp_path_factory) -> Path:
    """The project as one process measures it."""
    root = copied(start, tmp_path_factory.mktemp("alone") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        counted(measure)
    return root


def test_two_processes_share_the_work_and_write_what_one_writes(start, alone, tmp_path):
    root = copied(start, tmp_path / "project")
    two_ranks(root, counted, measure)
    (found, logprobs), (expected, theirs) = (without_logprobs(measured(place)) for place in (root, alone))
    assert {Path(name).parts[0] for name in found} == set(MEASURED)
    assert found == expected
    assert logprobs == pytest.approx(theirs, abs=1e-5)
    shares = [drawn(root, rank) for rank in "01"]
    assert sum(shares) == drawn(alone, "alone")
    assert min(shares) > sum(shares) / 4


def test_two_processes_measure_an_arm_with_the_tasks_that_it_accepted(start, tmp_path, monkeypatch):
    """They share the seeds of the arm too: the second one is measured after the first."""
    root = with_params(
        copied(start, tmp_path / "project"), **CHANGES | {"train__seeds": 2, "train__iterations": 3}
    )
    monkeypatch.chdir(root)
    for words in ("bootstrap", "label", "train --arm full"):
        assert main(words.split()) == 0
    place = root / "evaluation" / "full.json"
    arm = partial(main, ["evaluate", "--arm", "full"])
    assert arm() == 0
    before = place.read_bytes()
    place.unlink()
    two_ranks(root, arm)
    assert place.read_bytes() == before
    seeds = json.loads(before)["seeds"]
    assert len(seeds) == 2
    assert any(seed.get("solvable") for seed in seeds.values()), "no task was accepted"


def leave() -> None:
    """Rank 1 ends when it is asked for a sample."""
    if os.environ["RANK"] == "1":
        with mock.patch.object(NativeEngine, "generate", side_effect=lambda *_: os._exit(0)):
            main(["evaluate", "--arm", "base"])
    with redirect_stderr(StringIO()) as said:
        code = main(["evaluate", "--arm", "base"])
    Path("said").write_text(f"{code} {said.getvalue()}")


def test_a_process_that_ends_ends_the_measurement_of_the_other_one(alone, tmp_path):
    root = copied(alone, tmp_path / "project")
    (root / "evaluation" / "base.json").write_text("before")
    two_ranks(root, leave)
    assert re.match("2 .*another process of this run has ended", (root / "said").read_text(), re.DOTALL)
    assert (root / "evaluation" / "base.json").read_text() == "before"


def refused() -> None:
    stage.make_models(golden.configuration(), Path())


def test_embedded_models_are_trained_by_one_process_alone(start, tmp_path):
    with pytest.raises(
        ProcessRaisedException, match=r"torchrun started 2 processes.*start it without torchrun"
    ):
        two_ranks(tmp_path, refused)


def changing() -> None:
    """Rank 0 finds that a checkpoint was changed meanwhile."""
    found = evaluate._measure

    def changed(*given):
        results = found(*given)
        if os.environ["RANK"] == "0":
            (Path("checkpoints/policy") / "more.txt").write_text("more")
        return results

    with mock.patch.object(evaluate, "_measure", changed):
        evaluate.evaluate_arm(golden.configuration(**CHANGES), Path(), "base")


def test_a_checkpoint_that_changes_meanwhile_leaves_the_file_as_it_was(alone, tmp_path):
    root = copied(alone, tmp_path / "project")
    (root / "evaluation" / "base.json").write_text("before")
    with pytest.raises(ProcessRaisedException, match=ConfigError.__name__):
        two_ranks(root, changing)
    assert (root / "evaluation" / "base.json").read_text() == "before"
