"""LoRA's weights that servers get alone: the frozen ones once, LoRA's at every update, under a name of their own."""

from __future__ import annotations

from pathlib import Path

import engine_cases as cases
import pytest
import torch
from safetensors.torch import load_file
from served_cases import REQUESTS, gone, listening, pids, wait_until

from rlanything.config import LoraConfig
from rlanything.core.errors import MachineError
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.vllm.instance import save_config


@pytest.fixture
def model():
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    model = cases.qwen2()
    inject(model, LoraConfig(rank=4), 3, "learn.policy.lora")
    return model


@pytest.fixture
def folder(model, tmp_path):
    """A checkpoint that a server was started with."""
    save_config(model, tmp_path / "started")
    return tmp_path / "started"


def moved(model) -> None:
    with torch.no_grad():
        for value in trained(model).values():
            value.add_(0.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_in_bfloat16_loras_weights_are_sent_alone_by_default_and_in_float32_they_are_merged(
    opened, model, tmp_path, dtype
):
    started = model.to(getattr(torch, dtype))
    save_config(started, tmp_path / "started")
    with listening(tmp_path / "started") as (address, fake):
        engine = opened(started, addresses=[address], folder=str(tmp_path), dtype=dtype)
        engine.generate(REQUESTS)
        assert bool(fake.loras) == (dtype == "bfloat16")


def test_the_frozen_weights_are_sent_once_and_loras_at_every_update(opened, model, folder, tmp_path):
    frozen = cases.qwen2().state_dict()
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address], folder=str(tmp_path), lora="apart")
        for version in range(3):
            moved(model)
            engine.sync(version)
            engine.generate(REQUESTS)
            (written,) = tmp_path.glob("rlanything-vllm-*")
            assert fake.loaded == [str(written)]
            assert list(fake.loras) == [fake.version]  # the names of older ones are forgotten
            assert fake.drawn[-1] == fake.salts[-1] == fake.version
            (path,) = (written / "lora").iterdir()
            assert fake.loras == {fake.version: str(path)}
            sent = load_file(path / "adapter_model.safetensors")
            assert all(
                torch.equal(sent[f"base_model.model.{name.replace('.default', '')}"], value)
                for name, value in trained(model).items()
            )
            assert len(sent) == len(trained(model))
        state = load_file(written / "model.safetensors")
        assert state.keys() == frozen.keys()
        assert all(torch.equal(state[name], value) for name, value in frozen.items())
        assert len(set(fake.salts)) == len(set(fake.drawn)) == 3
        assert all(name.startswith("loading ") for name in fake.meanwhile)
        engine.close()
        assert fake.loras == {}
        assert not list(tmp_path.glob("rlanything-vllm-*"))


def test_a_server_that_is_started_again_begins_with_the_frozen_weights_and_gets_loras(opened, model, faults):
    engine = opened(model, lora="apart")
    expected = engine.generate(REQUESTS)
    (faults / "1-die").touch()
    assert engine.generate(REQUESTS) == expected
    engine.close()
    wait_until(lambda: all(gone(group) for group in pids(faults)))


def test_a_given_server_that_began_anew_gets_both_again(opened, model, folder, capfd):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address], lora="apart")
        expected = engine.generate(REQUESTS)
        fake.version, fake.loras = "default", {}
        assert engine.generate(REQUESTS) == expected
        assert len(fake.loaded) == 2
        assert list(fake.loras) == [fake.version]
        told = capfd.readouterr().err
    assert f"the server at {address} was lost: it does not have LoRA's weights 'weights 1 of " in told
    assert "start it with" not in told


def test_a_given_server_that_began_anew_between_two_updates_gets_both_again(opened, model, folder, capfd):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address], lora="apart")
        engine.generate(REQUESTS)
        fake.version, fake.loras = "default", {}
        moved(model)
        engine.sync(1)
        assert len(fake.loaded) == 2
        assert list(fake.loras) == [fake.version]
        engine.generate(REQUESTS)
        assert all(name.startswith("loading ") for name in fake.meanwhile)
    assert "was lost" not in capfd.readouterr().err


def test_a_given_server_that_was_lost_and_lives_forgets_the_last_name(opened, model, folder, faults):
    with listening(folder, faults) as (address, fake):
        engine = opened(model, addresses=[address], lora="apart")
        expected = engine.generate(REQUESTS)
        (faults / "1-drop").touch()
        assert engine.generate(REQUESTS) == expected
        assert len(fake.loaded) == 2  # another program may have given it weights
        assert list(fake.loras) == [fake.version]
        engine._instance._servers[0].lose()
        engine.close()
        assert fake.loras == {}


def test_a_server_with_loras_weights_of_another_run_can_be_taken(opened, model, folder):
    with listening(folder) as (address, fake):
        fake.loras["of another run"] = "/gone"
        engine = opened(model, addresses=[address], lora="apart")
        engine.generate(REQUESTS)
        assert fake.drawn[-1] == fake.version


def test_a_given_server_that_takes_none_is_refused_with_what_it_needs(opened, model, folder):
    with listening(folder) as (address, fake):
        fake.loras = None
        with pytest.raises(
            MachineError,
            match=r"load_lora_adapter: HTTP 404.*start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, --enable-lora",
        ):
            opened(model, addresses=[address], lora="apart").generate(REQUESTS)


def test_a_server_that_is_started_here_has_room_for_loras_rank(model, opened):
    from rlanything.engines.vllm.served import process

    def arguments(made, **options: str) -> list[str]:
        engine = opened(made, **options)
        return process.arguments(Path("m"), Path("s"), engine._settings(1))

    words = arguments(model, lora="apart")
    assert "--enable-lora" in words
    assert words[words.index("--max-lora-rank") + 1] == "8"
    assert "--enable-lora" not in arguments(model)
    assert "--enable-lora" not in arguments(cases.qwen2(), lora="apart")
