"""What a configuration gives away is refused or said: secrets, keys that are sent, and programs without a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose, disclosed

ROOT = Path(__file__).parents[2]
CSV = "_target_: lightning.pytorch.loggers.CSVLogger"
HIDDEN = "\u202e"
OSC = "\x1b]0;x\x07"


@pytest.mark.parametrize("section", ["loggers", "callbacks"])
@pytest.mark.parametrize("argument", ["api_key: x", "login: {password: x}", "all: [{auth_token: x}]"])
def test_a_secret_among_the_arguments_of_a_class_is_not_recorded(tmp_path, section, argument):
    path = tmp_path / "params.yaml"
    with pytest.raises(ConfigError, match=rf"train\.{section}\.w\.\S+: looks like a secret") as raised:
        compose.write(path, [f"+train.{section}.w={{{CSV}, {argument}}}"], ROOT)
    assert "x" not in str(raised.value).partition(":")[2].split()
    assert not path.exists()


def test_a_name_of_one_s_own_and_a_secret_without_a_value_are_none():
    for override in (f"+train.loggers.secret={{{CSV}}}", f"+train.loggers.w={{{CSV}, api_key: null}}"):
        disclosed.check_names(parse(compose.compose([override], ROOT)))


def test_a_variable_of_the_environment_is_not_recorded(monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hunter2")
    with pytest.raises(ConfigError, match=r"train\.loggers\.w\.title = .*\$\{oc\.env:MY_SECRET\}") as raised:
        compose.compose([f"+train.loggers.w={{{CSV}, title: '${{oc.env:MY_SECRET}}'}}"], ROOT)
    assert "hunter2" not in str(raised.value)


def test_what_leaves_the_machine_and_what_has_no_sandbox_are_named(capsys):
    overrides = [
        "env=coding",
        "env.backend=subprocess",
        "env.trusted=true",
        "engine@endpoints.adapter=openai",
        "endpoints.adapter.base_url=https://evil.example:8443/v1",
        "endpoints.adapter.model=m",
        "endpoints.adapter.key_env=AWS_SECRET_ACCESS_KEY",
    ]
    assert main(["--root", str(ROOT), "plan", *overrides]) == 0
    said = capsys.readouterr().err
    assert "programs that models write run without a sandbox, as you" in said
    assert "endpoints.adapter: the variable AWS_SECRET_ACCESS_KEY is sent to evil.example:8443" in said
    assert disclosed.notes(parse(compose.compose(["env=coding"], ROOT))) == []


def test_a_file_of_ordinary_text_keeps_its_letters_and_hidden_ones_are_escaped():
    assert "name: Zürich 日本" in compose.text({"name": "Zürich 日本"})
    assert HIDDEN not in (hidden := compose.text({"name": f"Zürich {HIDDEN}"}))
    assert r"\u202E" in hidden


@pytest.mark.parametrize("text", [HIDDEN, OSC])
@pytest.mark.parametrize("command", [["plan"], ["config", "check"]])
def test_commands_that_look_at_a_configuration_print_nothing_hidden(tmp_path, capsys, command, text):
    data = compose.compose([], ROOT)
    data["scale"] = f"local{text}"
    if command == ["plan"]:  # the other refuses such a path
        data["model"]["policy"]["path"] = f"models/{text}"
    path = tmp_path / "params.yaml"
    path.write_text(compose.text(data))
    assert main(["--root", str(ROOT), "--params", str(path), *command]) == 0
    said = "".join(capsys.readouterr())
    assert {"plan": "policy     at most"}.get(command[0], ": valid (scale local") in said
    assert HIDDEN not in said
    assert "\x1b" not in said
