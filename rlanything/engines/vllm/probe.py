"""Whether the sampler has the weights of the trainer, and draws as the other engines draw.

vLLM keeps old weights, and caches of old weights, without an error. So after every update a few tokens are sampled, and
the log-probs of the sampler are compared with those of the module itself, and with the sampler's own of the update
before. Each token is also compared with the draw of the other engines. A server may have another version of `draw`, or
none of it. Where the model reads pictures, one of the prompts shows one.

The module is read once for each load of weights. A lost server may be replaced while the module is already trained on.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import MachineError
from rlanything.core.images import Image
from rlanything.core.types import Completion, Request
from rlanything.engines import sampling
from rlanything.engines.vllm.instance import BLOCK

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
"""Largest difference of a log-prob that rounding explains, by the number format of the sampler."""
PROMPT = 2 * BLOCK + 7
"""Tokens of a probe's prompt. Whole blocks of it are cached, so that a stale cache is noticed."""
WRITTEN = 4
COUNT = 2
HOT = 4.0
"""The temperature of one probe, of which only the draws are compared. At 1 a model that is sure of its tokens hides how
they were drawn."""
SHOWN = (84, 56)
"""Width and height of the probe's picture, pixels."""
STIRRED = 0.01
"""The share of the tolerance by which the module's log-probs have changed for certain."""
ADVICE = (
    "Nothing was sampled with them. Use engine=native or engine=transformers, and report this with the architecture "
    "and the version of vLLM"
)
START_ANEW = (
    "Nothing was sampled with them. A server that others have started must have this version of rlanything, and the "
    "arguments of docs/vllm.md (Servers that you start): start it again with both. Where nobody else has started vLLM, "
    "report this with the version of vLLM"
)


class WeightsMismatch(MachineError):
    """Sampler and trainer do not have the same weights."""


class DrawsMismatch(MachineError):
    """The sampler draws other tokens than the other engines, from the same log-probs."""


def requests(vocabulary: int, context: int, eyes: Eyes | None = None) -> list[Request]:
    """The probes: always the same prompts of random ids, so that a stale cache is found and used.

    The last one is `HOT`. eyes: of a model that reads pictures; they know `picture`. Then one probe more shows it,
    after a few ids.
    """
    rng = random.Random(0)
    length = max(1, min(PROMPT, context - WRITTEN))
    prompts = [tuple(rng.randrange(vocabulary) for _ in range(length)) for _ in range(COUNT)]
    if eyes is not None:  # the token of a picture stands for nothing else
        prompts = [tuple(token - (token == eyes.token) for token in prompt) for prompt in prompts]
    found = [Request(prompt, seed, min(WRITTEN, context - length)) for seed, prompt in enumerate(prompts)]
    hot = replace(found[0], seed=COUNT + 1, temperature=HOT)
    if eyes is None:
        return [*found, hot]
    shown = (eyes.token,) * eyes.tokens(*SHOWN)
    words = prompts[0][: context - WRITTEN - len(shown)]
    seen = (*words[:BLOCK], *shown, *words[BLOCK:])
    return [*found, Request(seen, COUNT, WRITTEN, images=(picture().sha256,)), hot]


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
    """What a sampler drew at temperature 1, ids and log-probs of each request, and the module's log-probs of the ids.

    The module's may be of the first ids alone. See `_Known`.
    """

    sampled: list[tuple[tuple[int, ...], tuple[float, ...]]]
    expected: list[Tensor]


@dataclass(frozen=True)
class _Known:
    """What the module says of a load: its log-probs [TV] of all ids, along the ids that a reply to each request has."""

    replies: list[tuple[int, ...]]
    rows: list[Tensor]

    def along(self, replies: Sequence[tuple[int, ...]]) -> list[Tensor]:
        """The log-probs along other replies, up to the first id of each that differs. They do not depend on this id."""
        return [
            rows[: _common(ours, theirs) + 1]
            for rows, ours, theirs in zip(self.rows, self.replies, replies, strict=True)
        ]


