"""Device and number format of a model follow from the section `train` and from what the model is for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.trainer.connectors.accelerator_connector import _AcceleratorConnector

from rlanything.config import ExecutorConfig, TrainConfig
from rlanything.core.errors import ConfigError
from rlanything.engines import placement
from rlanything.engines.placement import Role

FULL, HALF = torch.float32, torch.bfloat16


@pytest.mark.parametrize(
    ("precision", "trained", "frozen"),
    [("32-true", FULL, FULL), ("bf16-mixed", FULL, HALF), ("bf16-true", HALF, HALF)],
)
def test_the_format_follows_from_the_precision_and_the_role(precision, trained, frozen):
    train = TrainConfig(iterations=1)
    assert placement.placement(train, Role.TRAINED, precision).dtype == trained
    assert placement.placement(train, Role.FROZEN, precision).dtype == frozen


def test_everything_lies_on_the_cpu_where_the_configuration_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    train = TrainConfig(iterations=1, devices=2)
    assert {placement.placement(train, role, "32-true").device.type for role in Role} == {"cpu"}


def test_every_process_of_torchrun_has_its_own_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "3")
    train = TrainConfig(iterations=1, accelerator="cuda", devices=4)
    assert placement.placement(train, Role.FROZEN, "32-true").device == torch.device("cuda", 3)


def test_a_process_without_a_device_of_its_own_is_refused(monkeypatch):
    """A measurement may be divided among any number of processes, whatever `train.devices` says."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    train = TrainConfig(iterations=1, accelerator="cuda")
    for rank in (0, 1):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        assert placement.placement(train, Role.FROZEN, "32-true").device.index == rank
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ConfigError, match=r"at least 3 processes here: this machine has 2 of kind 'cuda'"):
        placement.placement(train, Role.FROZEN, "32-true")


def test_a_strategy_that_shards_takes_what_trains_from_the_host(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    train = TrainConfig(iterations=1, accelerator="cuda", devices=2, strategy="fsdp")
    assert placement.placement(train, Role.TRAINED, "32-true").device.type == "cpu"
    assert placement.placement(train, Role.FROZEN, "32-true").device.type == "cuda"


@pytest.mark.parametrize(("mps", "cuda"), [(False, 0), (False, 2), (True, 0)])
def test_auto_is_what_lightning_takes(monkeypatch, mps, cuda):
    from lightning.fabric.accelerators import CUDAAccelerator, MPSAccelerator
    from lightning.pytorch.accelerators import cuda as pl_cuda
    from lightning.pytorch.accelerators import mps as pl_mps

    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    for cls in (CUDAAccelerator, pl_cuda.CUDAAccelerator):
        monkeypatch.setattr(cls, "is_available", staticmethod(lambda: cuda > 0))
    for cls in (MPSAccelerator, pl_mps.MPSAccelerator):
        monkeypatch.setattr(cls, "is_available", staticmethod(lambda: mps))
    chosen = _AcceleratorConnector._choose_auto_accelerator()
    assert placement.kind_of_device("auto") == chosen


def test_an_accelerator_that_is_not_there_is_named_with_what_is(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match=r"train\.accelerator = 'cuda'.*must be auto or cpu"):
        placement.device(TrainConfig(iterations=1, accelerator="cuda"))


def test_more_devices_than_there_are_is_refused_with_their_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigError, match=r"train\.devices = 4: this machine has 2 of kind 'cuda'"):
        placement.device(TrainConfig(iterations=1, accelerator="cuda", devices=4))


def test_the_native_engine_is_refused_where_auto_means_a_gpu(monkeypatch):
    from rlanything.planning import check, samplers

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    config = SimpleNamespace(
        train=TrainConfig(iterations=1, accelerator="auto"),
        engine={"_target_": samplers.NATIVE},
        executor=ExecutorConfig(),
    )
    with pytest.raises(ConfigError, match=r"train\.accelerator = 'auto': that is 'cuda' here.*engine=transf"):
        check.machine(config)
