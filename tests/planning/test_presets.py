"""The presets for instruct models: the commands that write and check them, their sizes, and their prompts."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from envs.alfworld.tasks.proposal import read_wish
from envs.coding.replies import read_tests
from rlanything.cli import main
from rlanything.config import LoraConfig, load, parse
from rlanything.config.sources import paper_value
from rlanything.engines.lora import injection
from rlanything.loop.prompts import Prompts
from rlanything.planning import compose

ROOT = Path(__file__).parents[2]
FAST = "env.engine=fast"
"""The real engine is an extra; the keys are the same."""
PRESETS = [
    ("scale=paper", FAST),
    ("scale=paper", "env=coding_data"),
    ("scale=single-gpu",),
    ("scale=single-gpu", "env=alfworld_data", FAST),
    ("scale=single-gpu", "env=coding_data"),
    ("scale=single-gpu", "env=osworld"),
]
INSTALLED = all(importlib.util.find_spec(name) for name in ("alfworld", "textworld", "fast_downward"))
CHECKED = [
    *(pytest.param(words, id=" ".join(words)) for words in PRESETS),
    *(
        pytest.param(
            words,
            id=" ".join(words),
            marks=[
                pytest.mark.textworld,
                pytest.mark.skipif(
                    not INSTALLED,
                    reason="the real engine is not installed: pip install 'rlanything[alfworld]'",
                ),
            ],
        )
        for words in (("scale=paper",), ("scale=single-gpu", "env=alfworld_data"))
    ),
]
"""The same, and those of ALFWorld as they are."""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Folders where the downloaded sets would be."""
    for split in ("train", "valid_seen", "valid_unseen"):
        (tmp_path / "alfworld" / "json_2.1.1" / split).mkdir(parents=True)
    (tmp_path / "coding").mkdir()
    for name in ("CodeContests_train", "CodeContests", "LiveBench-ReasonFlux", "LiveCodeBench-V2"):
        (tmp_path / "coding" / f"{name}.json").write_text("[]")
    (tmp_path / "test_nogdrive.json").write_text('{"multi_apps": [], "chrome": [], "os": []}')
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "alfworld"))
    monkeypatch.setenv("CODING_DATA", str(tmp_path / "coding"))
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    return tmp_path


