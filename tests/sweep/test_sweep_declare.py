"""What a sweep file may say, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from sweep_cases import BAND, LAMBDA, ROOT, declared

from rlanything.core.errors import ConfigError
from rlanything.planning.pipeline import look_up
from rlanything.sweep import command
from rlanything.sweep.declare.check import baseline_values, checked_base
from rlanything.sweep.declare.file import load_sweep, sweep_name
from rlanything.sweep.declare.starts import starts

TESTS = ["env=coding", "judge.writes=tests"]
FILES = sorted((ROOT / "experiments" / "sweep").glob("*.yaml"))


def written(tmp_path: Path, **changes: object) -> Path:
    data = {"space": {"signals.lambda": LAMBDA, "band": BAND}, **changes}
    path = tmp_path / "case.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def point_of(line: str) -> dict[str, str]:
    """The keys of a printed trial with their values: "trial 0 paper: KEY = VALUE, ...; REMARK"."""
    settings = line.partition(": ")[2].partition(";")[0]
    return dict(setting.split(" = ") for setting in settings.split(", "))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_projects_own_sweeps_can_be_run(path, capsys):
    command.print_sweep(path, ROOT)
    said = capsys.readouterr().out
    paper, default = (
        point_of(line) for line in said.splitlines() if line.startswith(("trial 0 ", "trial 1 "))
    )
    assert paper.pop("signals.lambda", "1.0") == "1.0"
    assert default.pop("signals.lambda", "1.0") == "1.0"
    assert paper == default  # the settings of the default are the paper's
    one_at_a_time = path.stem in ("lambda_policy", "lambda_reward")
    assert ("mean of the last 3 evaluations" in said) == one_at_a_time


@pytest.mark.parametrize(
    ("name", "varied", "fixed"),
    [
        ("lambda_policy", "signals.lambda", "signals.reward_lambda"),
        ("lambda_reward", "signals.reward_lambda", "signals.lambda"),
    ],
)
def test_the_papers_lambda_sweeps_vary_one_lambda_and_hold_the_other_at_one(name, varied, fixed):
    sweep = load_sweep(ROOT / "experiments" / "sweep" / f"{name}.yaml")
    base = checked_base(sweep, ROOT)
    found = starts(sweep, baseline_values(sweep, base))
    assert [start.sets for start in found] == [{varied: x} for x in (1.0, 1.0, 0.25, 4.0)]
    assert look_up(base, fixed) == look_up(base, varied) == 1
    assert (sweep.seeds, sweep.last_evaluations) == (4, 3)


def test_the_papers_point_leaves_a_lambda_that_follows_the_other_as_it_is():
    sweep = load_sweep(ROOT / "experiments" / "sweep" / "lambda.yaml")
    base = checked_base(sweep, ROOT)
    assert look_up(base, "signals.reward_lambda") is None
    assert starts(sweep, baseline_values(sweep, base))[0].sets == {"signals.lambda": 1.0}
    own = sweep.model_copy(update={"overrides": (*sweep.overrides, "signals.reward_lambda=4")})
    paper = starts(own, baseline_values(own, checked_base(own, ROOT)))[0]
    assert paper.sets == {"signals.lambda": 1.0, "signals.reward_lambda": 1.0}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sampler": "tpee"}, "sampler = 'tpee': unknown; did you mean 'tpe'?"),
        ({"sead": 1}, "sead: unknown; did you mean 'seed'?"),
        ({"space": {}}, "space: "),
        ({"space": {"signals.lambda": {"low": 0, "high": 1, "log": True}}}, "low = 0 must be above 0"),
        ({"space": {"signals.lambda": {"low": 2, "high": 1}}}, "low = 2 must not exceed high = 1"),
        ({"space": {"signals.lambda": {"low": 1, "hihg": 2}}}, "hihg: unknown; did you mean 'high'?"),
        ({"space": {"judge.m": [1, 1]}}, "a value is listed twice"),
        ({"space": {"band": {**BAND, "width": [0.0, 0.5]}}}, "must be 0.001 or more"),
        ({"space": {"band": {**BAND, "centre": [0.6, 0.4]}}}, "the first must not exceed the second"),
        (
            {"space": {"signals.lambda": 3}},
            "expected a list of values, {low, high} or {between, centre, width}",
        ),
        ({"space": {"judge.m": [None]}}, "space.judge.m.0 = None: expected a number, a word, true or false"),
        ({"space": {"judge.m": {"low": 1, "high": "x"}}}, "space.judge.m.high = 'x': expected a number\n"),
        ({"space": {"judge.m": {"low": 1, "high": 5, "step": 3}}}, "whole steps must lead from 1 to 5"),
        ({"space": {"band": {**BAND, "step": 0.15}}}, "whole steps must lead from 0.4 to 0.6"),
        ({"space": {"band": {**BAND, "width": [0.2, "x"]}}}, "space.band.width.1 = 'x'"),
        ({"space": {"band": {**BAND, "between": ["judge.m", "judge.m"]}}}, "space: 'judge.m' is there twice"),
        ({"space": {"adaptation.alpha_low": [0.1], "band": BAND}}, "'adaptation.alpha_low' is there twice"),
        ({"objectives": ["cost", "cost"]}, "objectives: 'cost' is there twice"),
        ({"arms": ["full", "full"]}, "arms: 'full' is there twice"),
        ({"budget": {}}, "give trials, minutes or both"),
        ({"budget": {"trials": 1}}, "budget.trials = 1"),
        (
            {"sampler": "grid", "budget": {"trials": 20}, "space": {"judge.m": [2, 3]}},
            "budget.trials = 20: sampler grid runs every point of the space once; leave it out",
        ),
        ({"objectives": ["ful.in_domain"]}, "arm 'ful' of 'ful.in_domain': unknown; did you mean 'full'?"),
        ({"objectives": ["in_domain"], "arms": ["policy", "full"]}, "name one, e.g. full.in_domain"),
        ({"objectives": ["in_domain", "cost"], "pruner": "median"}, "needs exactly one objective"),
        ({"last_evaluations": -1}, "last_evaluations = -1"),
        ({"objectives": "cost", "pruner": "median"}, "cost has no curve"),
        ({"sampler": "nsga2", "startup": 1}, "startup = 1: sampler nsga2 needs 2 or more"),
        ({"overrides": ["train.seeds=4"]}, "train.seeds: a sweep sets it by 'seeds'"),
        ({"space": {"train.workers": [1, 2]}}, "a sweep sets it by '--workers'"),
    ],
)
def test_a_bad_file_is_refused_with_the_key_and_what_is_allowed(tmp_path, changes, expected):
    with pytest.raises(ConfigError) as caught:
        load_sweep(written(tmp_path, **changes))
    assert expected in str(caught.value) + "\n"
    assert "case.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"space": {"signals.lamda": LAMBDA}}, "did you mean 'signals.lambda'"),
        ({"space": {"signals.lambda": {"low": -1.0, "high": 1.0}}}, "signals.lambda = -1.0 cannot be run"),
        ({"space": {"band": {**BAND, "centre": [0.3, 0.6]}}}, "cannot be run"),
        ({"space": {"adaptation.alpha_low": {"low": 0.1, "high": 0.9}}}, "must be below alpha_high"),
        (
            {
                "space": {
                    "adaptation.alpha_low": {"low": 0.1, "high": 0.7},
                    "adaptation.alpha_high": {"low": 0.6, "high": 0.9},
                }
            },
            "adaptation.alpha_low = 0.7, adaptation.alpha_high = 0.6 cannot be run",
        ),
        (
            {"space": {"env.engine": ["fast", "fasst"]}},
            "env.engine = fasst cannot be run: env: engine: 'fasst' is not one of fast, textworld",
        ),
        ({"space": {"env": ["alfworld", "alfworld_easy"]}}, "a group of files"),
        ({"space": {"learn.policy": [1]}}, "learn.policy"),
        (
            {"last_evaluations": 5},
            "last_evaluations = 5: the curves have 4 points after the start (train.iterations = 20, evaluate.every",
        ),
        (
            {"last_evaluations": 3, "arms": ["policy"], "objectives": "rm_process"},
            "objectives: 'rm_process' has no curve: policy does not train its reward model",
        ),
        (
            {"space": {"signals.reward_lambda": [0.25, 1.0]}},
            "space: signals.reward_lambda: has no default value to compare with; give one in overrides",
        ),
        (
            {
                "arms": ["policy"],
                "objectives": "rm_process",
                "overrides": ["arms.policy.judge={source: oracle}"],
            },
            "objectives: 'rm_process' is not measured: the judge of policy is the oracle",
        ),
        (
            {"objectives": "ut"},
            "objectives: 'ut' is not measured where judge.writes = votes and the panels are in_domain, out_of_domain, "
            "reward_panel: unknown; known: accepted_tasks, cost, in_domain, out_of_domain, rm_outcome, rm_pairwise, ",
        ),
        (
            {"objectives": ["indomain"]},
            "panels are in_domain, out_of_domain, reward_panel: unknown; did you mean",
        ),
        (
            {
                "objectives": ["full.rm_process"],
                "overrides": ["+tasks.panels.more={split: in_domain, tasks: 4, measures: [reward]}"],
            },
            "did you mean 'rm_process/more'?",
        ),
        (
            {"objectives": ["in_domain", "full.rm_process"], "overrides": TESTS},
            "objectives: 'full.rm_process' is not measured where judge.writes = tests and the panels are in_domain, "
            "out_of_domain, reward_panel: unknown; known: accepted_tasks, cost, detect, in_domain, out_of_domain, ut",
        ),
        (
            {"objectives": "rm_process", "space": {"judge.writes": ["votes", "tests"]}},
            "judge.writes = tests cannot be run: objectives: 'rm_process' is not measured",
        ),
        ({"space": {"model.policy.revision": ["a", "b"]}}, "model.policy.revision: has no default value"),
        ({"arms": ["ful"]}, "arm 'ful': unknown; did you mean 'full'?"),
        ({"overrides": ["scale=smok"]}, "did you mean 'smoke'"),
        ({"sampler": "grid"}, "needs a list of values, or a step"),
        (
            {"space": {"learn.updates": {"low": 1.0, "high": 5}}},
            "space.learn.updates: low = 1.0: it takes whole numbers; write them as such, e.g. 1",
        ),
        (
            {"space": {"judge.m": {"low": 1, "high": 5, "step": 2.0}}},
            "space.judge.m: step = 2.0: it takes whole numbers",
        ),
        (
            {"space": {"band": {"between": ["judge.m", "rollout.tasks"], "centre": [2, 4], "width": [2, 2]}}},
            "judge.m = 1.0: Input should be a valid integer",
        ),
        (
            {"arms": ["step_only"], "overrides": ["+arm@arms.step_only=step_only"]},
            "arms: 'step_only' is judged by the reward model of 'full' (reward_from), which a trial trains "
            "itself: name it before, e.g. arms: [full, step_only]",
        ),
        (
            {
                "arms": ["step_only", "full"],
                "objectives": "step_only.in_domain",
                "overrides": ["+arm@arms.step_only=step_only"],
            },
            "name it before",
        ),
        (
            {"arms": ["outcome"], "space": {"signals.lambda": LAMBDA}},
            "space: signals.lambda: changes nothing in outcome, so every trial would be the same; it changes policy, "
            "policy_reward, full",
        ),
        (
            {"overrides": ["arms.full.adapt=false"], "space": {"adaptation.alpha_high": [0.7, 0.8]}},
            "space: adaptation.alpha_high: changes nothing in full, so every trial would be the same",
        ),
        (
            {"sampler": "gp", "overrides": ["signals.lambda=0.5"], "space": {"judge.m": [2, 3]}},
            "sampler = gp: needs the paper's point",
        ),
    ],
)
def test_an_impossible_space_is_refused_before_any_work(tmp_path, changes, expected):
    path = written(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        command.print_sweep(path, ROOT)
    assert expected in str(caught.value)


def test_a_dry_run_says_in_words_what_is_drawn_and_when_it_ends(tmp_path, capsys):
    space = {
        "judge.m": [2, 3],
        "signals.lambda": {"low": 0.1, "high": 2.0, "log": True},
        "evaluate.temperature": {"low": 0.5, "high": 1.0, "step": 0.25},
        "learn.updates": {"low": 1, "high": 4},
    }
    command.print_sweep(written(tmp_path, space=space, budget={"trials": 20, "minutes": 90}), ROOT)
    said = capsys.readouterr().out
    assert "  judge.m: one of 2, 3\n" in said
    assert "  signals.lambda: 0.1 to 2.0, on a log scale\n" in said
    assert "  evaluate.temperature: 0.5 to 1.0 in steps of 0.25\n" in said
    assert "  learn.updates: 1 to 4, whole numbers\n" in said
    assert "budget 20 trials or 90 minutes" in said
    assert "Distribution" not in said


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "budget the grid, 6 trials, "),
        ({"budget": {"minutes": 90}}, "budget the grid, 6 trials or 90 minutes, "),
    ],
)
def test_the_budget_of_a_grid_is_its_trials(tmp_path, capsys, changes, expected):
    path = written(tmp_path, sampler="grid", space={"judge.m": [2, 4, 5, 6]}, **changes)
    command.print_sweep(path, ROOT)
    said = capsys.readouterr().out
    assert expected in said
    assert said.count("\ntrial ") == 6


def test_a_dry_run_prints_nothing_hidden(tmp_path, capsys):
    hidden = "\x1b]0;x\x07\u202e"
    command.print_sweep(
        written(tmp_path, space={"model.policy.path": ["models/policy", f"models/{hidden}"]}), ROOT
    )
    said = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_an_arm_after_the_one_whose_reward_model_it_takes(tmp_path, capsys):
    arms = {"arms": ["full", "step_only"], "overrides": ["+arm@arms.step_only=step_only"]}
    command.print_sweep(written(tmp_path, objectives="step_only.in_domain", **arms), ROOT)
    assert "arms full, step_only" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arms", "key"),
    [
        ("full", "bootstrap.min_mu"),
        ("full", "tasks.train"),
        ("policy_reward", "learn.reward.lr"),
        ("policy", "arms.policy.adapt"),
    ],
)
def test_a_key_that_changes_a_trial_is_accepted(tmp_path, capsys, arms, key):
    value = {
        "bootstrap.min_mu": 1.05,
        "tasks.train": 3553,
        "learn.reward.lr": 1e-6,
        "arms.policy.adapt": False,
    }[key]
    command.print_sweep(written(tmp_path, arms=arms, space={key: [value]}), ROOT)
    assert key in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {"overrides": ["arms.policy_reward.adapt=true"]},
        {"space": {"adaptation.alpha_high": [0.7, 0.8], "arms.policy_reward.adapt": [False, True]}},
    ],
)
def test_what_an_arm_depends_on_follows_the_switches_that_the_sweep_gives_it(tmp_path, capsys, changes):
    space = {"adaptation.alpha_high": [0.7, 0.8]}
    command.print_sweep(written(tmp_path, **{"arms": "policy_reward", "space": space, **changes}), ROOT)
    assert "  adaptation.alpha_high: " in capsys.readouterr().out


def test_a_sweep_of_written_tests_has_objectives_of_its_own(tmp_path, capsys):
    command.print_sweep(written(tmp_path, objectives=["in_domain", "ut", "detect"], overrides=TESTS), ROOT)
    assert "objectives in_domain, ut, detect" in capsys.readouterr().out
    assert (
        load_sweep(written(tmp_path, objectives="ut", pruner="median", overrides=TESTS)).pruner.kind
        == "median"
    )


def test_a_file_that_is_not_there_or_not_yaml(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(
        ConfigError, match=r"no such file; experiments/sweep/ has .*lambda\.yaml, .*thresholds\.yaml"
    ):
        load_sweep(tmp_path / "nothing.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no such file; examples are in experiments/sweep/"):
        load_sweep(tmp_path / "nothing.yaml")
    (tmp_path / "broken.yaml").write_text("space: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_sweep(tmp_path / "broken.yaml")
    (tmp_path / "twice.yaml").write_text("space:\n  judge.m: [1]\n  judge.m: [3]\n")
    with pytest.raises(ConfigError, match=r"'judge.m' stands there twice\s.*line 2"):
        load_sweep(tmp_path / "twice.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(ConfigError, match="expected a mapping"):
        load_sweep(tmp_path / "list.yaml")


def test_a_name_that_cannot_name_a_folder():
    assert sweep_name(Path("experiments/sweep/thresholds.yaml")) == "thresholds"
    with pytest.raises(ConfigError, match="named by its file"):
        sweep_name(Path("../My Sweep.yaml"))


def test_short_forms_mean_the_long_ones():
    short = declared(objectives="cost", space={"judge.m": [1, 3]})
    long = declared(objectives=["cost"], space={"judge.m": {"choices": [1, 3]}})
    assert short == long


def test_without_plotly_the_work_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    options = command.Options(folder=tmp_path / "sweeps")
    with pytest.raises(ConfigError, match=r"plotly is not installed.*rlanything\[sweep\]"):
        command.run_sweep(FILES[0], ROOT, ROOT / "params.yaml", options)
    assert not (tmp_path / "sweeps").exists()


def test_published_results_that_are_a_link_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: name)
    place = tmp_path / "sweeps" / FILES[0].stem
    place.parent.mkdir()
    place.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=f"{FILES[0].stem}: a link to {tmp_path}"):
        command.run_sweep(FILES[0], tmp_path, tmp_path / "params.yaml", command.Options())
    assert place.is_symlink()
