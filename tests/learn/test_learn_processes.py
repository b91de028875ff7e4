"""Two processes that share an iteration learn what one process learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from learn_cases import SLOW
from trainer_cases import Stage, furthest

HERE = Path(__file__).parent
STRATEGY = "ddp_find_unused_parameters_true"
"""Each backward pass reaches one of the two models; plain `ddp` wants every parameter in every pass."""


def torchrun(folder: Path, strategy: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(HERE / "trainer_cases.py"), str(folder), strategy]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.integration
def test_two_processes_give_the_losses_and_weights_of_one(tmp_path):
    done = torchrun(tmp_path, STRATEGY)
    assert done.returncode == 0, done.stderr[-3000:]
    alone = Stage(SLOW, micro_tokens=60).fit(2)
    for rank in (0, 1):
        totals = json.loads((tmp_path / f"totals-{rank}.json").read_text())
        for found, known in zip(totals, alone.totals, strict=True):
            assert found.keys() == known.keys()
            for name, values in known.items():
                assert found[name] == pytest.approx(values, abs=1e-5), name
        assert furthest(torch.load(tmp_path / f"weights-{rank}.pt"), alone.weights()) < 1e-5
