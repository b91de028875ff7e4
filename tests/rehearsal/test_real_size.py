"""Stand-ins of a real checkpoint's size: which roles may share one, and what it is taught."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from rehearsal_cases import GUI, SMALL, rehearsal
from stage_cases import ROOT

from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.learn.supervised.fit import fit
from rlanything.planning import compose
from rlanything.planning.costs.sizes import DECLARED
from rlanything.rehearsal import standins, teaching
from rlanything.rehearsal.architectures import WIDTH

REAL = {
    "model_type": "qwen2",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 4096,
    "max_position_embeddings": 4096,
}
"""Of a real checkpoint, if one were this small."""


def shared(path: str = "checkpoints/base") -> list[str]:
    """One folder for all roles, written in two ways."""
    return [f"model.policy.path={path}", f"model.reward.path=./{path}", f"model.adapter.path={path}"]


def declares(folder, sizes: dict) -> None:
    """A project's own copy of experiments/ that declares one more checkpoint."""
    (folder / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    file = folder / DECLARED
    file.write_text(json.dumps({**json.loads(file.read_text()), "Big/Model": sizes}))


def test_roles_with_one_checkpoint_of_real_size_get_one_that_is_taught_nothing(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setattr(teaching, "fit", lambda *_: pytest.fail("it is taught"))
    declares(project, REAL)
    assert main(["rehearse", "--policy", "Big/Model", *SMALL, *shared()]) == 0
    assert capsys.readouterr().out.count("checkpoints/base: written") == 1
    assert json.loads((project / "checkpoints/base/config.json").read_text())["vocab_size"] == 4096


def test_with_steps_it_is_taught_what_all_its_roles_write(project, monkeypatch):
    """A hundred steps are each role's, so a shared model has three hundred."""
    taught = []

    def noting(model, rows, settings, *args, **named):
        taught.append((len(rows), settings.steps, settings.lr))
        return fit(model, rows, settings, *args, **named)

    monkeypatch.chdir(project)
    monkeypatch.setattr(teaching, "fit", noting)
    declares(project, {**REAL, "hidden_size": 2 * WIDTH, "num_key_value_heads": 1})
    command = ["rehearse", "--steps", "1", "--policy", "Big/Model"]
    assert main([*command, *SMALL, *shared("checkpoints/all")]) == 0
    shutil.rmtree(project / "checkpoints")
    (project / "params.yaml").unlink()
    assert main([*command, "--reward", "Big/Model", "--adapter", "Big/Model", *SMALL]) == 0
    together, *each = taught
    assert len(each) == 3
    assert all(rows for rows, _, _ in each)
    assert together == (sum(rows for rows, _, _ in each), 3, teaching.RATE / 2)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            {**REAL, "hidden_size": "x"},
            r"Big/Model: experiments/model/sizes\.json: hidden_size = x: must be a whole",
        ),
        (5, r"Big/Model: experiments/model/sizes\.json: must be an object with the fields of a config\.json"),
    ],
)
def test_damaged_sizes_are_refused(project, monkeypatch, capsys, sizes, said):
    monkeypatch.chdir(project)
    declares(project, sizes)
    assert main(["rehearse", "--policy", "Big/Model", *SMALL]) != 0
    assert re.search(said, capsys.readouterr().err)
    assert not (project / "checkpoints").exists()


@pytest.mark.parametrize("kinds", [{}, {"policy": "Big/Model", "reward": "qwen3"}])
def test_a_folder_that_roles_cannot_share_is_refused(project, kinds):
    with pytest.raises(ConfigError, match=r"model\.reward\.path = .*: it is the folder of model\.policy too"):
        standins.make(rehearsal(*shared()), project, 1, kinds, {"Big/Model": REAL})
    assert not (project / "checkpoints").exists()


def test_judges_that_label_with_a_shared_checkpoint_are_one_role_in_its_lessons():
    judges = [f"+evaluate.judges.{name}.path=checkpoints/base" for name in ("one", "other")]
    found = standins._places(
        rehearsal(*shared(), *judges), ROOT, {"policy": "Big/Model"}, {"Big/Model": REAL}
    )
    (_, roles, _), *others = found.values()
    assert (roles, others) == (["policy", "reward", "adapter", "labeller"], [])


def test_a_role_that_is_shown_pictures_shares_no_checkpoint_that_reads_text():
    config = parse(compose.compose(["scale=rehearsal", *GUI, *shared(), "model.images.policy=0"], ROOT))
    with pytest.raises(
        ConfigError, match=r"model\.reward\.path.*model\.images\.reward = 2; give it a folder"
    ):
        standins._places(config, ROOT, {"policy": "Big/Model"}, {"Big/Model": REAL})
