"""Composition: params.yaml is what the Hydra groups say, and every option of every group can be run."""

import re
from pathlib import Path

import pytest
import yaml

from rlanything.config import ArmConfig, parse
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine, TaskFamily
from rlanything.loop.prompts import Prompts
from rlanything.planning import check, compose

ROOT = Path(__file__).parents[2]
GROUPS = compose.options(ROOT)
ELSEWHERE = [("engine", "openai")]
"""An option that has a place of its own: engine@endpoints.adapter=openai (tests/config/test_endpoint_config.py)."""
CHOICES = [(group, option) for group, options in GROUPS.items() if group != "arm" for option in options]
CHOICES = [choice for choice in CHOICES if choice not in ELSEWHERE]
WITH = {"osworld": ["scale=paper"]}
"""Options that need another one: a virtual machine may take longer than an episode of the default scale."""
SETTINGS = sorted(path.stem for path in (ROOT / "experiments" / "setting").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _composed_anew(composed_once, monkeypatch):
    for name, real in composed_once.items():
        monkeypatch.setattr(compose, name, real)


def test_the_committed_file_equals_the_composition():
    assert (ROOT / "params.yaml").read_text() == compose.text(compose.compose((), ROOT)), (
        "params.yaml is not what experiments/ composes to; write it with `rlanything config write`"
    )


def test_the_groups_are_the_documented_ones():
    assert set(GROUPS) == {"arm", "engine", "env", "executor", "logger", "model", "scale"}
    assert GROUPS["scale"] == ["default", "local", "paper", "rehearsal", "single-gpu", "smoke", "study"]


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_composes_and_validates(group, option):
    config = parse(compose.compose([f"{group}={option}", *WITH.get(option, [])], ROOT))
    check.arguments(config.env, "env", TaskFamily)
    check.arguments(config.engine, "engine", Engine)
    model = config.model
    Prompts.load(ROOT / model.prompts, model.action_format, model.verdict_format, model.context)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_composes_and_validates_under_the_names_of_its_environment_and_scale(name):
    env, _, scale = name.partition("-")
    config = parse(compose.compose([f"env={env}", f"scale={scale}"], ROOT))
    check.arguments(config.env, "env", TaskFamily)
    model = config.model
    Prompts.load(ROOT / model.prompts, model.action_format, model.verdict_format, model.context)
    programs = env.startswith("coding")
    assert (config.scale, config.judge.writes) == (scale, "tests" if programs else "votes")
    assert (config.rollout.max_steps == 1) is programs


@pytest.mark.parametrize("scale", ["default", "study"])
def test_the_downloaded_set_is_asked_for_no_more_games_than_it_has(scale):
    """3,553, 140 and 134 (envs/alfworld/README.md); the generated games have no such end.

    The base models and the cooled base have games of the training split that no arm trains on.
    """
    config = parse(compose.compose(["env=alfworld_data", f"scale={scale}"], ROOT))
    tasks, taught, cooling = config.tasks, config.bootstrap, config.evaluate.cooling
    assert (tasks.drawn["in_domain"], tasks.drawn["out_of_domain"]) == (140, 134)
    practice = max(taught.policy.episodes, taught.reward.episodes, taught.adapter.episodes)
    assert tasks.train + practice + cooling.tasks <= 3553
    assert config.env["engine"] == "fast"


@pytest.mark.parametrize("env", ["alfworld_data", "alfworld"])
def test_in_the_paper_s_experiment_the_adapter_changes_two_types_and_a_model_is_the_critic(env):
    config = parse(compose.compose([f"env={env}", "scale=paper"], ROOT))
    adaptation = config.adaptation
    assert config.env["edit"] == "tokens"
    assert (adaptation.critic, adaptation.marked, adaptation.critic_stages) == ("model", "all", 1)
    assert parse(compose.compose([], ROOT)).env["edit"] == "scene"


def test_null_removes_a_judge_but_not_the_one_that_is_needed():
    words = ["scale=paper", "env=osworld"]
    (judge,) = parse(compose.compose(words, ROOT)).evaluate.judges
    more = [*words, "+evaluate.judges.other.path=Qwen/Qwen3-8B", f"evaluate.judges.{judge}=null"]
    assert [*parse(compose.compose(more, ROOT)).evaluate.judges] == ["other"]
    with pytest.raises(ConfigError, match="labels = 'judge': judges is empty; declare one"):
        parse(compose.compose([*words, f"evaluate.judges.{judge}=null"], ROOT))


def test_a_setting_is_not_chosen_but_follows_from_its_names():
    with pytest.raises(ConfigError, match="override 'setting=coding-smoke': unknown"):
        compose.compose(["setting=coding-smoke"], ROOT)
    assert parse(compose.compose(["env=coding", "judge.m=5"], ROOT)).judge.m == 5
    assert parse(compose.compose(["scale=smoke"], ROOT)).judge.writes == "votes"


@pytest.mark.parametrize("option", GROUPS["arm"])
def test_every_arm_composes_and_validates(option):
    config = parse(compose.compose([f"+arm@arms.another={option}"], ROOT))
    assert isinstance(config.arm("another"), ArmConfig)


def test_the_arms_are_the_rows_of_the_ablation():
    arms = parse(compose.compose((), ROOT)).arms
    switches = {
        name: (arm.outcome, arm.step_votes, arm.train_reward, arm.adapt) for name, arm in arms.items()
    }
    assert switches == {
        "outcome": (True, False, False, False),
        "policy": (True, True, False, False),
        "policy_reward": (True, True, True, False),
        "full": (True, True, True, True),
    }


def test_groups_on_the_command_line_win_over_a_scale():
    config = parse(
        compose.compose(
            ["scale=paper", "model=embedded", "engine=native", "adaptation.max_tokens=4000"], ROOT
        )
    )
    assert config.model.embedded is not None
    assert config.train.iterations == 200


@pytest.mark.parametrize("scale", GROUPS["scale"])
def test_no_value_is_left_to_a_default_of_the_code(scale):
    data = compose.compose([f"scale={scale}"], ROOT)
    whole = parse(data).model_dump(mode="json", by_alias=True)
    others = {key for key in keys(whole) - keys(data) if not key.startswith("executor.")}
    assert others == set()  # `inline` starts nothing, so it has none of the keys of workers


def keys(data: dict, prefix: str = "") -> set[str]:
    found = set()
    for key, value in data.items():
        found.add(prefix + key)
        if isinstance(value, dict) and value:
            found |= keys(value, f"{prefix}{key}.")
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").rglob("*.yaml")), ids=lambda p: p.name)
def test_every_file_opens_with_what_it_is_and_every_key_is_explained(path):
    lines = path.read_text().splitlines()
    assert any(line.startswith("#") and "@package" not in line for line in lines[:2])
    root = (ROOT / "experiments" / "config.yaml").read_text().splitlines()
    assert sorted(keys_of(lines) - explained(lines) - explained(root) - {"defaults"}) == []


def keys_of(lines: list[str]) -> set[str]:
    return {match[1] for line in lines if (match := re.match(r" *(\w+):", line))}


def explained(lines: list[str]) -> set[str]:
    """Keys with a comment on their line, on the line of their section, or in the line above."""
    found, section = set(), ""
    for above, line in zip(["", *lines], lines, strict=False):
        section = section if line.startswith(" ") else line
        if above.startswith("#") or "#" in line + section:
            found |= keys_of([line])
    return found


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "scale=smok",
            "scale = 'smok': unknown; did you mean 'smoke'? known: default, local, paper, rehearsal, single-gpu, "
            "smoke, study",
        ),
        ("arm@arms.full=ful", "arm@arms.full = 'ful': unknown; did you mean 'full'?"),
        ("signals.lamda=1", "unknown; did you mean 'signals.lambda'?"),
        ("lambda=1", "unknown; did you mean 'signals.lambda'?"),
        (
            "arms.ful.advantage=mixed",
            "'arms.ful.advantage=mixed': unknown; did you mean 'arms.full.advantage'?",
        ),
        ("lern.polcy.lr=1", "unknown; did you mean 'learn.policy.lr'?"),
        ("zzz.yyy=1", "unknown; known: adaptation, arms, bootstrap, endpoints, engine, env, evaluate, "),
        ("judge.zzz.yyy=1", "known: judge.accuracy, judge.m, judge.max_invalid, "),
        ("modle=embedded", "unknown; did you mean 'model'?"),
        ("signals.lambda", "expected key=value, e.g. signals.lambda=0.5"),
        ("policy", "expected key=value, e.g. signals.lambda=0.5; an arm is chosen with --arm policy"),
        (
            "arm=full",
            "an experiment has several arms; a command takes one with --arm full, and +arm@arms.full=",
        ),
        ("arm=ful", "arm = 'ful': unknown; did you mean 'full'?"),
        ("rollout.tasks=[1", "expected key=value"),
        ("scale=smoke,default", "'scale=smoke,default': several values, and one is expected"),
        ("signals.lambda=1,2", "a list is written key=[a,b], and `rlanything sweep` tries many values"),
        ("+train.loggers.mine.title={arm}-{seed}", """own: '+train.loggers.mine.title="{arm}-{seed}"'"""),
        ("model.prompts='x\nseed: 5'", r"override 'model.prompts='x\nseed: 5'': has a line break or another"),
        ("model.prompts='x\u2028'", "has a line break or another character that cannot be seen"),
        ("seed=1,2", "several values, and one is expected"),
        pytest.param("seed=" + "9" * 5000, "Exceeds the limit (4300 digits)", id="too many digits"),
    ],
)
def test_a_bad_override_is_refused_with_the_nearest_name(override, expected):
    with pytest.raises(ConfigError) as caught:
        compose.compose([override], ROOT)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("override", ["zzz.yyy=1", "judge.zzz.yyy=1"])
