"""Rows for TRL: what they say follows from the records, and TRL's trainers take them."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rlanything.core.errors import ConfigError
from rlanything.core.types import Episode, Status, Step, Trajectory
from rlanything.exports import trl
from rlanything.exports.export import export
from rlanything.exports.formats import FORMATS
from rlanything.exports.reading import Group, Rollout
from rlanything.exports.template import Template
from rlanything.exports.turns import turns_of
from rlanything.loop.record import EpisodeRecord

pytestmark = pytest.mark.integration
NEEDED = "trl is not installed: make exports, or pip install -e '.[exports]'"
KINDS = [name for name in FORMATS if name.startswith("trl-")]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def episodes(records) -> dict[tuple[int, int, bool, int], Any]:
    """By iteration, slot, proposal and rollout."""
    return {
        (k, r.episode.trajectory.slot, r.proposal, r.episode.trajectory.rollout): r.episode
        for k, r in records
    }


def of(episodes: dict[Any, Any], source: dict[str, Any]) -> Any:
    return episodes[source["iteration"], source["slot"], source["proposal"], source["rollout"]]


def vote(episode: Any, step: int) -> float | None:
    """The mean of a step's readable votes."""
    said = [v.verdict for v in episode.judgements[step].votes if v.verdict is not None]
    return sum(said) / len(said) if said else None


def contents(messages: list[dict[str, str]]) -> list[str]:
    return [message["content"] for message in messages]


def told(episode: Any, step: int) -> list[str]:
    """What was read before a step: first observation, then actions and their answers."""
    steps = episode.trajectory.steps[:step]
    return [
        episode.trajectory.first_observation,
        *(text for s in steps for text in (s.action, s.observation)),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_columns_that_trl_documents(exported, kind):
    columns = {
        "trl-sft": {"messages"},
        "trl-preference": {"prompt", "chosen", "rejected"},
        "trl-vote-preference": {"prompt", "chosen", "rejected"},
        "trl-unpaired": {"prompt", "completion", "label"},
        "trl-stepwise": {"prompt", "completions", "labels"},
    }
    found = rows(exported(kind))
    assert found
    assert {frozenset(row) for row in found} == {frozenset({*columns[kind], "source"})}


def test_pairs_read_the_same_and_the_better_one_was_chosen(exported, episodes):
    for row in rows(exported("trl-preference")):
        good, bad = (of(episodes, row["source"][name]) for name in ("chosen", "rejected"))
        step = row["source"]["chosen"]["step"]
        assert step == row["source"]["rejected"]["step"]
        assert good.trajectory.task_id == bad.trajectory.task_id
        assert good.trajectory.steps[step].prompt_ids == bad.trajectory.steps[step].prompt_ids
        assert [contents(row[name]) for name in ("chosen", "rejected")] == [
            [e.trajectory.steps[step].action] for e in (good, bad)
        ]
        assert [s.strip() for s in contents(row["prompt"])] == [s.strip() for s in told(good, step)]
        assert row["source"]["chosen"]["value"] > row["source"]["rejected"]["value"]
        group = [e for k, e in episodes.items() if e.trajectory.task_id == good.trajectory.task_id]
        assert row["source"]["chosen"]["value"] >= max(e.trajectory.outcome for e in group) - 1


def test_a_rollout_that_crashed_is_no_rejected_one(project, exported, tmp_path):
    """Its reward is low because the environment failed, not because of its replies."""
    for name in ("runs", "provenance"):
        shutil.copytree(project / name, tmp_path / name)
    places = ("iteration", "slot", "proposal", "rollout")

    def rejected(folder: Path) -> set[tuple[Any, ...]]:
        return {tuple(row["source"]["rejected"][name] for name in places) for row in rows(folder)}

    worst = rejected(exported("trl-preference"))
    for file in (tmp_path / "runs" / "full" / "seed-0" / "rollouts").glob("*.gz"):
        records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for record in records:
            one, number = record["trajectory"], int(file.name[5:9]) - 1
            if (number, one["slot"], record.get("proposal", False), one["rollout"]) in worst:
                one["status"] = "env_error"
        file.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))
    export("full", "trl-preference", tmp_path / "out", root=tmp_path)
    assert worst.isdisjoint(rejected(tmp_path / "out"))


def test_pairs_of_votes_were_voted_good_and_bad_at_the_same_prompt(exported, episodes):
    for row in rows(exported("trl-vote-preference")):
        sides = [
            (of(episodes, row["source"][name]), row["source"][name]["step"])
            for name in ("chosen", "rejected")
        ]
        (good, k), (bad, j) = sides
        assert good.trajectory.steps[k].prompt_ids == bad.trajectory.steps[j].prompt_ids
        assert vote(good, k) > 0 > vote(bad, j)
        assert row["chosen"] != row["rejected"]


