"""A run goes on with another division when its user says so, and its record tells from which iteration on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import golden_cases as golden
import pytest
import yaml
from golden_processes import in_child, several, with_params

from rlanything.cli import main
from rlanything.compare.run import parts
from rlanything.core.errors import ConfigError
from rlanything.files import locks
from rlanything.files.records import write_json
from rlanything.loop.iteration import Loop
from rlanything.repro.origin.text import divided
from rlanything.repro.verify import divided_arms
from rlanything.runs import provenance
from rlanything.runs.fingerprint import Origin, made_from, run_config
from rlanything.runs.layout import Layout
from rlanything.runs.resuming import divisions, origins
from rlanything.runs.resuming.divisions import Division
from rlanything.stages import redivide as stage
from rlanything.stages.redivide import redivide

ARM = "outcome"
TWO: dict[str, Any] = {"train__devices": 2, "train__strategy": "fsdp"}


@pytest.fixture
def root(tmp_path) -> Path:
    return golden.project(tmp_path / "project")


def origin(**changes: Any) -> Origin:
    """What a run is made from, by its configuration alone: to find the code takes a second each time."""
    return Origin(run_config(golden.configuration(**changes), ARM), {"code.py": "1"}, {}, {"torch": "2"})


def place(root: Path, **changes: Any) -> Path:
    """The live folder of a run."""
    return Layout(root).live(origin(**changes).key, ARM, 0).parent


def begun(root: Path, iterations: int = 2, **changes: Any) -> Path:
    """The live folder of a run with so many iterations, which hold nothing."""
    live = place(root, **changes)
    write_json(live / origins.FILE, asdict(origin(**changes)))
    for number in range(iterations):
        (live / "seed-0" / "iterations" / f"{number:04d}").mkdir(parents=True)
    return live


def ask(root: Path, **changes: Any) -> list[str]:
    return redivide(golden.configuration(**changes), root, ARM, lambda text: None)


@pytest.fixture
def invented(monkeypatch) -> None:
    """Runs have the origin above, and iterations that hold nothing are taken for intact ones."""
    monkeypatch.setattr("rlanything.runs.folder._damage", lambda folders: None)
    monkeypatch.setattr(
        stage, "made_from", lambda config, _root, arm: replace(origin(), config=run_config(config, arm))
    )


def stopped_at(iteration: int, monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> None:
    collect = Loop.collect

    def interrupted(loop: Loop, state: Any) -> Any:
        if state.iteration == iteration:
            raise KeyboardInterrupt
        return collect(loop, state)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "collect", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run()


@pytest.mark.long
def test_a_run_that_is_divided_otherwise_on_the_way_has_the_recorded_numbers_and_its_record_says_when(
    root, monkeypatch, capsys
):
    small = {"engine__max_batch": 17, "learn__micro_batch_tokens": 700}
    stopped_at(1, monkeypatch, lambda: golden.run(root, ARM))
    assert ask(root, **small) == ["engine.max_batch: 256 -> 17", "learn.micro_batch_tokens: 4096 -> 700"]
    golden.check(ARM, golden.run(root, ARM, **small))
    record = provenance.read(root, ARM)
    assert [each["first"]["0"] for each in record["divisions"]] == [0, 1]
    assert [each["values"] for each in record["divisions"]] == [
        {"engine.max_batch": batch, "learn.micro_batch_tokens": tokens}
        for batch, tokens in ((256, 4096), (17, 700))
    ]
    own = made_from(golden.configuration(**small), root, ARM).fingerprint
    assert record["fingerprint"] != own, "its bytes are not those that its configuration gives"
    assert divided(record)[1] == (
        "divided as engine.max_batch=17 learn.micro_batch_tokens=700: seed 0 from iteration 1"
    )
    assert not list((root / ".rla" / "live").iterdir())
    (told,) = parts._divided(record)
    assert "seed 0 from iteration 1" in told
    assert told.endswith("Equal to rounding, not to the byte.")
    assert not list(parts._divided({**record, "divisions": []}))
    (foretold,) = divided_arms(root)
    assert f"arm {ARM} was redivided while it was trained (divided as engine.max_batch=256 " in foretold
    assert main(["--root", str(root), "--params", str(golden.START / "params.yaml"), "provenance", ARM]) == 0
    assert "divided as engine.max_batch=17 " in capsys.readouterr().out


def test_there_and_back_without_an_iteration_between_is_no_change(root, invented):
    live = begun(root)
    (live / "seed-0" / "iterations" / "0000" / "kept").touch()
    ask(root, **TWO)
    assert not live.parent.exists()
    there = place(root, **TWO)
    assert [each.first for each in divisions.read(there, origin(**TWO).key)] == [{"0": 0}, {"0": 2}]
    ask(root)
    assert (live / "seed-0" / "iterations" / "0000" / "kept").is_file()
    assert divisions.record(live, origin().key) == []
    assert origins.begin(live, ARM, origin()) is None


@pytest.mark.parametrize("moved", [False, True])
def test_a_change_that_was_killed_on_the_way_has_not_been_made_or_is_made_again(
    root, invented, monkeypatch, moved
):
    live, now = begun(root), place(root, **TWO)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((origins, "begin") if moved else (stage, "_move")), killed)
        with pytest.raises(KeyboardInterrupt):
            ask(root, **TWO)
    if moved:
        assert origins.begin(now, ARM, origin(**TWO)) is None, "a start goes on there"
    else:
        assert divisions.record(live, origin().key) == []
        ask(root, **TWO)
    assert [e["first"] for e in divisions.record(now, origin(**TWO).key)] == [{"0": 0}, {"0": 2}]


def test_a_start_that_published_nothing_gives_way(root, invented):
    begun(root)
    now = begun(root, 0, **TWO)
    (now / "seed-0").mkdir()
    ask(root, **TWO)
    assert (now / "seed-0" / "iterations" / "0001").is_dir()


def test_what_cannot_go_on_is_refused_with_the_reason(root, invented):
    with pytest.raises(ConfigError, match=r"holds no unfinished run of arm outcome"):
        ask(root, **TWO)
    other = begun(root, learn__epsilon=0.3)
    with pytest.raises(
        ConfigError, match=r"in its division alone \(train.devices.* \(learn.epsilon: 0.3 -> 0.2"
    ):
        ask(root, **TWO)
    assert "redivide" not in str(origins.begin(root / ".rla" / "live" / "new" / ARM, ARM, origin(**TWO)))
    live = begun(root)
    notice = origins.begin(root / ".rla" / "live" / "newer" / ARM, ARM, origin(**TWO))
    assert "then `rlanything redivide --arm outcome`)" in str(notice)
    with pytest.raises(
        ConfigError, match=r"has this division already; `rlanything train --arm outcome` goes on"
    ):
        ask(root)
    begun(root, train__devices=4)
    with pytest.raises(ConfigError, match=r"several unfinished runs of arm outcome could go on: "):
        ask(root, **TWO)
    with locks.stage(root, "train --arm outcome"), pytest.raises(ConfigError, match="runs here already"):
        ask(root, **TWO)
    assert other.is_dir()
    assert live.is_dir()
    assert not (live / divisions.FILE).exists()


def test_a_seed_with_all_of_its_iterations_has_no_first_one_of_a_division_and_an_arm_of_such_seeds_none(
    root, invented
):
    two = {"train__seeds": 2}
    live, iterations = begun(root, golden.configuration().train.iterations + 1, **two), "seed-1/iterations"
    (live / iterations / "0000").mkdir(parents=True)
    ask(root, **two, **TWO)
    now = place(root, **two, **TWO)
    assert [each.first for each in divisions.read(now, origin(**two, **TWO).key)][1] == {"1": 1}
    for number in range(1, golden.configuration().train.iterations + 1):
        (now / iterations / f"{number:04d}").mkdir()
    with pytest.raises(ConfigError, match="every seed of arm outcome has all of its iterations"):
        ask(root, **two)
    assert now.is_dir()


@pytest.mark.parametrize("text", ["{}", '{"of": []}', '{"of": [{"key": 1}]}'])
@pytest.mark.parametrize("name", [origins.FILE, divisions.FILE])
def test_a_damaged_file_is_named(root, invented, name, text):
    live = begun(root)
    (live / name).write_text(text)
    with pytest.raises(ConfigError, match=rf"{live / name}: holds no .*; remove "):
        ask(root, **TWO)


def test_the_command_says_what_changes(root, invented, capsys):
    begun(root)
    data = golden.configuration(**TWO).model_dump(mode="json", by_alias=True)
    (root / "params.yaml").write_text(yaml.safe_dump(data))
    words = ["--root", str(root), "redivide", "--arm"]
    assert main([*words, "outcom"]) == 2
    assert "did you mean 'outcome'" in capsys.readouterr().err
    assert main([*words, ARM]) == 0
    assert "train.devices: 1 -> 2\ntrain.strategy: auto -> fsdp\n" in capsys.readouterr().out


def test_only_the_keys_that_changed_are_recorded_and_each_seed_has_its_own_iteration(tmp_path):
    began = Origin({"train": {"devices": 1, "strategy": "auto"}, "seed": 7}, {}, {}, {})
    now = replace(began, config={"train": {"devices": 2, "strategy": "auto"}, "seed": 7})
    kept = [Division.of(began, {0: 0, 1: 0}), Division.of(now, {0: 9, 1: 4})]
    divisions.note(tmp_path, kept)
    assert divisions.record(tmp_path, now.key) == [
        {"first": {"0": 0, "1": 0}, "values": {"train.devices": 1}},
        {"first": {"0": 9, "1": 4}, "values": {"train.devices": 2}},
    ]


def test_a_page_shows_the_divisions_of_a_record_of_somebody_else_as_text():
    bad = "[all of it](https://example.org) <img src=x>`"
    (told,) = parts._divided({"divisions": [{"first": {"0": 0}, "values": {bad: bad}}]})
    span = told.removeprefix("Its division was changed while it was trained: ").removesuffix(
        ". Equal to rounding, not to the byte."
    )
    assert (span[0], span[-1], span.count("`")) == ("`", "`", 2)


STOPPED = """
import sys
from rlanything.cli import main
from rlanything.compare.run import parts
from rlanything.loop.iteration import Loop
collect, last = Loop.collect, int(sys.argv[1])
def interrupted(loop, state):
    if state.iteration == last:
        raise KeyboardInterrupt
    return collect(loop, state)