def test_of_an_unknown_section_no_keys_of_others_are_listed(override):
    with pytest.raises(ConfigError) as caught:
        compose.compose([override], ROOT)
    assert "learn.policy.lr" not in str(caught.value)


def test_a_folder_without_experiments_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        compose.compose((), tmp_path)


def test_writing_names_its_command_and_can_be_read_back(tmp_path):
    path = tmp_path / "params.yaml"
    written = compose.write(path, ["scale=smoke", "signals.lambda=0.25"], ROOT)
    assert "rlanything config write scale=smoke signals.lambda=0.25\n" in path.read_text()
    assert parse(yaml.safe_load(path.read_text())) == written
    assert (written.scale, written.signals.lambda_) == ("smoke", 0.25)


@pytest.mark.parametrize(
    "override",
    [
        "judge.m=0",
        "learn.reward.betas=[0.9, 1.0]",
        "+env.recptacles=3",
        "env.receptacles=[9, 3]",
        "model.prompts=nowhere",
        "model.prompts=/tmp",
        "model.prompts=..",
    ],
)
def test_what_cannot_run_is_not_written(tmp_path, override):
    path = tmp_path / "params.yaml"
    path.write_text("as it was")
    with pytest.raises(ConfigError):
        compose.write(path, [override], ROOT)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("+env.recptacles=3", "env.recptacles: unknown; did you mean 'receptacles'?"),
        ("env.engine=textworlds", "did you mean textworld"),
        (
            "env._target_=envs.alfworld.family.AlfwordFamily",
            "env._target_ = 'envs.alfworld.family.AlfwordFamily'",
        ),
        ("+engine.max_btch=3", "engine.max_btch: unknown; did you mean 'max_batch'?"),
        (
            "engine._target_=rlanything.engines.none.Engine",
            "engine._target_ = 'rlanything.engines.none.Engine'",
        ),
    ],
)
def test_constructor_arguments_are_checked_before_any_work(override, expected):
    config = parse(compose.compose([override], ROOT))
    with pytest.raises(ConfigError) as caught:
        check.check(config, ROOT)
    assert expected in str(caught.value)


def test_a_key_spelled_like_one_of_its_section_comes_before_the_same_word_elsewhere():
    with pytest.raises(ConfigError, match=r"'train.seed=3': unknown; did you mean 'train.seeds'\?"):
        compose.compose(["train.seed=3"], ROOT)