def shown(pictures: str, reply: str, vote: int) -> Rollout:
    """A rollout of one step, whose prompt has the same tokens whichever pictures it shows."""
    step = Step((1, 2), (3,), (-0.5,), (), reply, True, "", "look at this", reply, (), tuple(pictures))
    told = Trajectory("t", 0, 0, 1, "first", (step,), vote, Status.OK)
    page = {"slot": 0, "rollout": 0, "steps": [{"votes": [{"verdict": vote}]}]}
    page["rollouts"] = [{"rollout": 0, "reward": float(vote)}]
    turns = turns_of(page, told, Template(problem="not used"))
    return Rollout(0, False, EpisodeRecord(False, True, Episode(told)), page, turns)


@pytest.mark.parametrize("kind", [trl.preference, trl.vote_preference])
def test_replies_to_different_pictures_are_no_pair(kind):
    same = Group(0, 0, False, [shown("a", "click", 1), shown("a", "wait", -1)])
    assert [row["chosen"][0]["content"] for row in kind(same)] == ["click"]
    assert list(kind(Group(0, 0, False, [shown("a", "click", 1), shown("b", "wait", -1)]))) == []


def test_every_step_with_a_majority_is_labelled(exported, episodes):
    found = {
        (*list(r["source"].values())[:4], r["source"]["step"]): r for r in rows(exported("trl-unpaired"))
    }
    wanted = {
        (*place, k): vote(episode, k) > 0
        for place, episode in episodes.items()
        for k in range(len(episode.judgements))
        if vote(episode, k)
    }
    assert {place: row["label"] for place, row in found.items()} == wanted
    assert len(set(wanted.values())) == 2
    for (*place, k), row in found.items():
        assert contents(row["completion"]) == [episodes[tuple(place)].trajectory.steps[k].action]


def test_stepwise_rows_hold_the_episode_as_far_as_it_was_judged(exported, episodes):
    for row in rows(exported("trl-stepwise")):
        episode = of(episodes, row["source"])
        labels = [vote(episode, k) for k in range(len(episode.judgements))]
        judged = next((k for k, found in enumerate(labels) if found is None), len(labels))
        assert row["labels"] == [found > 0 for found in labels[:judged]]
        assert row["prompt"].strip() == episode.trajectory.first_observation.strip()
        seen = ["", *(step.observation + "\n" for step in episode.trajectory.steps)]
        actions = [step.action for step in episode.trajectory.steps]
        assert row["completions"] == [a + b for a, b in zip(seen[:judged], actions[:judged], strict=True)]


@pytest.mark.long
def test_programs_are_paired_and_labelled_by_their_tests(coding_project, tmp_path):
    export("full", "trl-unpaired", tmp_path / "unpaired", root=coding_project)
    found = rows(tmp_path / "unpaired")
    assert {len(row["completion"]) for row in found} == {1}
    export("full", "trl-sft", tmp_path / "sft", root=coding_project)
    assert {row["messages"][-1]["content"] for row in rows(tmp_path / "sft")} >= {
        row["completion"][0]["content"] for row in found
    }
    for kind in ("trl-stepwise", "trl-vote-preference"):
        with pytest.raises(ConfigError, match="writes tests; others: inspect, datasets, trl-sft"):
            export("full", kind, tmp_path / kind, root=coding_project)
        assert not (tmp_path / kind).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_trl_reads_the_rows(exported, undisturbed, tmp_path, kind):
    trl = pytest.importorskip("trl", reason=NEEDED)
    datasets = pytest.importorskip("datasets", reason=NEEDED)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(undisturbed / "checkpoints" / "policy"))
    found = datasets.load_dataset(str(exported(kind)), split="train", cache_dir=str(tmp_path))
    assert trl.is_conversational(found[0]) == (kind != "trl-stepwise")
    if kind != "trl-stepwise":
        text = trl.apply_chat_template(found[0], tokenizer)
        assert all("<|assistant|>" in value for name, value in text.items() if name in ("text", "prompt"))


@pytest.mark.parametrize(
    ("trainer", "kind"), [("SFT", "trl-sft"), ("DPO", "trl-preference"), ("KTO", "trl-unpaired")]
)
def test_trainers_of_trl_make_a_step(exported, undisturbed, tmp_path, trainer, kind):
    trl = pytest.importorskip("trl", reason=NEEDED)
    datasets = pytest.importorskip("datasets", reason=NEEDED)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(undisturbed / "checkpoints" / "policy")
    options = {
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
    }
    config = getattr(trl, f"{trainer}Config")(output_dir=str(tmp_path / "out"), save_strategy="no", **options)
    made = getattr(trl, f"{trainer}Trainer")(
        model=AutoModelForCausalLM.from_pretrained(source),
        args=config,
        train_dataset=datasets.load_dataset(str(exported(kind)), split="train", cache_dir=str(tmp_path)),
        processing_class=AutoTokenizer.from_pretrained(source),
    )
    assert made.train().metrics["train_loss"] > 0
