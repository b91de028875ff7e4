"""A run has one fingerprint, whoever asks, in training and afterwards."""

from __future__ import annotations

import json

import pytest
import yaml
from live_cases import in_training
from stage_cases import small

from rlanything.compare.run.page import single_md
from rlanything.compare.run.single import single
from rlanything.core.errors import ConfigError
from rlanything.exports.about import about
from rlanything.rollouts import runs
from rlanything.rollouts.origin import PARTS, fingerprint_of, origin_of
from rlanything.runs.resuming.divisions import Division, note
from rlanything.view.facts import identity

pytestmark = pytest.mark.integration


def test_view_compare_and_exports_have_the_same_fingerprint(undisturbed, tmp_path):
    project = undisturbed.parents[2]
    in_training(project, tmp_path, published=1)
    params = small().model_dump(mode="json", by_alias=True)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    kept = json.loads((project / "provenance/full.json").read_text())["fingerprint"]
    for root in (project, tmp_path):
        run, _ = runs.find("full", root)
        found = {
            fingerprint_of(run), about(run)["fingerprint"], single("full", root).record["fingerprint"],
            identity(run).removesuffix("/full/seed-0"),
        }  # fmt: skip
        assert found == {kept}


def test_so_it_is_of_a_run_whose_division_was_changed_while_it_trains(undisturbed, tmp_path):
    live = in_training(undisturbed.parents[2], tmp_path, published=1)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(small().model_dump(mode="json", by_alias=True)))
    run, _ = runs.find("full", tmp_path)
    undivided, key = fingerprint_of(run), origin_of(run).key
    note(
        live.parent, [Division(name, {"train.devices": k}, {"0": k}) for k, name in enumerate(("older", key))]
    )
    found = single("full", tmp_path).record
    assert found["fingerprint"] == fingerprint_of(run) == about(run)["fingerprint"] != undivided
    assert [each["values"] for each in found["divisions"]] == [{"train.devices": 0}, {"train.devices": 1}]
    assert "a hash of configuration, code, inputs and divisions" in single_md(single("full", tmp_path))


@pytest.mark.parametrize("part", PARTS)
def test_an_origin_that_lacks_a_part_has_no_fingerprint(undisturbed, tmp_path, part):
    """A hash of the rest would be that of another run."""
    live = in_training(undisturbed.parents[2], tmp_path, published=1)
    run, _ = runs.find("full", tmp_path)
    path = live.parent / "origin.json"
    for changed in ([], "x"):
        path.write_text(json.dumps({**json.loads(path.read_text()), part: changed}))
        with pytest.raises(ConfigError, match=f"origin.json: {part} is no mapping; start the training again"):
            fingerprint_of(run)
