"""Memory and time that a plan predicts, against what is measured here."""

from __future__ import annotations

import pytest
from costs_cases import ERROR, ROOT

from benchmarks.plan.__main__ import TIMED, compare_times
from benchmarks.plan.__main__ import main as benchmark
from benchmarks.plan.models import ROWS, random_model, sizes_of
from benchmarks.plan.steps import PRECISIONS, measure_step, predicted_step
from benchmarks.training import random_rows
from rlanything.planning.costs import devices

FACTOR = 6
"""How many times a predicted time on this machine's CPU may be shorter or longer than the measured one."""


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["conversations", "tree"])
@pytest.mark.parametrize("recomputed", [False, True])
def test_the_memory_of_a_step_is_what_torch_allocates(tmp_path, precision, kind, recomputed):
    policy, reward = random_rows(ROWS)
    rows = policy if kind == "conversations" else reward[:1]
    size = sizes_of(random_model("qwen2"), tmp_path)
    peak = measure_step(random_model("qwen2"), [rows, rows], precision, recomputed=recomputed)
    assert predicted_step(size, rows, precision, recomputed=recomputed) == pytest.approx(peak, rel=ERROR)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIMED)
def test_the_time_of_a_prompt_and_of_a_step_is_predicted_within_a_factor(kind):
    for found in compare_times(kind):
        assert 1 / FACTOR < found.ratio < FACTOR, found


def test_without_a_gpu_nothing_is_measured_on_one(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        benchmark(["--gpu"])
    assert ended.value.code == 2
    assert (
        "--gpu: PyTorch finds no GPU here that the plan knows; it knows H200, H100" in capsys.readouterr().err
    )


def test_the_page_states_the_factor_that_is_asserted():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    assert f"within a factor of {FACTOR}, which the slow test" in page


def test_this_machine_is_measured():
    here = devices.this_cpu()
    assert min(here.memory, here.half_flops, here.full_flops, here.bandwidth) > 0