class Probe:
    """Compares a sampler with the module whose weights it takes over, and its tokens with the draws of every engine.

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
        self._known: _Known | None = None
        self._before: _Seen | None = None
        self._now: _Seen | None = None

    def check(self, generate: Callable[[Sequence[Request]], list[Completion]], load: int) -> float:
        """Compare the sampler's log-probs with the module's. Returns the largest difference.

        load: the number of the time at which the weights were taken over. Several samplers may have the same. The
            module is read for the first of them. A later one is compared with what was read then, in each reply up to
            the first token that the first one did not draw: rounding may draw another one.
        Raises `WeightsMismatch`: a difference is above the tolerance, or the module has changed since the load before
        and the sampler answers with the same bits. `DrawsMismatch`: no difference within the tolerance explains a
        token. `ValueError`: for weights that have diverged.
        """
        asked = requests(self._model.config.get_text_config().vocab_size, self._context, self._eyes)
        found = generate(asked)
        replies = [each.ids for each in found]
        before = self._known if load == self._load else None
        known = before or self._read(asked, found)
        whole = known.along(replies)
        expected = [_of_ids(each, ids) for each, ids in zip(whole[:-1], replies, strict=False)]
        seen = _Seen([(each.ids, each.logprobs) for each in found[:-1]], expected)
        worst = _furthest(expected, [torch.tensor(logprobs) for _, logprobs in seen.sampled])
        if not worst <= self._tolerance:
            raise WeightsMismatch(
                f"vLLM does not have the trainer's weights: log-probs differ by {worst:.3g}, and rounding explains "
                f"{self._tolerance:.3g} (engine.tolerance). {ADVICE}"
            )
        for request, reply, each in zip(asked, found, whole, strict=True):
            self._check_draws(request, reply.ids, each)
        if before is None:
            self._before, self._load = self._now, load
            self._known, self._now = known, seen
        self._check_changed(seen)
        return worst

    def _read(self, asked: Sequence[Request], found: Sequence[Completion]) -> _Known:
        """Ask the module."""
        rows = [
            _logprobs(self._model, request, each, self._eyes)
            for request, each in zip(asked, found, strict=True)
        ]
        return _Known([each.ids for each in found], rows)

    def _check_draws(self, request: Request, ids: Sequence[int], known: Tensor) -> None:
        """Rounding moves a draw to another token only near a border of the two.

        known: the module's log-probs TV, for as many of the ids as they go.
        """
        ids = ids[: len(known)]
        heat, uniform = request.temperature, torch.from_numpy(sampling.uniforms([request.seed], len(ids))[0])
        needed = shifts(known, torch.tensor(ids), uniform, heat)
        at = int(needed.argmax())
        if not float(needed[at]) <= self._tolerance:
            ours, _ = sampling.draw(known, uniform, torch.full((len(ids),), heat))
            raise DrawsMismatch(
                f"vLLM does not draw the tokens of the other engines: it drew id {ids[at]} where they draw "
                f"{int(ours[at])} (seed {request.seed}, token {at}, temperature {heat:g}). Log-probs would have to "
                f"differ by {float(needed[at]):.3g} for that, and rounding explains {self._tolerance:.3g} "
                f"(engine.tolerance). {START_ANEW}"
            )

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


def logprobs(
    model: PreTrainedModel, request: Request, completion: Completion, eyes: Eyes | None = None
) -> Tensor:
    """The module's log-probs [T], float32 on the CPU, of the ids of a free sample.

    eyes: of a model that reads pictures.
    """
    return _of_ids(_logprobs(model, request, completion, eyes), completion.ids)


@torch.no_grad()
def _logprobs(model: PreTrainedModel, request: Request, completion: Completion, eyes: Eyes | None) -> Tensor:
    """The same of all ids [TV]."""
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
    return logits.log_softmax(-1).cpu()


def _of_ids(logprobs: Tensor, ids: Sequence[int]) -> Tensor:
    """Of as many of the ids as there are rows."""
    return logprobs.gather(1, torch.tensor(ids[: len(logprobs)])[:, None])[:, 0]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids at the beginning are the same."""
    return next(
        (at for at, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs), len(one)
    )


def shifts(logprobs: Tensor, ids: Tensor, uniform: Tensor, temperature: float = 1.0) -> Tensor:
    """By how much some log-prob must differ from these, at least, for `sampling.draw` to give these ids [T].

    Not above 0 where it gives them with these log-probs.

    Where no log-prob differs by more than d, no sum of chances changes by more than the factor exp(d): neither that of
    the ids before an id, nor that of the ids after it. So each border of its interval lies within these factors, and
    the uniform number must lie between the borders. Chances of another temperature than 1 are normalised anew: there
    the factor is exp(2 d / temperature).

    Args:
        logprobs: TV, of all ids, at temperature 1.
        ids: T, that were drawn.
        uniform: T, float64, that they were drawn with.
        temperature: above 0.
    """
    chances, order = (logprobs.double() / temperature).softmax(-1), torch.arange(logprobs.shape[-1])
    before = chances.masked_fill(order >= ids[:, None], 0.0).sum(-1)
    after = chances.masked_fill(order <= ids[:, None], 0.0).sum(-1)
    own = chances.gather(1, ids[:, None])[:, 0]
    low, high = uniform.clamp(min=torch.finfo(uniform.dtype).tiny).log(), (-uniform).log1p()
    needed = [before.log() - low, high - (own + after).log(), low - (before + own).log(), after.log() - high]
    return torch.stack(needed).amax(0) * (1.0 if temperature == 1 else temperature / 2)


def _furthest(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest difference of what both have."""
    return max(
        float((left[: len(right)] - right[: len(left)]).abs().max())
        for left, right in zip(one, other, strict=True)
    )
