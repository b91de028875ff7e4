"""vLLM itself in two servers of a model, started here or placed by a real Ray cluster: the ids of `native`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import engine_cases as cases
import pytest
import torch
from ray_cases import NO_RAY, Nodes, ray_missing

from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine

pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.timeout(1800)]


@pytest.fixture(
    params=["here", pytest.param("ray", marks=pytest.mark.skipif(ray_missing, reason=NO_RAY))], ids=str
)
def place(request, tmp_path) -> Iterator[Mapping[str, Any]]:
    """Where the servers run."""
    cases.needs_vllm()
    if request.param == "here":
        yield {}
        return
    with Nodes() as nodes:
        nodes.connect()
        yield {"addresses": [f"ray://{nodes.address}"], "folder": str(tmp_path)}


def test_two_servers_of_a_model_have_the_native_engines_ids_also_after_an_update(place):
    rng, model = random.Random(0), cases.scramble(cases.qwen2())
    requests = [
        Request(
            cases.words(rng, 20, 120), seed, 12,
            choices=cases.actions(rng, 6) if seed % 3 == 0 else (), session=f"{seed}",
        )
        for seed in range(48)
    ]  # fmt: skip
    with cases.opened("vllm_servers", model, replicas=2, cache_gib=0.2, **place) as engine:
        for version in range(2):
            if version:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.add_(0.02 * torch.randn_like(parameter))
                engine.sync(version)
            found = engine.generate(requests)
            assert len(engine._instance._servers) == 2
            expected = NativeEngine(model, cases.tokenizer()).generate(requests)
            assert cases.ids(found) == cases.ids(expected)
            assert {reply.version for reply in found} == {version}
            worst = max(
                abs(a - b) for one, two in zip(found, expected, strict=True)
                for a, b in zip(one.logprobs, two.logprobs, strict=True)
            )  # fmt: skip
            assert worst < 1e-4
