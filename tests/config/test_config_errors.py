"""Bad configurations: refused before any work, with the key, its value, what is allowed and the nearest name."""

import copy
import datetime
import math
import os
import re
from typing import Any

import pytest
from config_cases import PARAMS, ROOT, changed, problem
from hypothesis import given
from hypothesis import strategies as st

from rlanything.config import load, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check


def test_the_committed_file_is_valid():
    assert parse(PARAMS) == load(ROOT / "params.yaml")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"signals__lamda": 1.0}, "signals.lamda: unknown; did you mean 'lambda'?"),
        ({"adaption": {}}, "adaption: unknown; did you mean 'adaptation'?"),
        ({"learn__policy__learning_rate": 1}, "learn.policy.learning_rate: unknown"),
        (
            {"arms__full__train_rewards": True},
            "arms.full.train_rewards: unknown; did you mean 'train_reward'?",
        ),
        ({"model__embedded__layer": 2}, "model.embedded.layer: unknown; did you mean 'layers'?"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_name(values, expected):
    assert expected in problem(**values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"judge__m": 0}, "judge.m = 0"),
        ({"judge__m": 2.5}, "judge.m = 2.5"),
        ({"rollout__rollouts": 1}, "rollout.rollouts = 1"),
        ({"rollout__temperature": 0}, "rollout.temperature = 0"),
        ({"evaluate__temperature": -0.1}, "evaluate.temperature = -0.1"),
        ({"rollout__tasks": "many"}, "rollout.tasks = 'many'"),
        (
            {"rollout__decoding": "greedy"},
            "rollout.decoding = 'greedy': Input should be 'free' or 'constrained'",
        ),
        ({"signals__lambda": -0.5}, "signals.lambda = -0.5"),
        ({"signals__lambda": math.nan}, "signals.lambda = nan"),
        ({"learn__policy__lr": math.inf}, "learn.policy.lr = inf"),
        ({"signals__reward_max": 1.5}, "signals.reward_max = 1.5"),
        ({"learn__policy__betas": [0.9]}, "learn.policy.betas"),
        ({"learn__policy__betas": [0.9, 1.0]}, "learn.policy.betas.1 = 1.0"),
        ({"learn__epsilon": None}, "learn.epsilon = null"),
        ({"train__seeds": -1}, "train.seeds = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"signals": []}, "signals = []"),
        ({"env": {}}, "env._target_ is missing"),
        (
            {"judge__writes": "tests", "model__action_format": "boxed_index"},
            "model.action_format = 'boxed_index': with judge.writes = tests the reply is the answer",
        ),
        ({"engine__max_batch": 0}, "engine.max_batch = 0: must be a whole number of at least 1"),
        ({"engine__max_batch": "all"}, "engine.max_batch = 'all'"),
        ({"engine__max_batch": True}, "engine.max_batch = True"),
        ({"rollout__tasks": True}, "rollout.tasks = True: Input should be a valid integer"),
        ({"rollout__tasks": "16"}, "rollout.tasks = '16': Input should be a valid integer"),
        ({"rollout__tasks": 16.0}, "rollout.tasks = 16.0: Input should be a valid integer"),
        ({"rollout__temperature": True}, "rollout.temperature = True: Input should be a valid number"),
        ({"learn__policy__betas": [True, 0.9]}, "learn.policy.betas.0 = True"),
        ({"learn__policy__lr": "1e-6"}, "Input should be a valid number; in YAML it is written 1.0e-6"),
        ({"arms__full__adapt": 1}, "arms.full.adapt = 1: Input should be a valid boolean"),
        ({"arms__full__adapt": "yes"}, "arms.full.adapt = 'yes': Input should be a valid boolean"),
        ({"model__policy__path": 5}, "model.policy.path = 5: Input should be a valid string"),
        ({"model__policy__allow_pickle": 1}, "model.policy.allow_pickle = 1"),
        ({"env": {"_target_": "x.Y", 5: 6}}, "env.5"),
        ({"seed": 16**5000}, "seed = a number of 20001 bits"),
        ({"model__policy__path": [16**5000]}, "model.policy.path = [a number of 20001 bits]"),
        ({"model__embedded__hidden": 10**400}, "model.embedded.hidden = a number of 1329 bits"),
        ({"env__timeout": 10**400}, "env.timeout = a number of 1329 bits: must be at most rollout.timeout_s"),
        (
            {"model__embedded__heads": 5},
            "heads = 5: hidden = 96 must be a multiple of twice as many, because a head has an even size (e.g. "
            "hidden = 100)",
        ),
        ({"model__embedded__kv_heads": 2}, "kv_heads = 2: must divide heads = 3"),
        (
            {"learn__gradient_checkpointing": "polcy"},
            "learn.gradient_checkpointing = 'polcy': Input should be True, False, 'policy' or 'reward'",
        ),
        ({"model__embedded__vocab": 429}, "model.embedded.vocab = 429"),
        ({"model__embedded__positions": 10**9}, "model.embedded.positions = 1000000000"),
        (
            {"rollout__max_tokens": 4096},
            "rollout.max_tokens = 4096: must be below model.embedded.positions = 4096",
        ),
        ({"engine__context": 16}, "rollout.max_tokens = 16: must be below engine.context = 16"),
        (
            {"learn__importance": "recomputed", "learn__importance_mask": [1.5, 5.0]},
            "importance_mask = [1.5, 5]: a number below 1 and one above 1 are needed",
        ),
        (
            {"learn__importance": "recomputed", "learn__importance_mask": [0.2, 0.9]},
            "importance_mask = [0.2, 0.9]: a number below 1 and one above 1 are needed",
        ),
        (
            {"learn__importance_mask": [0.5, 5.0]},
            "importance_mask = [0.5, 5]: there are ratios only with importance = recomputed, and it is recorded",
        ),
    ],
)
def test_wrong_types_and_ranges_are_refused_with_key_and_value(values, expected):
    assert expected in problem(**values)


