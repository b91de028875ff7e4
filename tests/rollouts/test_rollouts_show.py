"""`rlanything rollouts show`: what it prints follows from the records, in both settings, finished and in training."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from image_cases import png
from live_cases import in_training
from stage_cases import small

from rlanything.cli import main
from rlanything.core.coding_signals import program_advantages
from rlanything.core.errors import ConfigError
from rlanything.core.images import Image
from rlanything.core.signals import policy_advantages
from rlanything.files.images import ImageStore
from rlanything.files.records import write_json
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.rewards.kind import KINDS
from rlanything.rewards.step_votes.signals import StepVoteModel
from rlanything.rollouts import runs, select, text, votes
from rlanything.rollouts.cli import show
from rlanything.rollouts.page import EXPLAIN
from rlanything.runs.fingerprint import made_from
from rlanything.runs.resuming import origins

pytestmark = pytest.mark.integration
ARM, SEED = "full", "seed-0"


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for record in records:
        change(record)
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))


def test_every_kind_of_reward_model_is_explained():
    assert set(EXPLAIN) == set(KINDS)


def test_rewards_are_those_that_trained(undisturbed):
    """The advantages that trained the policy follow from the rewards that are shown, in every task that trains."""
    config = small()
    model = StepVoteModel(config, config.arm(ARM), 0, None)
    run = runs.open_run(undisturbed)
    compared = 0
    for iteration in range(config.train.iterations):
        for tries in select.grouped(StoredIteration(run.stored, iteration)):
            episodes = [record.episode for record in tries.records if record.episode.trajectory.counts]
            shown = [votes.rewards(e, run.terms, config.signals.lambda_) for e in episodes]
            assert shown == [model.rewards(e, config.signals.lambda_) for e in episodes]
            scored = policy_advantages(shown, config.signals.advantage_scale)
            for episode, advantages in zip(episodes, scored, strict=True):
                if episode.advantages is not None:
                    assert list(episode.advantages) == advantages
                    compared += 1
    assert compared > 10


def test_the_page_of_a_rollout_has_what_the_record_has(root):
    page = show(f"{ARM}/{SEED}", iteration=0, root=root)
    record = StoredIteration(StoredRun(root / "runs" / ARM / SEED), 0).episodes
    (kept,) = [
        r.episode
        for r in record
        if (r.episode.trajectory.slot, r.episode.trajectory.rollout) == (page["slot"], page["rollout"])
    ]
    assert [step["action"] for step in page["steps"]] == [s.action for s in kept.trajectory.steps]
    assert [[v["verdict"] for v in step["votes"]] for step in page["steps"]] == [
        [v.verdict for v in judgement.votes] for judgement in kept.judgements
    ]
    for step, taken in zip(page["steps"], kept.trajectory.steps, strict=True):
        assert step["response"].startswith(taken.action), "decoded with the run's own tokenizer"
        assert step["reward"] == pytest.approx(page["outcome"] + page["lambda"] * step["mean_vote"])
    assert page["steps"][0]["prompt"].count(page["first_observation"].splitlines()[-1].strip()) >= 1
    assert page["task"]["instruction"]
    assert page["trains_policy"] == (kept.advantages is not None)
    trained = [v["trains"] for step in page["steps"] for v in step["votes"]]
    assert any(trained) == bool(kept.lessons)


@pytest.mark.long
def test_without_a_selection_it_says_what_can_be_selected(root, capsys):
    assert main(["--root", str(root), "rollouts", "show", ARM]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{ARM}/{SEED}  iteration {small().train.iterations - 1}, slot ")
    assert "\nto select: --iteration 0, 1; --slot " in out
    assert "\x1b" not in out
    assert main(["--root", str(root), "rollouts", "show", ARM, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["selectable"]["iterations"] == [0, 1]
    for slot in page["selectable"]["slots"]:
        for rollout in page["selectable"]["rollouts"]:
            found = show(ARM, slot=slot, rollout=rollout, root=root)
            assert (found["slot"], found["rollout"]) == (slot, rollout)
            assert bool(found["why_not"]) != found["trains_policy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ful"], "did you mean 'full'? known: full, full/seed-0"),
        ([ARM, "--iteration", "9"], "--iteration 9: unknown; the nearest is 1. Known: 0, 1"),
        ([ARM, "--rollout", "99"], "--rollout 99: unknown; the nearest is "),
        ([ARM, "--slot", "-3"], "--slot -3: unknown; the nearest is 1. Known: 1, 3, 6"),
        (
            [ARM, "--iteration", "0", "--proposal"],
            f"--proposal: {ARM}/{SEED}, iteration 0: it tried no rewrite",
        ),
        ([ARM, "--slot", "1", "--proposal"], "no rewrite was tried there; it tried no rewrite"),
    ],
)
def test_what_is_unknown_names_the_nearest(root, capsys, words, said):
    assert main(["--root", str(root), "rollouts", "show", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_run_of_a_workspace_is_named_after_it(root, capsys):
    workspace = root / ".rla" / "bold"
    workspace.mkdir(parents=True)
    (root / "runs").rename(workspace / "runs")
    (root / "provenance").rename(workspace / "provenance")
    (workspace / "params.yaml").write_text("{}")
    assert main(["--root", str(root), "rollouts", "show", f"bold:{ARM}"]) == 0
    assert capsys.readouterr().out.startswith(f"{ARM}/{SEED}  iteration 1, slot ")
    assert main(["--root", str(root), "rollouts", "show", "bold:ful"]) == 2
    assert "no run 'ful': unknown; did you mean 'full'?" in capsys.readouterr().err


def test_an_iteration_without_rollouts_and_a_rollout_that_stands_twice_are_clear_errors(root, capsys):
    path = root / "runs" / ARM / SEED / "rollouts" / "iter_0001.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join([lines[0], *lines])))
    place = root / "page"
    for words in (["rollouts", "show", ARM, "--iteration", "0"], ["view", ARM, "--output", str(place)]):
        assert main(["--root", str(root), *words]) == 2
        assert f"{path}: slot " in (said := capsys.readouterr().err)
        assert said.endswith(" stands there twice\n")
    path.write_bytes(gzip.compress(b""))
    assert main(["--root", str(root), "rollouts", "show", ARM, "--iteration", "0"]) == 2
    assert "iteration 0: no rollouts are stored" in capsys.readouterr().err


def test_without_a_slot_a_rewrite_that_tells_most_is_chosen(undisturbed, monkeypatch):
    """The task that tells most, in slot 7, is no rewrite."""
    run, real = runs.open_run(undisturbed), select.grouped
    assert select.choose(run, 0).tries.slot == 7

    def rewritten(stored):
        return [replace(tries, proposal=tries.slot == 2) for tries in real(stored)]

    monkeypatch.setattr(select, "grouped", rewritten)
    chosen = select.choose(run, 0, proposal=True)
    assert (chosen.tries.slot, chosen.tries.proposal) == (2, True)


def test_pictures_are_shown_as_their_files_with_their_sizes(root, capsys):
    shown, missing = Image(png(40, 30)), "0" * 64
    run = root / "runs" / ARM / SEED
    ImageStore(run / "images").add([shown])

    def show_pictures(record):
        record["trajectory"]["first_images"] = [shown.sha256]
        for step in record["trajectory"]["steps"]:
            step["images"] = [missing]

    for path in (run / "rollouts").glob("*.gz"):
        edit(path, show_pictures)
    assert main(["--root", str(root), "rollouts", "show", ARM]) == 0
    out = " ".join(capsys.readouterr().out.split())
    file = f"images/{shown.sha256[:2]}/{shown.sha256}.png"
    assert f" picture {shown.sha256[:12]} 40 x 30, {len(shown.png):,} bytes {file} " in out
    assert f" picture {missing[:12]} " in out
    assert "no such file; a record names this picture" in out
    page = show(ARM, root=root)
    assert page["first_images"][0]["file"] == file
    assert all(picture["problem"] for step in page["steps"] for picture in step["images"])


def test_a_run_in_training_is_shown_as_the_finished_one_will_be(undisturbed, tmp_path):
    live = in_training(undisturbed.parents[2], tmp_path, published=1)
    page = show(ARM, root=tmp_path)
    assert page["state"] == "in training"
    assert page["selectable"]["iterations"] == [0]
    assert page == show(str(live), root=tmp_path) == show(f"{ARM}/{SEED}", root=tmp_path)
    chosen = {"iteration": 0, "slot": page["slot"], "rollout": page["rollout"]}
    finished = show(f"{ARM}/{SEED}", **chosen, root=undisturbed.parents[2])
    differ = ("state", "selectable")
    assert {k: v for k, v in page.items() if k not in differ} == {
        k: v for k, v in finished.items() if k not in differ
    }
    key = live.parent.parent
    key.rename(key.with_name(f".gone-{key.name}"))  # a kill left a part of it
    with pytest.raises(ConfigError, match=f"no run '{ARM}'"):
        show(ARM, root=tmp_path)


def test_what_a_training_records_of_its_origin_is_enough(undisturbed, tmp_path):
    """The configuration in origin.json has fewer sections than the whole one."""
    live = in_training(undisturbed.parents[2], tmp_path, published=1)
    whole = runs.open_run(live).terms
    origin = made_from(small(), undisturbed.parents[2], ARM)
    write_json(live.parent / origins.FILE, asdict(origin))
    assert runs.open_run(live).terms == whole


def test_before_the_first_iteration_it_says_so(undisturbed, tmp_path, capsys):
    in_training(undisturbed.parents[2], tmp_path, published=0)
    assert main(["--root", str(tmp_path), "rollouts", "show", ARM]) == 2
    assert "no iteration is published yet" in capsys.readouterr().err
    assert main(["--root", str(tmp_path / "models"), "rollouts", "show", ARM]) == 2
    assert "this project has no run yet" in capsys.readouterr().err


def test_no_control_character_of_a_model_reaches_the_terminal(root, capsys):
    evil = "\x1b]0;owned\x07\x1b[31m\u202e\r"

    def change(record):
        for step in record["trajectory"]["steps"]:
            step["action"] = step["observation"] = evil + "\n" + evil
        for name in ("first_observation", "error", "task_id"):
            record["trajectory"][name] = evil
        for judgement in record["judgements"]:
            for vote in judgement["votes"]:
                vote["reasoning"] = evil

    edit(root / "runs" / ARM / SEED / "rollouts/iter_0002.jsonl.gz", change)
    for words in ([], ["--json"], ["--prompts"]):
        assert main(["--root", str(root), "rollouts", "show", ARM, *words]) == 0
        out = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)
        assert "owned" in out


def test_programs_are_shown_with_every_test(coding_project, tmp_path, capsys):
    page = show(ARM, root=coding_project)
    tests, rows = page["tests"], page["tests"]["programs"]
    assert [row["rollout"] for row in rows] == page["selectable"]["rollouts"]
    dataset, generated = ([tuple(row[name]) for row in rows] for name in ("dataset", "written"))
    readable = [bool(test["text"]) for test in tests["written"]]
    config = runs.find(ARM, coding_project)[0].terms.signals
    scored = program_advantages(dataset, generated, readable, config.lambda_)
    for row, advantage in zip(page["rollouts"], scored, strict=True):
        assert row["advantage"] in (advantage, None)
    for row, outcome in zip(rows, page["rollouts"], strict=True):
        assert row["right"] == (outcome["outcome"] == 1)
        assert all(row["dataset"]) == row["right"]
    live = in_training(coding_project, tmp_path, published=1)
    assert (live.parent / origins.FILE).is_file()
    chosen = {"iteration": 0, "slot": page["slot"] if page["iteration"] == 0 else None}
    early = show(ARM, **chosen, root=tmp_path)
    late = show(ARM, iteration=0, slot=early["slot"], rollout=early["rollout"], root=coding_project)
    assert early["tests"] == late["tests"]
    assert main(["--root", str(coding_project), "rollouts", "show", ARM]) == 0
    out = capsys.readouterr().out
    assert "\nprograms and tests: + passes, - fails" in out
    assert out.count("\n  program ") + out.count("\n> program ") == len(rows)


def test_a_training_that_ends_while_runs_are_looked_for_hides_no_other(undisturbed, tmp_path):
    in_training(undisturbed.parents[2], tmp_path, published=1)
    (tmp_path / ".rla/live/ended").symlink_to(tmp_path / "renamed")  # as seen by who listed it before
    assert show(ARM, root=tmp_path)["state"] == "in training"


def test_numbers_in_messages_are_short():
    assert select.numbers([3, 0, 1, 2, 7, 8]) == "0 to 3, 7, 8"
    assert select.numbers([]) == ""
    shown = [text._number(value) for value in (None, -0.0, -0.0004, -0.0006, 1.0)]
    assert shown == ["-", "+0.000", "+0.000", "-0.001", "+1.000"]


@pytest.mark.parametrize("file", ["metrics.jsonl", f"../{origins.FILE}"])
def test_a_run_without_folders_above_it_is_refused(file):
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        folder = Path(top) if file == "metrics.jsonl" else Path(top, "seed-0")
        folder.mkdir(exist_ok=True)
        (folder / file).write_text("{}")
        with pytest.raises(ConfigError, match="folders above it"):
            runs.open_run(folder)
