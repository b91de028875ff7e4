"""A rehearsal that was ended: the same command goes on, another one is refused and says so."""

from __future__ import annotations

from rehearsal_cases import SMALL

from rlanything.cli import main
from rlanything.rehearsal import standins


def test_a_rehearsal_that_was_ended_goes_on_with_the_same_command_alone(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    made = []

    def save(self, name, role, chosen, place):
        if name == "reward" and not made.count(name):
            made.append(name)
            raise KeyboardInterrupt
        made.append(name)
        place.mkdir(parents=True)

    monkeypatch.setattr(standins.StandIns, "make", save)
    command = ["rehearse", "--steps", "1", *SMALL]
    assert main(command) != 0
    data = {path: path.stat().st_mtime_ns for path in (project / standins.DATA).rglob("*")}
    assert not (project / "params.yaml").exists()
    capsys.readouterr()
    assert main(["rehearse", "--steps", "2", *SMALL]) != 0
    said = capsys.readouterr().err
    assert (
        "model.policy.path = checkpoints/policy: it exists, and is not overwritten; remove it first" in said
    )
    assert "with the same ones it goes on" in said
    assert main(command) == 0
    assert made == ["policy", "reward", "reward", "adapter"]
    assert {path: path.stat().st_mtime_ns for path in (project / standins.DATA).rglob("*")} == data
    assert (project / "params.yaml").is_file()
    capsys.readouterr()
    assert main(command) != 0, "it is finished"
    assert "goes on" not in capsys.readouterr().err
