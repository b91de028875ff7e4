"""The presets for instruct models: the commands that write and check them, their sizes, and their prompts."""

from pathlib import Path

import pytest

from envs.alfworld.tasks.proposal import read_wish
from envs.coding.replies import read_tests
from rlanything.cli import main
from rlanything.config import load
from rlanything.loop.prompts import Prompts

ROOT = Path(__file__).parents[2]
FAST = "env.engine=fast"
"""The real engine is an extra; the keys are the same."""
PRESETS = [
    ("scale=paper", FAST),
    ("scale=paper", "env=coding_data"),
    ("scale=single-gpu",),
    ("scale=single-gpu", "env=alfworld_data", FAST),
    ("scale=single-gpu", "env=coding_data"),
]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Folders where the downloaded sets would be."""
    for split in ("train", "valid_seen", "valid_unseen"):
        (tmp_path / "alfworld" / "json_2.1.1" / split).mkdir(parents=True)
    (tmp_path / "coding").mkdir()
    for name in ("CodeContests_train", "LiveBench-ReasonFlux", "LiveCodeBench-V2"):
        (tmp_path / "coding" / f"{name}.json").write_text("[]")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "alfworld"))
    monkeypatch.setenv("CODING_DATA", str(tmp_path / "coding"))
    return tmp_path


@pytest.mark.parametrize("overrides", PRESETS, ids=" ".join)
def test_presets_pass_the_check_that_every_command_makes(data, capsys, overrides):
    path = data / "preset.yaml"
    root = ["--root", str(ROOT)]
    assert main([*root, "config", "write", "--output", str(path), *overrides]) == 0
    assert main([*root, "config", "check", str(path)]) == 0
    assert f"{path}: valid" in capsys.readouterr().out
    config = load(path)
    assert config.model.embedded is None
    assert config.model.prompts.startswith("experiments/prompts/paper/")
    assert (config.train.precision, config.engine["_target_"].rpartition(".")[2]) == (
        "bf16-mixed",
        "TransformersEngine",
    )


@pytest.mark.parametrize("overrides", [p for p in PRESETS if "scale=single-gpu" in p], ids=" ".join)
def test_one_gpu_changes_sizes_and_not_the_algorithm(data, overrides):
    small, large = data / "small.yaml", data / "large.yaml"
    rest = [x for x in overrides if x != "scale=single-gpu"]
    for path, words in ((small, overrides), (large, ["scale=paper", *(rest or [FAST])])):
        assert main(["--root", str(ROOT), "config", "write", "--output", str(path), *words]) == 0
    ours, theirs = load(small), load(large)
    assert (ours.signals, ours.adaptation.rule, ours.arms) == (
        theirs.signals,
        theirs.adaptation.rule,
        theirs.arms,
    )
    sizes = {"learn": {"micro_batch_tokens", "gradient_checkpointing"}, "judge": {"m", "max_tokens"}}
    for name, smaller in sizes.items():
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.model_dump(exclude=smaller) == other.model_dump(exclude=smaller), name
    assert ours.train.iterations < theirs.train.iterations
    assert ours.rollout.tasks < theirs.rollout.tasks


@pytest.mark.parametrize("overrides", PRESETS, ids=" ".join)
def test_a_preset_whose_updates_compute_in_other_formats_than_its_sampler_recomputes(data, overrides):
    path = data / "preset.yaml"
    assert main(["--root", str(ROOT), "config", "write", "--output", str(path), *overrides]) == 0
    config = load(path)
    expected = "recomputed" if config.train.precision == "bf16-mixed" else "recorded"
    assert config.learn.importance == expected


def paper_prompts(name: str, action_format: str) -> Prompts:
    return Prompts.load(ROOT / "experiments" / "prompts" / "paper" / name, action_format, "boxed", "history")


def test_replies_in_the_form_that_the_text_game_prompts_ask_for_are_read():
    prompts = paper_prompts("alfworld", "boxed_index")
    assert r"\boxed{number}" in prompts.fill("policy_history", history="", observation="o", actions="a")
    assert prompts.action(r"I look around first. \boxed{2}", ["look", "go to shelf 1"]) == (
        "go to shelf 1",
        True,
    )
    asked = prompts.judge_question("o", "a", "p", "r")["content"]
    for verdict in (1, -1):
        form = rf"\boxed{{{verdict}}}"
        assert form in asked
        assert prompts.verdict(f"It was found there. {form}") == verdict
    last = prompts.fill("adapter", facts="f", direction="harder", accuracy="90%", critic="c").splitlines()[-1]
    assert last == "task: KIND object: OBJECT receptacle: RECEPTACLE"
    wish = read_wish(last.replace("KIND", "heat").replace("OBJECT", "apple").replace("RECEPTACLE", "shelf"))
    assert (wish.task, wish.target, wish.receptacle, wish.copies) == ("heat", "apple", "shelf", None)


def test_a_test_in_the_form_that_the_coding_prompts_ask_for_is_read():
    prompts = paper_prompts("coding", "verbatim")
    asked = prompts.test_question("Add two numbers.")[-1]["content"]
    form = asked[asked.index("**Test Input:**") :]
    (case,) = read_tests(form.replace("what the program reads", "1 2").replace("what it must print", "3"))
    assert (case.input, case.output) == ("1 2", "3")
