"""The paper's GUI setting: its numbers, the room that it needs, and what is refused by its key."""

from __future__ import annotations

import pytest
from costs_cases import PAPER, ROOT, WHOLE, one_gpu, osworld

from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.protocols import LeavesOpen
from rlanything.planning import check, compose
from rlanything.planning.costs.devices import GB
from rlanything.runs import build


def test_the_numbers_are_those_of_the_paper():
    made = osworld()
    assert (made.rollout.tasks, made.rollout.rollouts, made.rollout.max_steps) == (12, 8, 30)
    assert (made.rollout.temperature, made.evaluate.temperature, made.judge.temperature) == (1.0, 0.0, 0.8)
    assert (made.evaluate.max_steps, made.train.iterations, made.judge.m) == (50, 240, 3)
    assert made.model.policy.path == made.model.reward.path == "Qwen/Qwen3-VL-8B-Thinking"
    assert (made.model.images.policy, made.model.images.reward) == (3, 2)
    assert (made.adaptation.marked, made.adaptation.critic_stages, made.adaptation.attempts) == ("any", 2, 3)


def test_the_plan_prices_it(capsys):
    assert (
        main(["--root", str(ROOT), "plan", *PAPER, "--arm", "full", "--device", "H200", "--devices", "96"])
        == 0
    )
    printed = capsys.readouterr().out
    assert "222 train, 222 in_domain, 139 out_of_domain, 93 reward_panel" in printed
    assert "240 of 12 tasks x 8 rollouts, at most 30 steps, 3 votes a step" in printed


def test_evaluators_that_are_left_open_are_warned_of(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    assert isinstance(build.family(osworld()), LeavesOpen)
    assert (
        check.left_open(osworld("env.evaluators=ab"))
        == check.left_open(osworld("env=alfworld", *BLIND))
        == []
    )
    write = ["--root", str(ROOT), "config", "write", "--output", str(tmp_path / "params.yaml"), *PAPER]
    assert main(write) == 0
    assert "warning: env.evaluators is null: " in capsys.readouterr().err
    for app in ("multi_apps", "chrome", "os"):
        (tmp_path / "examples" / app).mkdir(parents=True)
    (tmp_path / "test_nogdrive.json").write_text('{"multi_apps": [], "chrome": [], "os": []}')
    found = main(["--root", str(ROOT), "config", "check", str(tmp_path / "params.yaml")])
    assert "warning: env.evaluators is null: " in capsys.readouterr().err
    assert found == 0


BLIND = ("model.images.policy=0", "model.images.reward=0")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (BLIND, r"env.observe = 'screenshot': the screen is a picture only, and model.images.policy = 0"),
        (["model.images.policy=0"], r"env.observe = 'screenshot': the screen is a picture only"),
        (
            ["env.observe=tree"],
            r"model.images.policy = 3: with env.observe = 'tree' the environment shows no",
        ),
        (
            ["env.observe=tree", "model.images.policy=0"],
            r"model.images.reward = 2: with env.observe = 'tree' the environment shows no pictures",
        ),
        (["env=alfworld"], r"model.images.policy = 1: this environment shows no pictures. Set"),
    ],
)
def test_what_is_not_seen_is_refused_by_its_key(changes, words, tmp_path, monkeypatch):
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    more = [*changes, "model.prompts=experiments/prompts/desktop"]
    if "env=alfworld" in changes:
        more += ["model.images.policy=1"]
    with pytest.raises(check.ConfigError, match=words):
        check.check(osworld(*more), ROOT, engine=False)


@pytest.mark.parametrize(
    ("words", "room", "images"),
    [
        ("env=desktop", "RTX4090", (3, 2)),
        ("env=osworld", "H100", (3, 2)),
        (
            "env=web env.observe=both model=local path=Qwen/Qwen3-VL-2B-Instruct model.images.policy=2 "
            "model.images.reward=2",
            "RTX4090",
            (2, 2),
        ),
    ],
)
def test_one_gpu_has_room_for_a_model_that_sees_with_lora_and_not_for_all_weights(words, room, images):
    found, whole = (one_gpu(*words.split(), *more, device=room) for more in ((), WHOLE))
    assert found.fits
    assert not whole.fits
    config = parse(compose.compose(["scale=single-gpu", *words.split()], ROOT))
    assert (config.model.images.policy, config.model.images.reward) == images
    assert [*config.learn.lora] == ["policy", "reward"]
    assert config.model.policy == config.model.reward == config.model.adapter
    page = (ROOT / "docs" / "plan.md").read_text()
    _, _, small = config.model.policy.path.partition("/")
    said = f"{found.memory.peak / GB:.1f} | {whole.memory.peak / GB:.1f} | {found.hours.hours:.1f}"
    assert f"| `{words}` | {small} | {room} | {said} |" in page


def test_of_the_papers_judges_one_that_has_no_room_is_left_out():
    for env, judge in (("osworld", "Qwen3-VL-8B"), ("desktop", "Qwen3-VL-4B")):
        assert [*compose.compose(["scale=single-gpu", f"env={env}"], ROOT)["evaluate"]["judges"]] == [judge]


SEVERAL = ("train.nodes=12", "train.devices=8")


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("engine=vllm",),
        ("env.observe=both",),
        ("env.observe=both", *BLIND),
        ("env.observe=tree", *BLIND),
        (*SEVERAL, "train.strategy=fsdp"),
        (*SEVERAL, "train.strategy=ddp"),
        (*SEVERAL, "train.strategy=fsdp", "engine=vllm_servers"),
        ("+evaluate.solver.path=Qwen/Qwen3-VL-32B-Thinking", "+evaluate.reward_policy.path=Qwen/x"),
    ],
)
def test_what_is_seen_is_accepted(changes, tmp_path, monkeypatch):
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    check.check(osworld(*changes), ROOT, engine=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("engine=native", r"model.images.policy = 3: only engine=transformers, vllm and vllm_servers read"),
    ],
)
def test_what_cannot_run_with_pictures_is_named(change, words):
    with pytest.raises(check.ConfigError, match=words):
        osworld(change)
