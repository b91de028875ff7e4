"""A run whose frozen reward model has eyes and is behind an endpoint, while the policy reads text.

With `train.staleness` 1: what a batch that was sampled ahead has seen must be there after a kill.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import golden_cases as golden
import pytest
from endpoint_server import KEY, Endpoint, serving
from picture_run_cases import JUDGE, in_a_thread, patched
from stage_cases import ROOT, SMALL, contents, small

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.images import Image
from rlanything.files.images import ImageStore, sizes
from rlanything.files.reader import read_objects
from rlanything.planning import compose
from rlanything.repro import replay_report
from rlanything.runs.folder import RunFolder
from rlanything.stages import evaluate, label, tasks, train
from rlanything.stages.bootstrap.stage import make_models

RUN = Path("runs/full/seed-0")
CHANGES = (
    "model.context=history",
    "model.prompts=prompts",
    "model.images.reward=2",
    *("bootstrap.policy.steps=4", "bootstrap.policy.episodes=8"),
    *("bootstrap.reward.steps=2", "bootstrap.reward.episodes=4"),
    *("bootstrap.adapter.steps=2", "bootstrap.adapter.episodes=4"),
    *("rollout.tasks=2", "rollout.rollouts=2", "rollout.max_steps=3", "evaluate.max_steps=2"),
    *("judge.m=2", "judge.max_tokens=8", "judge.max_invalid=0"),
    *("evaluate.reward_rollouts=1", "evaluate.curve_rollouts=1", "evaluate.curve_tasks=1"),
    "tasks.panels.reward_panel.tasks=1",
    "tasks.train=4",
    "train.staleness=1",
    *("~arm@arms.policy_reward", "~arms.outcome", "~arms.policy"),
    *("arms.full.train_reward=false", "arms.full.adapt=false"),
)
pytestmark = [pytest.mark.long, pytest.mark.integration]


def pictures(body) -> list[Image]:
    """The pictures of a request, decoded."""
    parts = body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image(base64.b64decode(url.removeprefix("data:image/png;base64,"))) for url in urls]


def judged(body) -> str:
    """A reply whose length, which is its verdict here, follows from the pictures alone."""
    return "x" * (1 + sum(image.png[-20] for image in pictures(body)) % 2)


def config(server: Endpoint, *changes: str, judges: Sequence[str] = ()) -> Config:
    """The reward model and these judges are behind the server."""
    section = server.section(context=8192)
    served = {"reward": {**section, "model": "reward"}}
    served |= {"judges": {name: {**section, "model": name} for name in judges}}
    return parse({**compose.compose([*SMALL, *CHANGES, *changes], ROOT), "endpoints": served})


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with serving(answer=judged, models=("reward", "strong")) as found:
        yield found


@pytest.fixture(scope="module")
def project(server, tmp_path_factory) -> Iterator[Path]:
    """A project whose games show pictures, trained once; not to be changed."""
    root = tmp_path_factory.mktemp("served") / "project"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        patch.setenv("TEST_ENDPOINT_KEY", KEY)
        (root / "experiments").symlink_to(ROOT / "experiments")
        shutil.copytree(ROOT / "experiments" / "prompts" / "embedded", root / "prompts")
        (root / "prompts" / "judge_history.txt").write_text(JUDGE)
        found = config(server)
        tasks.make_tasks(found, root)
        make_models(found, root)
        train.train_arm(found, root, "full")
        yield root


def again(project: Path, to: Path) -> Path:
    """A project with the same inputs and no run."""
    shutil.copytree(project, to, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    return to


def seen_in(line) -> set[str]:
    """The pictures of a recorded episode."""
    trajectory = line["trajectory"]
    return {*trajectory["first_images"], *(n for step in trajectory["steps"] for n in step["images"])}


def test_the_endpoint_was_shown_what_the_records_name(project, server):
    shown = {tuple(image.sha256 for image in pictures(body)) for body in server.seen}
    assert {len(names) for names in shown} == {2}
    store, named = ImageStore(project / RUN / "images"), set()
    for iteration in (1, 2):
        for line in read_objects(project / RUN / "rollouts" / f"iter_{iteration:04d}.jsonl.gz"):
            steps = line["trajectory"]["steps"]
            assert len(line["judgements"]) == len(steps)
            assert not any(step.get("prompt_images") for step in steps), "the policy reads text"
            for judgement in line["judgements"]:
                assert tuple(judgement["images"]) in shown
                assert {vote["verdict"] for vote in judgement["votes"]} <= {1, -1}
            named |= seen_in(line)
    assert {path.stem for path in store.folder.rglob("*.png")} == named
    assert all(store.get(name) for name in named)


def test_it_is_replayed_with_the_endpoint_and_the_key_gone(project, monkeypatch):
    monkeypatch.delenv("TEST_ENDPOINT_KEY")
    assert replay_report.replay_run(project / RUN, []).problem == ""
    assert replay_report.replay_run(project / RUN, [], play=True).problem == ""


def test_a_training_that_is_killed_asks_for_no_reply_twice_and_ends_with_the_same_bytes(
    project, server, tmp_path, monkeypatch
):
    """First after the batch of iteration 1 was sampled ahead, then after it was judged. A thread samples ahead."""
    threads = in_a_thread(monkeypatch)
    root, publish, before = again(project, tmp_path / "again"), RunFolder.publish, len(server.seen)
    with golden.killed_in(1):
        train.train_arm(config(server), root, "full")
    (live,) = root.glob(".rla/live/*/full/seed-0")
    ahead = set(sizes(live / "iterations" / "0000" / "images_ahead.jsonl"))
    assert ahead <= {path.stem for path in (live / "images").rglob("*.png")}
    rollouts = read_objects(live / "iterations" / "0000" / "rollouts.jsonl.gz")
    own = {name for line in rollouts for name in seen_in(line)}
    assert own == set(sizes(live / "iterations" / "0000" / "images.jsonl.gz"))
    assert ahead - own, "the batch of iteration 1 has seen more"

    def dies(self, iteration, write):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "publish", dies)
    with pytest.raises(KeyboardInterrupt):
        train.train_arm(config(server), root, "full")
    monkeypatch.setattr(RunFolder, "publish", publish)
    train.train_arm(config(server), root, "full")
    asked = [json.dumps(body, sort_keys=True) for body in server.seen[before:]]
    assert len(asked) == len(set(asked)) > 0
    assert contents(root / RUN) == contents(project / RUN)
    assert "ahead" in threads


def test_without_stored_rollouts_a_killed_run_has_the_pictures_that_it_needs(project, server, tmp_path):
    root = again(project, tmp_path / "unsaved")
    unsaved = config(server, "train.save_rollouts=false")
    with golden.killed_in(1):
        train.train_arm(unsaved, root, "full")
    (live,) = root.glob(".rla/live/*/full/seed-0")
    ahead = set(sizes(live / "iterations" / "0000" / "images_ahead.jsonl"))
    assert ahead
    assert ahead <= {path.stem for path in (live / "images").rglob("*.png")}
    train.train_arm(unsaved, root, "full")
    assert not list((root / "runs").rglob("*.png"))
    assert not list((root / "runs").rglob("*images*"))
    weights = Path("checkpoints/policy/model.safetensors")
    assert (root / RUN / weights).read_bytes() == (project / RUN / weights).read_bytes()


def test_a_judge_that_labels_is_shown_them_too_and_the_policy_is_evaluated(project, server, tmp_path):
    root = tmp_path / "labelled"
    shutil.copytree(project, root, symlinks=True)
    judges = "+evaluate.judges={strong: {path: nowhere, votes: 1, max_tokens: 8}}"
    found = config(server, "evaluate.labels=judge", judges, judges=["strong"])
    asked = len(server.seen)
    label.make_labels(found, root)
    labelling = server.seen[asked:]
    assert {body["model"] for body in labelling} == {"strong"}
    assert {len(pictures(body)) for body in labelling} == {2}
    evaluate.evaluate_arm(found, root, "full")
    assert "rm_process" in json.loads((root / "evaluation" / "full.json").read_text())["seeds"]["0"]


def test_no_file_of_the_project_has_the_key_and_no_reply_has_a_picture(project):
    kept = [*project.glob(".rla/**/*.json"), *project.rglob("*.jsonl")]
    assert kept
    for path in kept:
        data = path.read_bytes()
        assert KEY.encode() not in data
        assert b"base64," not in data


def test_which_models_may_be_shown_pictures(server):
    """An embedded policy and the engine native read text; the endpoint alone has eyes."""
    assert config(server).model.images.reward == 2
    with pytest.raises(
        ConfigError, match=r"images\.policy = 1: only engine=transformers, vllm and vllm_servers"
    ):
        config(server, "model.images.policy=1")
    with pytest.raises(
        ConfigError, match=r"images\.reward = 2: only engine.*or an endpoint in the reward model's"
    ):
        small(*CHANGES)
    with pytest.raises(ConfigError, match=r"images\.reward = 2: only engine.*judge's place"):
        config(server, "+evaluate.judges={strong: {path: nowhere}}", "evaluate.labels=judge")
    assert config(server, "+evaluate.judges={strong: {path: nowhere}}"), (
        "the oracle labels; no judge is asked"
    )