SIZES = re.compile(
    r"scale|arms\..*|model\.\w+\.path|env\.(data|problems\..*)|tasks\..*|train\.iterations|evaluate\..*|rollout\.\w+|judge\.m"
    r"|\w+\.max_tokens"
)
"""Keys of counts, lengths and places: what a rehearsal makes small, and where its stand-ins are."""


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted keys with their values."""
    return {
        name: of
        for key, value in data.items()
        for name, of in (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key: value}
        ).items()
    }


@pytest.mark.parametrize("env", ["alfworld_data", "coding_data"])
def test_what_a_rehearsal_changes_besides_sizes_stands_on_its_page_and_in_its_file(env):
    small, whole = (
        flat(compose.compose([f"scale={scale}", f"env={env}"], ROOT)) for scale in ("rehearsal", "paper")
    )
    changed = {key for key in small.keys() | whole.keys() if small.get(key) != whole.get(key)}
    others = {key for key in changed if not SIZES.fullmatch(key)}
    own = {"alfworld_data": "env.engine", "coding_data": "env.rewrite_tests"}[env]
    assert others == {own, "judge.max_invalid", "learn.policy.lr", "learn.reward.lr", "train.accelerator"}
    page = (ROOT / "docs" / "rehearsal.md").read_text()
    head = (ROOT / "experiments" / "scale" / "rehearsal.yaml").read_text().partition("\ndefaults:")[0]
    for key in others:
        assert f"`{key}`" in page, key
        assert key in head, key


@pytest.mark.parametrize(("env", "worded"), [("desktop", set()), ("web", {"model.prompts"})])
def test_a_rehearsal_of_the_gui_experiment_has_its_setting_and_another_world(env, worded):
    """Everything but sizes, places and the environment is that of OSWorld; what is different is named and explained.

    worded: what only says `page` where OSWorld's says `desktop`.
    """
    small, whole = (
        flat(compose.compose([f"scale={scale}", f"env={name}"], ROOT))
        for scale, name in (("rehearsal", env), ("paper", "osworld"))
    )
    changed = {key for key in small.keys() | whole.keys() if small.get(key) != whole.get(key)}
    others = {key for key in changed if not SIZES.fullmatch(key) and not key.startswith("env.")}
    assert others == {"judge.max_invalid", "learn.policy.lr", "learn.reward.lr", "train.accelerator"} | worded
    assert not {key for key in changed if key.startswith("arms.")}, "all arms of the ablation train"
    for key in ("images.policy", "images.reward", "context", "action_format"):
        assert small[f"model.{key}"] == whole[f"model.{key}"], key
    assert (small["model.images.policy"], small["model.images.reward"]) == (3, 2)
    assert (small["adaptation.critic_stages"], small["evaluate.labels"]) == (2, "judge")
    assert (small["rollout.temperature"], small["evaluate.temperature"]) == (1.0, 0.0)
    page = (ROOT / "docs" / "rehearsal.md").read_text()
    for key in ("env.observe", "judge.max_invalid", "train.accelerator"):
        assert f"`{key}`" in page, key


def test_a_rehearsal_can_have_the_real_engine():
    found = compose.compose(["scale=rehearsal", "env=alfworld_data", "env.engine=textworld"], ROOT)
    assert found["env"]["engine"] == "textworld"


@pytest.mark.parametrize("overrides", CHECKED)
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
    trains = {model: {"lr", "lora"} for model in ("policy", "reward")}
    others = {
        "learn": {"micro_batch_tokens": True, "gradient_checkpointing": True, **trains},
        "judge": {"m": True, "max_tokens": True},
    }
    for name, different in others.items():
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.model_dump(exclude=different) == other.model_dump(exclude=different), name
    assert ours.train.iterations < theirs.train.iterations
    assert ours.rollout.tasks < theirs.rollout.tasks


@pytest.mark.parametrize("overrides", [p for p in PRESETS if "scale=single-gpu" in p], ids=" ".join)
def test_one_gpu_has_one_base_with_two_adapters_and_ten_times_the_papers_rates(overrides):
    config = parse(compose.compose(overrides, ROOT))
    paths = {config.model.policy.path, config.model.reward.path, config.model.adapter.path}
    assert paths == {
        "Qwen/Qwen3-VL-4B-Instruct" if "env=osworld" in overrides else "Qwen/Qwen2.5-1.5B-Instruct"
    }
    for model in ("policy", "reward"):
        learns = getattr(config.learn, model)
        assert learns.lora == LoraConfig(rank=16)
        assert learns.lr == pytest.approx(10 * paper_value(f"learn.{model}.lr"))


@pytest.mark.parametrize("env", ["alfworld", "alfworld_data", "coding_data", "desktop"])
@pytest.mark.parametrize("scale", ["local", "paper", "rehearsal", "default"])
def test_all_weights_train_at_every_other_scale(scale, env):
    learn = compose.compose([f"scale={scale}", f"env={env}"], ROOT)["learn"]
    assert (learn["policy"]["lora"], learn["reward"]["lora"]) == (None, None)
    if scale in ("local", "paper"):
        assert (learn["policy"]["lr"], learn["reward"]["lr"]) == (1e-6, 1e-6)


def test_the_preset_for_one_gpu_says_how_all_weights_train_on_it():
    """The words in its file compose to the paper's way."""
    head = (ROOT / "experiments" / "scale" / "single-gpu.yaml").read_text().partition("\ndefaults:")[0]
    words = re.findall(r"learn\.\w+\.\w+=[^\s]*[^\s.]", head)
    assert len(words) == 4
    config = parse(compose.compose(["scale=single-gpu", *words], ROOT))
    assert config.learn.lora == {}
    assert (
        config.learn.policy
        == config.learn.reward
        == parse(compose.compose(["scale=paper"], ROOT)).learn.policy
    )


@pytest.mark.parametrize(
    ("command", "code"), [(["config", "check"], 2), (["plan", "--arm", "full", "--device", "H100"], 0)]
)
def test_without_peft_the_preset_for_one_gpu_says_what_to_install(monkeypatch, capsys, command, code):
    """A check refuses. A plan warns, because it may be for another machine."""
    monkeypatch.setattr(injection.importlib.util, "find_spec", lambda name: None)
    assert main(["--root", str(ROOT), *command, "scale=single-gpu"]) == code
    said = capsys.readouterr().err
    assert (
        "learn.policy.lora: needs peft, which is not installed; install it with `pip install '.[lora]'`"
        in said
    )
    assert main(["--root", str(ROOT), *command, "scale=local"]) == 0
    assert "peft" not in capsys.readouterr().err


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
