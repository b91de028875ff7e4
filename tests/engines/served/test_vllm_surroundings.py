"""What vLLM is told through the environment, and what its import leaves of the process that asks."""

from __future__ import annotations

import os

import engine_cases as cases
import pytest
import torch

from rlanything.engines.vllm import surroundings
from rlanything.engines.vllm.served import process
from rlanything.engines.vllm.surroundings import INVARIANT, restored

RUNNER, EXACT = "VLLM_USE_V2_MODEL_RUNNER", "TRITON_F32_DEFAULT"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """An environment of its own. What vLLM may have set before is not in it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "TRITON_"))}
    monkeypatch.setattr(os, "environ", own)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_runner_is_the_one_that_takes_our_logits_processor(device, tmp_path):
    os.environ[RUNNER] = "1"
    assert process.environment(device, tmp_path)[RUNNER] == "0"
    with restored(device):
        assert os.environ[RUNNER] == "0"
    assert os.environ[RUNNER] == "0"  # vLLM reads it again


@pytest.mark.parametrize("set_before", ["0", "1"])
def test_the_configuration_alone_gives_servers_kernels_that_do_not_depend_on_the_batch(tmp_path, set_before):
    """In the process of the trainer they would replace the trainer's own."""
    os.environ[INVARIANT] = set_before
    assert process.environment("cuda", tmp_path)[INVARIANT] == "0"
    assert process.environment("cuda", tmp_path, invariant=True)[INVARIANT] == "1"
    with restored("cuda"):
        assert os.environ[INVARIANT] == "0"


def test_vllm_reads_the_variable():
    cases.needs_vllm()
    with restored("cpu"):
        from vllm import envs

        assert INVARIANT in envs.environment_variables
        os.environ[INVARIANT] = "1"
        assert envs.environment_variables[INVARIANT]()
        os.environ[INVARIANT] = "0"
        assert not envs.environment_variables[INVARIANT]()


def test_attention_in_float32_is_exact_on_a_gpu_also_after_the_start(tmp_path):
    with restored("cpu"):
        assert EXACT not in os.environ
    assert EXACT not in process.environment("cpu", tmp_path)
    with restored("cuda"):
        os.environ["OF_VLLM"] = "1"
    assert os.environ[EXACT] == "ieee"
    assert "OF_VLLM" not in os.environ
    assert process.environment("cuda", tmp_path)[EXACT] == "ieee"


def test_what_the_user_has_set_stays(tmp_path):
    os.environ[EXACT] = "tf32x3"
    with restored("cuda"):
        pass
    assert os.environ[EXACT] == process.environment("cuda", tmp_path)[EXACT] == "tf32x3"


def test_torch_computes_as_before():
    def chosen() -> tuple[object, ...]:
        return (
            torch.get_float32_matmul_precision(),
            torch.backends.cuda.cudnn_sdp_enabled(),
            torch.backends.cudnn.allow_tf32,
        )

    def choose(precision: str, cudnn: bool, tf32: bool) -> None:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        torch.backends.cudnn.allow_tf32 = tf32

    before = chosen()
    try:
        choose("high", True, False)
        with restored("cuda"):
            choose("highest", False, True)  # as vLLM's import and worker may do
        assert chosen() == ("high", True, False)
    finally:
        choose(*before)


def test_every_forced_variable_has_a_value():
    assert set(surroundings.FORCED) <= set(surroundings.VARIABLES)
