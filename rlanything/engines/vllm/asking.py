"""What vLLM is asked for a draft, and what is taken from its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rlanything.engines.decode import Draft
from rlanything.engines.vllm.instance import Ask

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

Choices = tuple[tuple[int, ...], ...]


def ask(draft: Draft, stops: Collection[int], vocabulary: int, eyes: Eyes | None = None) -> Ask:
    """The question for the rest of a draft. Tokens that its choices force at the beginning belong to the prompt.

    eyes: of a model that reads pictures. Raises as `Eyes.places`.
    """
    request, forced = draft.request, tuple(draft.ids)
    choices = tuple(choice[len(forced) :] for choice in request.choices if choice[: len(forced)] == forced)
    end = _unused(choices, vocabulary)
    if choices:
        ends = [*_deciding(choices), *([] if end is None else [end])]
    else:
        # vLLM refuses ids that the model does not have.
        ends = sorted(stop for stop in stops if stop < vocabulary)
    return Ask(
        prompt=request.prompt_ids + forced,
        max_tokens=request.max_tokens - len(forced),
        stops=ends,
        arguments={
            "seed": request.seed,
            "offset": len(forced),
            "temperature": request.temperature,
            "choices": choices,
            "end": end or 0,
            "never": None if eyes is None else eyes.token,
        },
        session=request.session or request.group,
        pictures=eyes.places(request.prompt_ids, request.images) if eyes else (),
    )


def take(draft: Draft, ids: Sequence[int], logprobs: Sequence[float]) -> None:
    """Append what was sampled. Forced tokens inside a choice were sampled too; the draft adds them itself.

    Raises `ValueError` when the logits of a token were not finite.
    """
    start = len(draft.ids)
    for position, (token, logprob) in enumerate(zip(ids, logprobs, strict=True), start):
        if logprob != logprob:
            raise ValueError("the model gives logits that are not finite: its weights have diverged")
        if draft.done:
            return  # vLLM has added the id that stands for the end of a choice
        if position == len(draft.ids):
            draft.take(token, logprob, draft.options())


@lru_cache(maxsize=4096)
def _deciding(choices: Choices) -> tuple[int, ...]:
    """The ids after which, wherever they are drawn, only one choice is left. A response can end with them.

    The rollouts of one task offer the same choices, so the answer is kept.
    """
    deciding, others = set(), set()
    levels = [(sorted(set(choices)), 0)]
    while levels:
        rows, depth = levels.pop()
        for token, beginning in groupby(rows, key=itemgetter(depth)):
            group = list(beginning)
            if len(group) == 1:
                deciding.add(token)
            else:
                others.add(token)
                levels.append((group, depth + 1))
    return tuple(sorted(deciding - others))


def _unused(choices: Choices, vocabulary: int) -> int | None:
    """The smallest id that is in no choice. None if all are; then vLLM goes on to `max_tokens`, and it is ignored."""
    used = {token for choice in choices for token in choice}
    return next((token for token in range(vocabulary) if token not in used), None)