Loop.collect = interrupted
sys.exit(main(["train", "--arm", "full"]))
"""
"""A training of arm `full` that is interrupted at an iteration."""


@pytest.mark.slow
@pytest.mark.integration
def test_two_that_divide_the_weights_then_one_then_two_that_copy_them_give_the_recorded_numbers(
    root, monkeypatch
):
    (root / "stopped.py").write_text(STOPPED)
    torchrun = [sys.executable, *several(2)[:-4], "stopped.py", "1"]
    settings = {**os.environ, "PYTHONPATH": str(golden.ROOT)}
    with_params(root, train__devices=2, train__strategy="fsdp")
    done = subprocess.run(torchrun, cwd=root, env=settings, capture_output=True, check=False, timeout=300)
    assert b"interrupted; what is finished is kept" in done.stderr, done.stderr[-3000:]
    command = ["--root", str(root), "redivide", "--arm", "full"]
    with_params(root)
    assert main(command) == 0
    stopped_at(2, monkeypatch, lambda: golden.run(root, "full"))
    with_params(root, train__devices=2)
    assert main(command) == 0
    golden.check("full", in_child(root, several(2)))
    found = provenance.read(root, "full")["divisions"]
    assert [(each["first"]["0"], *each["values"].values()) for each in found] == [
        (0, 2, "fsdp"),
        (1, 1, "auto"),
        (2, 2, "auto"),
    ]


def test_an_iteration_that_is_computed_again_counts_for_the_division_under_which_it_is(tmp_path):
    began = Origin({"train": {"devices": 1}}, {}, {}, {})
    now = replace(began, config={"train": {"devices": 2}})
    divisions.note(tmp_path, [Division.of(began, {0: 0, 1: 0}), Division.of(now, {0: 2, 1: 3})])
    intact = {0: 1, 1: 5}
    divisions.correct(tmp_path, now.key, intact.__getitem__)
    assert [each.first for each in divisions.read(tmp_path, now.key)] == [{"0": 0, "1": 0}, {"0": 1, "1": 3}]
    (tmp_path / divisions.FILE).unlink()
    divisions.correct(tmp_path, now.key, intact.__getitem__)
    assert not (tmp_path / divisions.FILE).exists()
