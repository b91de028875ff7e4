"""Whether the sampler has the weights of the trainer.

vLLM keeps old weights, and caches of old weights, without an error. So after every update a few tokens are sampled, and
the log-probs of the sampler are compared with those of the module itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from rlanything.core.errors import MachineError
from rlanything.core.types import Completion, Request
from rlanything.engines.vllm.instance import BLOCK

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
"""Largest difference of a log-prob that rounding explains, by the number format of the sampler."""
PROMPT = 2 * BLOCK + 7
"""Tokens of a probe's prompt. Whole blocks of it are cached, so that a stale cache is noticed."""
WRITTEN = 4
COUNT = 2


class WeightsMismatch(MachineError):
    """Sampler and trainer do not have the same weights."""


def requests(vocabulary: int, context: int) -> list[Request]:
    """The probes: always the same prompts of random ids, so that a stale cache is found and used."""
    rng = random.Random(0)
    length = max(1, min(PROMPT, context - WRITTEN))
    prompts = [tuple(rng.randrange(vocabulary) for _ in range(length)) for _ in range(COUNT)]
    return [Request(prompt, seed, min(WRITTEN, context - length)) for seed, prompt in enumerate(prompts)]


def check(
    model: PreTrainedModel,
    generate: Callable[[Sequence[Request]], list[Completion]],
    context: int,
    tolerance: float,
) -> float:
    """Compare the sampler's log-probs with the module's. Returns the largest difference.

    Differences below `tolerance` are taken for rounding, so a stale part of a very small update is not noticed.
    Raises `WeightsMismatch`, and `ValueError` for weights that have diverged.
    """
    asked = requests(model.config.get_text_config().vocab_size, context)
    worst = max(
        difference(model, request, completion)
        for request, completion in zip(asked, generate(asked), strict=True)
    )
    if not worst <= tolerance:
        raise WeightsMismatch(
            f"vLLM does not have the trainer's weights: log-probs differ by {worst:.3g}, and rounding explains "
            f"{tolerance:.3g} (engine.tolerance). Nothing was sampled with them. Use engine=native or "
            "engine=transformers, and report this with the architecture and the version of vLLM"
        )
    return worst


@torch.no_grad()
def difference(model: PreTrainedModel, request: Request, completion: Completion) -> float:
    """The largest difference between recorded log-probs of a free sample and those of the module."""
    training = model.training
    model.eval()
    try:
        ids = torch.tensor([request.prompt_ids + completion.ids], device=model.device)
        logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1].float()
    finally:
        model.train(training)
    expected = logits.log_softmax(-1).gather(1, ids[0, len(request.prompt_ids) :, None])[:, 0].cpu()
    return float((expected - torch.tensor(completion.logprobs)).abs().max())
