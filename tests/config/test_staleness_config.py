"""What `train.staleness` does not go with is refused before any work, with what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check, compose
from rlanything.runs.fingerprint import run_config

ROOT = Path(__file__).parents[2]
AHEAD = ("train.staleness=1", "executor=processes")


def composed(*overrides: str) -> Config:
    return parse(compose.compose(["scale=smoke", *overrides], ROOT))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["train.staleness=2"], r"train: staleness = 2: must be 0 .* or 1 "),
        (["train.staleness=-1"], r"train\.staleness = -1: .*greater than or equal to 0"),
        (["train.staleness=true"], r"train\.staleness = True: .*integer"),
        ([*AHEAD, "train.devices=2"], r"staleness = 1: needs devices = 1 and nodes = 1, not 2 and 1"),
        ([*AHEAD, "train.nodes=2"], r"staleness = 1: needs devices = 1 and nodes = 1, not 1 and 2"),
        ([*AHEAD, "engine=transformers"], r"TransformersEngine .*engine=native or engine=vllm_servers"),
        ([*AHEAD, "engine=vllm"], r"VllmEngine .*engine=native or engine=vllm_servers"),
        (["train.staleness=1"], r"executor=inline, .*Allowed: executor=processes or executor=ray"),
        (["+train.stalenes=1"], r"train\.stalenes: unknown; did you mean 'staleness'"),
    ],
)
def test_what_it_does_not_go_with_is_refused(overrides, words):
    with pytest.raises(ConfigError, match=words):
        check.check(composed(*overrides), ROOT)


@pytest.mark.parametrize("arguments", [AHEAD, ("train.staleness=0",), ()])
def test_what_it_goes_with_is_allowed(arguments):
    check.check(composed(*arguments), ROOT)


def test_one_process_does_without_workers_and_names_the_same_run():
    config = composed(*AHEAD)
    alone = parse(config.in_one_process().model_dump(by_alias=True))
    assert (alone.train.staleness, alone.executor.form) == (1, "inline")
    assert run_config(alone, "full") == run_config(config, "full")
    assert run_config(composed(), "full") != run_config(config, "full")
