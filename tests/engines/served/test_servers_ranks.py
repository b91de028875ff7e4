"""The processes of a training have servers of their own, also where they are given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import engine_cases as cases
import pytest
import torch
from rank_cases import two_ranks
from ranks import REQUESTS, UPDATE, results, with_faults
from served_cases import FAKE, gone, listening, pids, wait_until

from rlanything.core.errors import MachineError
from rlanything.engines.native import NativeEngine
from rlanything.engines.vllm.instance import save_config
from rlanything.engines.vllm.served import process
from rlanything.engines.vllm.served.addresses import own_part

HERE = Path(__file__).parent


def two_processes(folder: Path, faults: Path, *addresses: str) -> list[list]:
    """What two processes with fakes got, before and after an update. Both must have got the same."""
    two_ranks(folder, with_faults, faults, folder, str(FAKE), list(addresses))
    return both(folder)


def both(folder: Path) -> list[list]:
    first, second = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    return first


def torchrun(folder: Path) -> list[list]:
    """The same of two processes of torchrun with vLLM itself."""
    paths = os.pathsep.join(
        [str(HERE), str(HERE.parent), str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(HERE / "ranks.py"), str(folder), ""]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return both(folder)


@pytest.mark.long
def test_processes_that_start_their_servers_get_what_one_gets(opened, faults, tmp_path):
    engine = opened()
    expected = results(engine.generate(REQUESTS))
    before, after = two_processes(tmp_path, faults)
    assert before == expected
    assert [c[:2] for c in after] == [c[:2] for c in expected]  # the fake's do not depend on weights
    assert {c[2] for c in after} == {1}
    assert len(pids(faults)) == 3
    wait_until(lambda: all(gone(group) for group in pids(faults)[1:]))


@pytest.mark.long
def test_processes_divide_the_servers_that_are_given(faults, tmp_path):
    save_config(cases.qwen2(), tmp_path / "started")
    with listening(tmp_path / "started") as (one, first), listening(tmp_path / "started") as (two, second):
        two_processes(tmp_path, faults, one, two)
    for fake, own in ((first, REQUESTS[::2]), (second, REQUESTS[1::2])):
        assert len(fake.loaded) == 2
        assert {tuple(ids) for ids in fake.asked if len(ids) == 3} == {r.prompt_ids for r in own}
    assert not set(first.salts) & set(second.salts)


def test_a_process_alone_has_every_address():
    assert own_part(["a", "b"]) == ["a", "b"]


def test_a_server_hears_nothing_of_the_training_processes(monkeypatch, tmp_path):
    told = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    told += ("MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "ROLE_NAME")
    for name in told:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = process.environment("cpu", tmp_path)
    assert not set(told) & set(found)
    assert found["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_server_lets_lora_s_weights_be_changed_only_where_there_are_some(monkeypatch, tmp_path):
    allowed = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
    monkeypatch.delenv(allowed, raising=False)
    assert allowed not in process.environment("cpu", tmp_path)
    assert process.environment("cpu", tmp_path, lora=True)[allowed] == "1"


@pytest.mark.parametrize(
    ("rank", "seen", "own"),
    [
        (None, None, "0"),
        ("3", None, "3"),
        (None, "5,7", "5"),
        ("1", "5,7", "7"),
        ("1", "GPU-a, GPU-b", "GPU-b"),
    ],
)
def test_a_server_sees_the_gpu_of_its_process_alone(monkeypatch, tmp_path, rank, seen, own):
    for name, value in (("LOCAL_RANK", rank), ("CUDA_VISIBLE_DEVICES", seen)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert process.environment("cuda", tmp_path)["CUDA_VISIBLE_DEVICES"] == own


@pytest.mark.parametrize("seen", ["5", ""])
def test_a_process_without_a_gpu_of_its_own_is_told_how_many_there_are(monkeypatch, tmp_path, seen):
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    with pytest.raises(
        MachineError, match=r"has [01] GPUs, and the process with LOCAL_RANK = 1 .* at least 2"
    ):
        process.environment("cuda", tmp_path)


@pytest.mark.slow
def test_processes_with_vllm_itself_sample_the_ids_of_native_before_and_after_an_update(tmp_path):
    cases.needs_vllm()
    model = cases.qwen2()
    for version, found in enumerate(torchrun(tmp_path)):
        if version:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(UPDATE)
        expected = NativeEngine(model, cases.tokenizer()).generate(REQUESTS)
        assert [c[0] for c in found] == [list(c.ids) for c in expected]
        for (_, logprobs, named), completion in zip(found, expected, strict=True):
            assert logprobs == pytest.approx(completion.logprobs, abs=cases.TOLERANCE["vllm_servers"])
            assert named == version
