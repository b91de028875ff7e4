"""Whether the sampler has the weights of the trainer.

vLLM keeps old weights, and caches of old weights, without an error. So after every update a few tokens are sampled, and
the log-probs of the sampler are compared with those of the module itself, and with the sampler's own of the update
before. Where the model reads pictures, one of the prompts shows one.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import MachineError
from rlanything.core.images import Image
from rlanything.core.types import Completion, Request
from rlanything.engines.vllm.instance import BLOCK

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
"""Largest difference of a log-prob that rounding explains, by the number format of the sampler."""
PROMPT = 2 * BLOCK + 7
"""Tokens of a probe's prompt. Whole blocks of it are cached, so that a stale cache is noticed."""
WRITTEN = 4
COUNT = 2
SHOWN = (84, 56)
"""Width and height of the probe's picture, pixels."""
STIRRED = 0.01
"""The share of the tolerance by which the module's log-probs have changed for certain."""
ADVICE = (
    "Nothing was sampled with them. Use engine=native or engine=transformers, and report this with the architecture "
    "and the version of vLLM"
)


class WeightsMismatch(MachineError):
    """Sampler and trainer do not have the same weights."""


def requests(vocabulary: int, context: int, eyes: Eyes | None = None) -> list[Request]:
    """The probes: always the same prompts of random ids, so that a stale cache is found and used.

    eyes: of a model that reads pictures; they know `picture`. Then one probe more shows it, after a few ids.
    """
    rng = random.Random(0)
    length = max(1, min(PROMPT, context - WRITTEN))
    prompts = [tuple(rng.randrange(vocabulary) for _ in range(length)) for _ in range(COUNT)]
    if eyes is not None:  # the token of a picture stands for nothing else
        prompts = [tuple(token - (token == eyes.token) for token in prompt) for prompt in prompts]
    found = [Request(prompt, seed, min(WRITTEN, context - length)) for seed, prompt in enumerate(prompts)]
    if eyes is None:
        return found
    shown = (eyes.token,) * eyes.tokens(*SHOWN)
    words = prompts[0][: context - WRITTEN - len(shown)]
    seen = (*words[:BLOCK], *shown, *words[BLOCK:])
    return [*found, Request(seen, COUNT, WRITTEN, images=(picture().sha256,))]


@cache
def picture() -> Image:
    """The probe's picture: pixels of any colour, always the same."""
    from PIL import Image as Pillow

    width, height = SHOWN
    file = io.BytesIO()
    Pillow.frombytes("RGB", SHOWN, random.Random(0).randbytes(3 * width * height)).save(file, "PNG")
    return Image(file.getvalue())


@dataclass(frozen=True)
class _Seen:
    """What the sampler drew, ids and log-probs of each request, and the module's log-probs of the same ids."""

    sampled: list[tuple[tuple[int, ...], tuple[float, ...]]]
    expected: list[Tensor]


class Probe:
    """Compares a sampler with the module whose weights it takes over.

    Args:
        model: the module.
        context: the most tokens of a prompt with its reply.
        tolerance: the largest difference of a log-prob that rounding explains.
        exact: whether the sampler has the module's number format, and no weights that were merged or rounded for it.
            Then every update of the module changes the sampler as well.
        eyes: of a model that reads pictures; they know `picture`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        context: int,
        tolerance: float,
        *,
        exact: bool,
        eyes: Eyes | None = None,
    ) -> None:
        self._model, self._context, self._tolerance, self._exact = model, context, tolerance, exact
        self._eyes = eyes
        self._load = 0
        self._before: _Seen | None = None
        self._now: _Seen | None = None

    def check(self, generate: Callable[[Sequence[Request]], list[Completion]], load: int) -> float:
        """Compare the sampler's log-probs with the module's. Returns the largest difference.

        load: the number of the time at which the weights were taken over. Several samplers may have the same.
        Raises `WeightsMismatch`: a difference is above the tolerance, or the module has changed since the load before
        and the sampler answers with the same bits. `ValueError`: for weights that have diverged.
        """
        asked = requests(self._model.config.get_text_config().vocab_size, self._context, self._eyes)
        found = generate(asked)
        expected = [
            logprobs(self._model, request, each, self._eyes)
            for request, each in zip(asked, found, strict=True)
        ]
        seen = _Seen([(each.ids, each.logprobs) for each in found], expected)
        worst = _furthest(expected, [torch.tensor(each.logprobs) for each in found])
        if not worst <= self._tolerance:
            raise WeightsMismatch(
                f"vLLM does not have the trainer's weights: log-probs differ by {worst:.3g}, and rounding explains "
                f"{self._tolerance:.3g} (engine.tolerance). {ADVICE}"
            )
        if load != self._load:
            self._before, self._load = self._now, load
        self._now = seen
        self._check_changed(seen)
        return worst

    def _check_changed(self, seen: _Seen) -> None:
        """Whatever the size of an update is, new weights give other bits."""
        before = self._before
        if not self._exact or before is None or before.sampled != seen.sampled:
            return
        change = _furthest(before.expected, seen.expected)
        if change > STIRRED * self._tolerance:
            raise WeightsMismatch(
                f"vLLM has not taken over an update: the trainer's log-probs have changed by {change:.3g}, and vLLM's "
                f"are the same bits as before. {ADVICE}"
            )


@torch.no_grad()
def logprobs(
    model: PreTrainedModel, request: Request, completion: Completion, eyes: Eyes | None = None
) -> Tensor:
    """The module's log-probs [T], float32 on the CPU, of the ids of a free sample.

    eyes: of a model that reads pictures.
    """
    training = model.training
    model.eval()
    try:
        ids = torch.tensor([request.prompt_ids + completion.ids], device=model.device)
        more = {} if eyes is None else eyes.inputs(ids, request.images)
        logits = model(ids, **more).logits[0, len(request.prompt_ids) - 1 : -1].float()
    finally:
        model.train(training)
    if eyes is not None:
        logits[:, eyes.token] = float("-inf")
    return logits.log_softmax(-1).gather(1, ids[0, len(request.prompt_ids) :, None])[:, 0].cpu()


def _furthest(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    return max(float((left - right).abs().max()) for left, right in zip(one, other, strict=True))
