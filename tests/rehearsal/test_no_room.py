"""A device without room for a model of real size: the message names the model and the device."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from benchmarks.engines import __main__ as engines
from benchmarks.plan import __main__ as command
from rlanything.core.errors import MachineError
from rlanything.planning.costs.devices import DEVICES
from rlanything.rehearsal.architectures import made_on

FULL = "CUDA out of memory. Tried to allocate 260.00 MiB"


@pytest.fixture(autouse=True)
def _full(monkeypatch):
    """Every device is full."""

    def refuse(*_, **__):
        raise torch.OutOfMemoryError(FULL)

    monkeypatch.setattr(AutoModelForCausalLM, "from_config", refuse)


def test_a_model_without_room_is_an_error_of_the_machine():
    with pytest.raises(MachineError, match=rf"^a model of this size has no room on cpu: {FULL}$"):
        made_on(Qwen2Config(), torch.bfloat16, torch.device("cpu"))


def test_so_it_is_where_the_memory_of_the_cpu_is_short(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"
        )

    monkeypatch.setattr(AutoModelForCausalLM, "from_config", refuse)
    with pytest.raises(
        MachineError, match=r"^a model of this size has no room on cpu: .*can't allocate memory$"
    ):
        made_on(Qwen2Config(), torch.bfloat16, torch.device("cpu"))


def test_the_comparison_of_plans_on_a_gpu_ends_with_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_known", lambda _: DEVICES[0])
    assert command.main(["--gpu"]) == 1
    said = f"Qwen/Qwen2.5-0.5B-Instruct: a model of this size has no room on cuda: {FULL}"
    assert capsys.readouterr().err == f"bench: {said}\n"


def test_the_comparison_of_engines_on_a_gpu_ends_with_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    said = f"bench: Qwen/Qwen2.5-0.5B-Instruct: a model of this size has no room on cuda: {FULL}"
    with pytest.raises(SystemExit, match=f"^{said}$"):
        engines.main(["--gpu"])
