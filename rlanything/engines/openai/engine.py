"""The engine `openai`: completions from the text of an endpoint."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rlanything.config import Endpoint
from rlanything.core.printable import say
from rlanything.core.types import Completion, Json, Request
from rlanything.engines.openai import text_ids
from rlanything.engines.openai.answers import Reply
from rlanything.engines.openai.asking import Asking
from rlanything.engines.openai.client import Client
from rlanything.engines.openai.kept import Kept, request_id
from rlanything.engines.openai.key import Key
from rlanything.engines.openai.pictures import Find, Pictures, named, plain
from rlanything.engines.openai.usage import Usage

SEED_BITS = 31
"""Bits of a seed that are sent: some servers refuse more."""


class OpenAIEngine:
    """`Engine` over a model behind an OpenAI-compatible endpoint. Sessions and groups are ignored.

    Prompts and responses are ids of `text_ids`. Log-probs are absent: the tuple is empty, whatever the response. A
    reply without a text is an empty completion that has not finished; `usage` counts it.

    Args:
        endpoint: the section of the configuration.
        name: the role, `reward` or `adapter`, for messages and metrics.
        keep: the folder where replies are kept, so that none is paid for twice; None: nowhere.
        find: gives the pictures that requests name; None: there are none to show.
        say: prints a line about a wait, or about replies without a text.

    Raises:
        ConfigError: when the environment has no key under the configured name, or names a proxy of another kind.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        keep: Path | None = None,
        say: Callable[[str], None] = say,
        find: Find | None = None,
    ) -> None:
        self.endpoint, self.name = endpoint, name
        self._say = say
        self._asking = Asking(endpoint, name, Key.of(endpoint, name), say)
        self._kept = Kept(keep)
        self._pictures = Pictures(name, endpoint.max_request_mb, find)
        self._usage = Usage()

    def check(self) -> None:
        """Raise `ConfigError` unless the endpoint is there, accepts the key, and has the model: one request to /models.

        With `lists_models: false` nothing is asked. Raises `MachineError` when the endpoint does not answer.
        """

        async def ask() -> None:
            async with self._asking.client() as client:
                await self._asking.check(client)

        if self.endpoint.lists_models:
            asyncio.run(ask())

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests. Equal requests are asked once.

        Raises:
            ValueError: for a request that cannot be served: choices, or ids that are no prompt of `text_ids`.
            ConfigError: for a request that is longer than `max_request_mb`, and as `Asking.reply`.
            FileError: for a picture that cannot be read. Nothing is asked before.
            MachineError: see `Asking.reply`.
        """
        bodies = [self._body(request) for request in requests]
        names = [
            request_id(self.endpoint.root, self._named(body, request))
            for body, request in zip(bodies, requests, strict=True)
        ]
        counts = [text_ids.tokens_of_pictures(request.prompt_ids) for request in requests]
        wanted = dict(zip(names, zip(bodies, counts, strict=True), strict=True))
        found = {name: reply for name in wanted if (reply := self._kept.get(name)) is not None}
        missing = [(name, *asked) for name, asked in wanted.items() if name not in found]
        if missing:
            self._pictures.check([body for _, body, _ in missing])
            found |= asyncio.run(self._ask(missing))
        for reply in found.values():
            self._usage += Usage.of(reply)
        self._tell(found.values())
        return [_completion(found[name]) for name in names]

    def take_usage(self) -> Usage:
        """What the replies since the last call cost."""
        usage, self._usage = self._usage, Usage()
        return usage

    def sync(self, version: int) -> None:
        """Nothing to do: the endpoint's weights are not ours. Its completions have version 0."""

    def release(self, sessions: Iterable[str]) -> None:
        """Nothing to free."""

    def close(self) -> None:
        """Nothing to free: a connection ends with its call of `generate`."""

    def _body(self, request: Request) -> dict[str, Json]:
        if request.choices:
            raise ValueError("an endpoint returns free text; it cannot be held to choices")
        if request.max_tokens < 1 or request.temperature < 0:
            raise ValueError(
                "a request needs max_tokens of at least 1 and a temperature of at least 0; got "
                f"{request.max_tokens} and {request.temperature}"
            )
        fields: dict[str, Json] = {"temperature": request.temperature, "seed": _seed(request)}
        return {
            **self.endpoint.extra,
            "model": self.endpoint.model,
            "messages": named(text_ids.messages(request.prompt_ids, request.images)),
            self.endpoint.length_field: request.max_tokens,
            **{key: value for key, value in fields.items() if key not in self.endpoint.omit},
        }

    def _named(self, body: dict[str, Json], request: Request) -> dict[str, Json]:
        """What names a request: what is sent, and the seed also where it is not. Votes on a step differ in it alone."""
        return {**body, "seed": _seed(request)} if "seed" in self.endpoint.omit else body

    async def _ask(self, missing: Sequence[tuple[str, dict[str, Json], int]]) -> dict[str, Reply]:
        """Ask for replies, `concurrency` at once. The first error ends all. A reply is kept as soon as it is there.

        missing: name and body of each request, and about how many tokens its pictures have.
        """
        found: dict[str, Reply] = {}
        waiting = iter(missing)

        async def work(client: Client) -> None:
            for name, body, seen in waiting:
                tokens = len(plain(body)) // text_ids.WIDTH + seen + int(body[self.endpoint.length_field])
                # In a thread: while pictures are encoded, the answers to other requests are read.
                data = await asyncio.to_thread(self._pictures.data, body)
                reply = await self._asking.reply(client, data, tokens, shows=seen > 0)
                self._kept.put(name, reply)
                found[name] = reply

        async with self._asking.client() as client:
            workers = [
                asyncio.create_task(work(client)) for _ in range(min(self.endpoint.concurrency, len(missing)))
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return found

    def _tell(self, replies: Iterable[Reply]) -> None:
        for reason, count in Counter(reply.reason for reply in replies if reply.reason).items():
            self._say(f"endpoint of the {self.name}: {count} replies without a text: {reason}")


def _seed(request: Request) -> int:
    """The seed as endpoints take it."""
    return request.seed & ((1 << SEED_BITS) - 1)


def _completion(reply: Reply) -> Completion:
    if reply.reason:
        return Completion((), (), (), False)
    end = (text_ids.END,) if reply.finished else ()
    return Completion((*text_ids.encode(reply.text), *end), (), (), reply.finished)
