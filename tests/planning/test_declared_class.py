"""What a class of the project takes, read from its source, is what the imported class takes."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from rlanything import targets
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine
from rlanything.planning import check, compose
from rlanything.planning.declared_class import declared_class

ROOT = Path(__file__).parents[2]
ENGINES = [
    "rlanything.engines.native.NativeEngine",
    "rlanything.engines.transformers.TransformersEngine",
    "rlanything.engines.vllm.engine.VllmEngine",
    "rlanything.engines.vllm.served.engine.VllmServers",
]


@pytest.mark.parametrize("target", ENGINES)
def test_it_is_as_the_imported_class(target):
    found = declared_class(target, Engine)
    real = targets.named_class({"_target_": target}, "engine", Engine)
    assert [(p.name, p.kind) for p in inspect.signature(found).parameters.values()] == [
        (p.name, p.kind) for p in inspect.signature(real).parameters.values()
    ]
    assert found.__module__ == real.__module__


@pytest.mark.parametrize(
    "target",
    [
        "rlanything.engines.native.Nothing",
        "rlanything.nowhere.X",
        "json.JSONDecoder",
        "rlanything.core.types.Task",
        "x",
    ],
)
def test_what_the_source_does_not_say_is_left_to_the_import(target):
    assert declared_class(target, Engine) is None


def test_every_engine_of_experiments_is_read_without_its_import():
    for engine in compose.options(ROOT)["engine"]:
        if engine != "openai":  # for endpoints; no engine of the section `engine`
            target = compose.compose([f"engine={engine}"], ROOT)["engine"]["_target_"]
            assert declared_class(target, Engine) is not None


def test_unknown_arguments_are_refused_as_before():
    config = parse(compose.compose(["+engine.max_bach=3"], ROOT))
    with pytest.raises(ConfigError, match=r"engine\.max_bach: unknown; did you mean 'max_batch'"):
        check.arguments(config.engine, "engine", Engine)
    with pytest.raises(ConfigError, match="Nothing"):
        check.arguments({"_target_": "rlanything.engines.native.Nothing"}, "engine", Engine)
