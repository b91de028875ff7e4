"""On an accelerator every model lies there, gets its inputs there, and samples what it samples on the CPU.

The accelerator is `accelerator.py`: a second device in Python, where a tensor of the wrong device raises.
"""

from __future__ import annotations

import json
import subprocess
import sys

import golden_cases as golden
import pytest

pytestmark = pytest.mark.long

MODELS = 2 + 2 + 5
"""Policy and reward model in bootstrap and in evaluate; in train also the adapter and two references."""


@pytest.fixture(scope="module")
def found() -> dict:
    done = subprocess.run(
        [sys.executable, str(golden.HERE / "accelerator_run.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_no_parameter_of_a_used_model_lies_elsewhere(found):
    assert found["second"]["places"] == [["second"]] * MODELS
    assert found["cpu"]["places"] == [["cpu"]] * MODELS


@pytest.mark.parametrize("stage", ["bootstrap", "evaluate"])
def test_what_a_stage_measures_does_not_depend_on_the_device(found, stage):
    assert json.dumps(found["second"][stage]) == json.dumps(found["cpu"][stage])


@pytest.mark.parametrize("what", ["actions", "votes", "events"])
def test_an_iteration_samples_the_same_tokens(found, what):
    assert found["cpu"]["train"][what]
    assert found["second"]["train"][what] == found["cpu"]["train"][what]


def test_the_references_read_the_same_log_probs(found):
    recorded, now = (found[place]["train"]["references"] for place in ("cpu", "second"))
    assert recorded
    assert now == pytest.approx(recorded, abs=golden.TOLERANCE)


def test_a_real_checkpoint_is_taken_as_it_is_whatever_the_floor_says(found):
    assert "mu" in found["cpu"]["bootstrap"]  # written, with bootstrap.min_mu = 2.5
