"""An engine that samples nothing: it answers with what a run has recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rlanything.core.types import Completion, Request
from rlanything.engines.choices import Cursor
from rlanything.engines.openai import text_ids

Answer = Callable[[Request], Completion]
NOTHING = Completion((), (), (), finished=True)
"""The answer to a request that the run has no answer to. The run differs there, and whoever compares finds it."""


class RecordedEngine:
    """An engine whose completions are recorded ones. answer: the one to a request; it may be exchanged."""

    def __init__(self, answer: Answer = lambda request: NOTHING) -> None:
        self.answer = answer

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `core.protocols.Engine`."""
        return [self.answer(request) for request in requests]

    def release(self, sessions: Sequence[str]) -> None:
        """Nothing: it has no caches."""

    def sync(self, version: int) -> None:
        """Nothing: it has no weights."""

    def close(self) -> None:
        """Nothing: it holds nothing."""


def completion(
    request: Request, ids: Sequence[int], logprobs: Sequence[float], version: int = 0
) -> Completion:
    """A recorded completion. Its allowed ids follow from the request, and not from the record.

    They end at the first token that is not allowed, or is one too many.
    """
    allowed = tuple(_allowed(request, ids)) if request.choices else ()
    return Completion(tuple(ids), tuple(logprobs), allowed, finished=True, version=version)


def _allowed(request: Request, ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    cursor = Cursor(request.choices)
    for token in ids[: request.max_tokens]:
        if token not in cursor.allowed:
            return
        yield cursor.allowed
        cursor.advance(token)


def in_order(replies: Iterable[tuple[Sequence[int], Sequence[float]]]) -> Answer:
    """Recorded replies, ids and log-probs, in the order in which a run asked for them."""
    left = iter(replies)

    def answer(request: Request) -> Completion:
        reply = next(left, None)
        return NOTHING if reply is None else completion(request, *reply)

    return answer


def by_seed(texts: Mapping[int, str]) -> Answer:
    """Recorded texts by the seed of the request, as ids of `text_ids`; '' where the run has none."""
    return lambda request: Completion(text_ids.encode(texts.get(request.seed, "")), (), (), finished=True)
