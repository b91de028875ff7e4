"""A stranger's configuration runs nothing: names are judged before they are imported, and before they are made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from stage_cases import ROOT

from rlanything import cli
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine, TaskFamily
from rlanything.planning import check, compose
from rlanything.targets import instantiate, named_class

IMPORTED, MADE = "imported", "made"
CANARY = """
from pathlib import Path
from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger

HERE = Path(__file__).parent
(HERE / "imported").touch()


class Made:
    name = "canary"

    def __init__(self, *args, **kwargs):
        (HERE / "made").touch()


class Family(Made):
    splits = make = environment = validate = describe = parse = None


class Engine(Made):
    generate = release = sync = close = None


class Tracker(Made, CSVLogger):
    pass


class Caller(Made, Callback):
    pass
"""
PLACES = {"env": "Family", "engine": "Engine", "train.loggers.x": "Tracker", "train.callbacks.x": "Caller"}


@pytest.fixture
def canary(tmp_path, monkeypatch) -> Path:
    """The folder of a module that leaves a file when it is imported, and another when a class of it is called."""
    (tmp_path / "canary.py").write_text(CANARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "canary", raising=False)  # other tests have a module of this name
    yield tmp_path
    sys.modules.pop("canary", None)


def with_target(place: str, target: object, **arguments: object) -> dict:
    data = compose.compose(["scale=smoke"], ROOT)
    section = data
    *parents, last = place.split(".")
    for parent in parents:
        section = section[parent]
    section[last] = {"_target_": target, **arguments}
    return data


def left(folder: Path) -> set[str]:
    return {name for name in (IMPORTED, MADE) if (folder / name).exists()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", [("config", "check"), ("train", "--arm", "full", "--dry-run"), ("plan",)])
def test_commands_that_check_import_nothing_that_was_not_allowed(place, command, canary, capsys):
    params = canary / "params.yaml"
    params.write_text(yaml.safe_dump(with_target(place, f"canary.{PLACES[place]}")))
    assert cli.main(["--root", str(ROOT), "--params", str(params), *command]) == 2
    said = capsys.readouterr().err
    assert f"{place}._target_ = 'canary.{PLACES[place]}': not imported" in said
    assert "RLANYTHING_ALLOW=canary" in said
    assert left(canary) == set()


@pytest.mark.parametrize("place", PLACES)
def test_a_check_makes_nothing_of_an_allowed_package_either(place, canary, monkeypatch):
    monkeypatch.setenv("RLANYTHING_ALLOW", "other, canary")
    check.check(parse(with_target(place, f"canary.{PLACES[place]}")), ROOT)
    assert left(canary) == {IMPORTED}


@pytest.mark.parametrize(
    "target",
    [
        "subprocess.Popen",
        "builtins.eval",
        "rlanything.__main__.main",
        "envs/../canary.Family",
        ".canary.Family",
        "envsy.family.Family",
        "",
        7,
        {"_target_": "canary.Family"},
    ],
)
def test_names_outside_the_packages_are_never_imported(target, canary):
    with pytest.raises(ConfigError, match=r"^env\._target_ = .*: (not imported|must be the dotted name)"):
        named_class({"_target_": target}, "env", TaskFamily)
    assert left(canary) == set()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "rlanything.sweep.trials.child.subprocess.Popen",
            "it is subprocess.Popen, whose package is not allowed",
        ),
        ("rlanything.cli.main", "it is a function, and no class"),
        (
            "rlanything.engines.native.NativeEngin",
            r"rlanything\.engines\.native has no NativeEngin: unknown; did you mean 'NativeEngine'\?",
        ),
        (
            "envs.alfworld.famly.AlfworldFamily",
            r"envs\.alfworld has no famly: unknown; did you mean 'family'\?",
        ),
        ("rlanything.no.such.Engine", r"rlanything has no no: unknown; "),
        ("rlanything.buffer.model.TaskBuffer", "no Engine, because it has no close, generate, release, sync"),
        ("envs.alfworld.family.AlfworldFamily", "no Engine"),
    ],
)
def test_a_class_must_be_of_an_allowed_package_and_of_the_kind_that_is_asked_for(target, message):
    with pytest.raises(ConfigError, match=message):
        instantiate({"_target_": target}, "engine", Engine)


def test_what_an_import_raises_is_told_on_one_line_and_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_target.py").write_text("raise KeyError('two\\nlines')")
    (tmp_path / "lacking_target.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RLANYTHING_ALLOW", "broken_target,lacking_target")
    for name, said in (
        ("broken_target", r"importing broken_target raised KeyError: \S+"),
        (
            "lacking_target",
            "importing lacking_target raised ModuleNotFoundError: No module named 'no_such_package'",
        ),
    ):
        with pytest.raises(ConfigError, match=rf"^env\._target_ = '{name}\.Family': {said}$"):
            named_class({"_target_": f"{name}.Family"}, "env", TaskFamily)
    assert capsys.readouterr().err == ""


def test_what_a_package_raises_when_it_is_asked_for_a_name_is_told_too(tmp_path, monkeypatch):
    """As packages do that import a part when it is first asked for."""
    (tmp_path / "late.py").write_text("def __getattr__(name):\n    import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RLANYTHING_ALLOW", "late")
    with pytest.raises(
        ConfigError, match=r"importing late\.Family raised ModuleNotFoundError: No module named"
    ):
        named_class({"_target_": "late.Family"}, "env", TaskFamily)


RAISING = """
class Family:
    name = "raising"
    splits = make = environment = validate = describe = parse = None
    constructor_only_checks = True

    def __init__(self, raises):
        raise {"key": KeyError("lacking"), "file": FileNotFoundError(2, "No such file", "/tasks"),
               "exit": SystemExit(3), "interrupted": KeyboardInterrupt()}[raises]
