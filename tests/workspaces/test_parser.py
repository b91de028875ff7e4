"""Words that the command line does not know: the message names the nearest one that it knows."""

from __future__ import annotations

import pytest

from rlanything.cli import main
from rlanything.parser import Parser


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tain"], "unknown command 'tain'; did you mean 'train'?"),
        (["buffer", "shwo"], "unknown command 'shwo'; did you mean 'show'?"),
        (["config", "wriet"], "unknown command 'wriet'; did you mean 'write'?"),
        (["zzz"], "unknown command 'zzz'; known: config, tasks, "),
        (["train", "--arm", "full", "--dryrun"], "unknown argument '--dryrun'; did you mean '--dry-run'?"),
        (["buffer", "log", "x", "--kind", "accept"], "--kind 'accept': unknown; did you mean 'accepted'?"),
        (
            ["train", "--arm", "full", "--scale", "smoke"],
            "a value of the configuration is written scale=VALUE",
        ),
        (
            ["train", "--arm", "full", "--lr=1e-5"],
            "'--lr=1e-5'; a value of the configuration is written lr=VALUE",
        ),
        (["config", "check", "--scale", "smoke"], "a value of the configuration is written scale=VALUE"),
        (["ls", "--workspace=x"], "unknown argument '--workspace=x': --workspace stands before the command"),
        (["buffer", "ls", "--root", "x"], "unknown argument '--root': --root stands before the command"),
        (["--wrkspace=x", "ls"], "unknown argument '--wrkspace=x'; did you mean '--workspace'?"),
        (["rollouts", "show", "full", "--iter", "1", "--slt=2"], "'--slt=2'; did you mean '--slot'?"),
    ],
)
def test_the_nearest_is_named(words, said, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_overrides_may_stand_before_and_after_options():
    parser = Parser()
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--arm")
    parser.add_argument("--device")
    found = parser.parse_args(["a=1", "--arm", "full", "b=2", "--device", "H100", "c=[1, 2]", "~d", "+e=-1"])
    assert (found.overrides, found.arm, found.device) == (
        ["a=1", "b=2", "c=[1, 2]", "~d", "+e=-1"],
        "full",
        "H100",
    )


def test_what_is_no_override_is_still_unknown(capsys):
    parser = Parser()
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--arm")
    with pytest.raises(SystemExit):
        parser.parse_args(["a=1", "--arm", "full", "b=2", "full", "--amr=3"])
    said = capsys.readouterr().err
    assert "unknown argument 'full'; unknown argument '--amr=3'; did you mean '--arm'?" in said


def test_what_is_known_is_parsed_as_before(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["train", "--help"])
    assert caught.value.code == 0
    assert "--arm ARM" in capsys.readouterr().out
