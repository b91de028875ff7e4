"""An engine that samples nothing: it answers with what a run has recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from rlanything.core.printable import shown
from rlanything.core.types import Completion, Request
from rlanything.engines.choices import Cursor
from rlanything.engines.openai import text_ids
from rlanything.loop.record import NotStored

Reply = tuple[str, Sequence[int], Sequence[float]]
"""A recorded reply: what it is, in words, its ids and their log-probs."""
Answer = Callable[[Request], Completion]
NOTHING = Completion((), (), (), finished=True)
"""The answer to a request that the run has no answer to. The run differs there, and whoever compares finds it."""


class RecordedEngine:
    """An engine whose completions are recorded ones. answer: the one to a request, `NOTHING` until it is set."""

    def __init__(self) -> None:
        self.answer: Answer = lambda request: NOTHING

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


class Vocabulary:
    """The ids that a model samples from, and those of them that end a response."""

    def __init__(self, size: int, stops: Collection[int]) -> None:
        self.size, self.stops = size, stops

    def problem(self, request: Request, ids: Sequence[int]) -> str:
        """Why no model gives these ids to the request, whatever its weights; '' where one may.

        Sampling ends at a stop id, or with a complete choice, or else at `max_tokens`.
        """
        if strange := [token for token in ids if not 0 <= token < self.size]:
            return f"it has the id {shown(strange[0])}: no tokens of this model, which has {self.size:,}"
        if len(ids) > request.max_tokens:
            return f"its response has {len(ids)} tokens, and no more than {request.max_tokens} are sampled"
        ends = [place for place, token in enumerate(ids) if token in self.stops]
        if not request.choices and ends and ends[0] + 1 < len(ids):
            return f"its response goes on after token {ends[0]}, which ends it"
        if len(ids) < request.max_tokens and not (_whole(request, ids) if request.choices else ends):
            return f"its response stops after {len(ids)} tokens, and nothing ends it there"
        return ""


def _whole(request: Request, ids: Sequence[int]) -> bool:
    """Whether the ids are one of the request's choices."""
    return tuple(ids) in request.choices


def in_order(replies: Iterable[Reply], vocabulary: Vocabulary | None) -> Answer:
    """Recorded replies in the order in which a run asked for them.

    vocabulary: of the model that gave them; None: an endpoint gave them, as text. The answer raises `NotStored` for a
    reply that no model gives.
    """
    left = iter(replies)

    def answer(request: Request) -> Completion:
        reply = next(left, None)
        if reply is None:
            return NOTHING
        name, ids, logprobs = reply
        if vocabulary is not None and (problem := vocabulary.problem(request, ids)):
            raise NotStored(f"{name}: {problem}")
        return completion(request, ids, logprobs)

    return answer


def by_seed(texts: Mapping[int, str]) -> Answer:
    """Recorded texts by the seed of the request, as ids of `text_ids`; '' where the run has none."""
    return lambda request: Completion(text_ids.encode(texts.get(request.seed, "")), (), (), finished=True)