"""


@pytest.fixture
def raising(tmp_path, monkeypatch) -> Path:
    """A configuration whose environment is a class with a constructor that raises what `env.raises` says."""
    (tmp_path / "raising.py").write_text(RAISING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RLANYTHING_ALLOW", "raising")
    yield tmp_path / "params.yaml"
    sys.modules.pop("raising", None)


@pytest.mark.parametrize(
    ("raises", "said"),
    [("key", "KeyError: 'lacking'"), ("file", "FileNotFoundError: "), ("exit", "SystemExit: 3")],
)
def test_whatever_a_constructor_raises_is_an_error_with_the_key_and_the_class(raises, said, raising, capsys):
    raising.write_text(yaml.safe_dump(with_target("env", "raising.Family", raises=raises)))
    assert cli.main(["--root", str(ROOT), "--params", str(raising), "config", "check"]) == 2
    assert f"env._target_ = 'raising.Family': its constructor raised {said}" in capsys.readouterr().err


def test_a_constructor_that_is_interrupted_refuses_nothing(raising):
    with pytest.raises(KeyboardInterrupt):
        instantiate({"_target_": "raising.Family", "raises": "interrupted"}, "env", TaskFamily)


def test_a_class_inside_a_class_and_one_that_a_package_passes_on_are_found():
    for target in ("lightning.pytorch.callbacks.EarlyStopping", "rlanything.buffer.TaskBuffer"):
        assert named_class({"_target_": target}, "x", object).__name__ == target.rpartition(".")[2]


def test_an_argument_names_no_class(canary, monkeypatch):
    monkeypatch.setenv("RLANYTHING_ALLOW", "canary")
    inner = [{"deep": {"_target_": "canary.Family"}}]
    for place in PLACES:
        with pytest.raises(
            ConfigError, match=rf"{place}\.a\.0\.deep\._target_: an argument cannot name a class"
        ):
            check.check(parse(with_target(place, f"canary.{PLACES[place]}", a=inner)), ROOT)


@pytest.mark.parametrize("key", ["_code_", "_partial_", "_convert_", "_args_"])
def test_keys_of_hydra_are_no_arguments(key, canary, monkeypatch):
    monkeypatch.setenv("RLANYTHING_ALLOW", "canary")
    for place in PLACES:
        with pytest.raises(ConfigError, match=rf"{place}\.{key}: unknown"):
            check.check(parse(with_target(place, f"canary.{PLACES[place]}", **{key: "/etc"})), ROOT)


def test_a_configuration_cannot_allow_a_package(canary):
    data = with_target("env", "canary.Family")
    with pytest.raises(ConfigError):
        check.check(parse({**data, "RLANYTHING_ALLOW": "canary"}), ROOT)
    assert left(canary) == set()
