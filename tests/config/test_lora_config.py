"""LoRA in the configuration: what it is by default, and what is refused before any work."""

from __future__ import annotations

import importlib.util

import pytest
from test_config_errors import PARAMS, ROOT, changed, problem

from rlanything.config import MATRICES, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check


def test_all_weights_train_unless_it_is_said_otherwise():
    assert parse(PARAMS).learn.lora == {}
    config = parse(changed(learn__reward__lora={}))
    assert list(config.learn.lora) == ["reward"]
    lora = config.learn.lora["reward"]
    assert (lora.rank, lora.alpha, lora.targets) == (16, 32.0, MATRICES)


@pytest.mark.parametrize(
    ("lora", "expected"),
    [
        (
            {"targets": ["q_prj"]},
            "learn.policy.lora: targets = q_prj: unknown; did you mean 'q_proj'? known: ",
        ),
        ({"targets": []}, "learn.policy.lora: targets = []: nothing would train; name some of q_proj, "),
        ({"targets": ["q_proj", "q_proj"]}, "learn.policy.lora: targets = q_proj: it is listed twice"),
        ({"rank": 0}, "learn.policy.lora.rank = 0: Input should be greater than 0"),
        ({"alpha": -1.0}, "learn.policy.lora.alpha = -1.0: Input should be greater than 0"),
        ({"dropout": 0.1}, "learn.policy.lora.dropout: unknown; known: alpha, rank, targets"),
        ({"ranks": 4}, "learn.policy.lora.ranks: unknown; did you mean 'rank'?"),
        (
            {"rank": 33},
            "learn.policy.lora.rank = 33: must be at most 32, the smaller side of the smallest of its targets",
        ),
    ],
)
def test_values_that_cannot_be_are_refused(lora, expected):
    assert expected in problem(learn__policy__lora=lora)


def test_a_rank_may_be_as_large_as_the_targets_allow():
    wide = {"rank": 96, "targets": ["q_proj", "down_proj"]}
    assert parse(changed(learn__policy__lora=wide)).learn.lora["policy"].rank == 96


def test_it_goes_with_divided_weights_and_with_pictures():
    assert parse(changed(learn__policy__lora={}, train__strategy="fsdp", train__offload=True)).learn.lora
    shown = {
        "model__embedded": None,
        "model__context": "history",
        "model__images": {"policy": 3, "reward": 2},
        "engine": {"_target_": "rlanything.engines.transformers.TransformersEngine", "max_batch": 4},
    }
    assert [*parse(changed(learn__policy__lora={}, learn__reward__lora={}, **shown)).learn.lora] == [
        "policy",
        "reward",
    ]


def test_a_matrix_of_a_vision_tower_is_no_target():
    """The target `qkv` is in the towers of Qwen2.5-VL and Qwen3-VL alone."""
    assert "learn.policy.lora: targets = qkv: unknown" in problem(learn__policy__lora={"targets": ["qkv"]})


def test_only_divided_weights_are_kept_in_the_hosts_memory():
    assert "offload = True: needs strategy = fsdp, not ddp" in problem(
        train__strategy="ddp", train__offload=True
    )
    assert "exchange = last: needs strategy = fsdp, not ddp, which exchanges" in problem(
        train__strategy="ddp", train__exchange="last"
    )
    assert "train.ofload: unknown; did you mean 'offload'" in problem(train__ofload=True)


def test_a_missing_peft_is_named_before_any_work(monkeypatch):
    config = parse(changed(learn__policy__lora={}))
    found = importlib.util.find_spec  # other packages ask it too, and keep the answer
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "peft" else found(name, *rest)
    )
    with pytest.raises(ConfigError, match=r"learn.policy.lora: needs peft, .* `pip install '.\[lora\]'`"):
        check.check(config, ROOT)