STRANGE = (math.nan, -math.inf, b"text", datetime.date(2026, 1, 2), {1: 2}, {3}, 16**5000)
"""What YAML can write, and JSON cannot hold as it is."""


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_arguments_of_a_class_are_what_json_holds(value):
    stop = {"_target_": "lightning.pytorch.callbacks.EarlyStopping", "monitor": "x", "min_delta": value}
    for place in ("callbacks", "loggers"):
        message = problem(**{f"train__{place}": {"stop": stop}})
        assert f"train.{place}.stop: min_delta = " in message
        assert "must be a text, a finite number, true, false or null, or a list or mapping of them" in message
    assert "engine: deep.1.x = " in problem(engine__deep=[0, {"x": value}])
    assert "env: deep.1.x = " in problem(env__deep=[0, {"x": value}])
    assert parse(changed(engine__deep=[0, {"x": [], "y": {}, "z": [None, "b", 1.5]}])).engine["deep"]


def test_a_panel_may_be_measured_greedily():
    assert parse(changed(evaluate__temperature=0)).evaluate.temperature == 0.0


@pytest.mark.parametrize(("low", "high"), [(0.8, 0.2), (0.5, 0.5)])
def test_alpha_low_must_be_below_alpha_high(low, high):
    message = problem(adaptation__alpha_low=low, adaptation__alpha_high=high)
    assert f"adaptation: alpha_low = {low} must be below alpha_high = {high}" in message


@pytest.mark.parametrize("name", ["policy", "reward"])
def test_data_filters_must_be_ordered(name):
    message = problem(**{f"signals__{name}_min": 0.9, f"signals__{name}_max": 0.1})
    assert f"{name}_min = 0.9 must be at most {name}_max = 0.1" in message


def test_every_problem_is_listed_at_once():
    message = problem(judge__m=0, signals__lamda=1, rollout__temperature=-1)
    lines = message.splitlines()
    assert lines[0] == "the configuration is not valid:"
    assert {line.split()[0].rstrip(":") for line in lines[1:]} == {
        "judge.m",
        "signals.lamda",
        "rollout.temperature",
    }


@pytest.mark.parametrize(
    "name", sorted(set(PARAMS) - {"endpoints", "executor"})
)  # runs without them are stored
def test_a_missing_section_is_named(name):
    data = copy.deepcopy(PARAMS)
    del data[name]
    with pytest.raises(ConfigError, match=rf"\b{name}: missing"):
        parse(data)


def test_a_message_stays_short_however_long_the_value():
    assert len(problem(seed="x" * 10**6)) < 500
    assert len(problem(seed=[["x" * 99] * 99] * 99)) < 1500


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"model__embedded__hidden": 6 * 10**8}, "hidden, intermediate, layers or vocab smaller"),
        ({"model__embedded__layers": 10**9}, "model.embedded: models of"),
        ({"model__embedded__vocab": 10**12}, "GB to train, 2 at once"),
        (
            {"train__accelerator": "cuda"},
            "train.accelerator = 'cuda': rlanything.engines.native.NativeEngine",
        ),
    ],
)
def test_what_this_machine_cannot_hold_or_do_is_refused_before_any_work(values, expected):
    with pytest.raises(ConfigError, match=re.escape(expected)):
        check.check(parse(changed(**values)), ROOT)


def test_the_memory_that_is_asked_for_is_what_the_weights_and_their_training_take():
    config = parse(PARAMS)
    needed = (
        2 * 4 * config.model.embedded.parameters * (2 * 4 + 1)
    )  # two seeds at once; two models that learn
    check.memory(config, needed)
    with pytest.raises(ConfigError, match=r"model\.embedded"):
        check.memory(config, needed - 1)


def test_an_iteration_cannot_take_more_tasks_than_there_are():
    assert "rollout.tasks = 99: must not exceed tasks.train = 8" in problem(rollout__tasks=99, tasks__train=8)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("seed: [", "not valid YAML"),
        ("- 1\n- 2\n", "expected a mapping of sections, found list"),
        ("", "expected a mapping of sections, found NoneType"),
        ("seed: 1".encode("utf-16"), "byte 0 is not UTF-8"),
        ("seed: 0\nscale: x\nseed: 1\n", "'seed' stands there twice"),
    ],
)
def test_a_broken_file_is_named(tmp_path, content, expected):
    path = tmp_path / "params.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=expected) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_pipe_is_no_configuration(tmp_path):
    os.mkfifo(tmp_path / "params.yaml")
    with pytest.raises(ConfigError, match=r"params\.yaml: no regular file"):
        load(tmp_path / "params.yaml")


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(ConfigError, match="rlanything config write"):
        load(tmp_path / "params.yaml")


def leaves(data: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(data, dict) and data:
        return [leaf for key, value in data.items() for leaf in leaves(value, (*path, key))]
    return [path]


@given(
    st.sampled_from([leaf for leaf in leaves(PARAMS) if leaf[0] not in ("env", "engine")]),
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers())
    ),
)
def test_any_value_anywhere_is_either_taken_or_refused_by_name(leaf, value):
    data = changed(**{"__".join(leaf): value})
    refused = ""
    try:
        parse(data)
    except ConfigError as error:
        refused = str(error)
    assert not refused or leaf[0] in refused
