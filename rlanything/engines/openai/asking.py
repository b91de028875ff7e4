"""Asks until there is a reply: repeats what failed, keeps to the rate limits, and ends where no attempt can help."""

from __future__ import annotations

import asyncio
import difflib
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from rlanything.config import Endpoint
from rlanything.core.errors import ConfigError, MachineError, unknown
from rlanything.engines.openai import answers
from rlanything.engines.openai.answers import Fault, Refused, Reply
from rlanything.engines.openai.backoff import Bucket, delay
from rlanything.engines.openai.client import Client, Response, proxy_of
from rlanything.engines.openai.key import Key

T = TypeVar("T")
MOST_NAMES, SHOWN_NAMES = 1000, 10
"""Names of an endpoint's models that are compared with the wanted one, and that are shown."""
_DATE = r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?|[0-9]{2}-[0-9]{2}|[0-9]{2}-[0-9]{4}"
VERSION = re.compile(rf"-({_DATE}|[0-9]{{3,8}}|v[0-9]+(\.[0-9]+)*|latest)|[:@].+", re.DOTALL)
"""What may follow the name of a model in an answer: a date, a number of three digits or more (`0613`, `002`), a number
after a v, or `latest`, after a hyphen; or a tag."""
UNLISTED = (404, 405, 501)
"""Statuses of a server that lists no models. The address may be wrong as well."""
SAY_EVERY = 5.0
"""Seconds between two lines about waiting."""


class Asking:
    """One endpoint and its limits. name: the role, for messages. say: prints a line about a wait.

    Raises `ConfigError` where the environment names a proxy that cannot be used.
    """

    def __init__(self, endpoint: Endpoint, name: str, key: Key, say: Callable[[str], None]) -> None:
        self.endpoint, self.name, self.key = endpoint, name, key
        self._say = say
        self._draw = (
            random.Random()
        )  # not seeded by the run: processes that failed together must not wait alike
        self._requests = Bucket(endpoint.requests_per_minute)
        self._tokens = Bucket(endpoint.tokens_per_minute)
        self._resume_at = self._said_at = 0.0
        try:
            self._proxy = proxy_of(endpoint)
        except ValueError as error:
            raise ConfigError(self._message("base_url", f"{endpoint.root!r}: {error}")) from None

    def client(self) -> Client:
        """A connection, for an `async with`."""
        return Client(self.endpoint, self.key, self._proxy)

    async def reply(self, client: Client, body: bytes, tokens: int, *, shows: bool = False) -> Reply:
        """The reply to one request. tokens: what it may use at most, for the rate limit. shows: it has pictures.

        Raises:
            ConfigError: when the endpoint refuses the key, the model, the address, the pictures or the request.
            MachineError: when every attempt failed, or the endpoint asks to wait longer than `max_backoff_s`.
        """

        async def attempt() -> Reply | Fault | Refused:
            await self._limited(tokens)
            found = await client.send("POST", "/chat/completions", body)
            return found if isinstance(found, Fault) else self._read(found, shows)

        found = await self._repeat(attempt)
        if not isinstance(found, Fault):
            return found
        if found.final is None:
            raise self._failure(found)
        return found.final

    async def check(self, client: Client) -> None:
        """Ask which models the endpoint has. Raises `ConfigError` when it lacks the configured one; else as `reply`."""
        hint = f"an endpoint that lists no models needs endpoints.{self.name}.lists_models=false"

        async def attempt() -> list[str] | Fault | Refused:
            found = await client.send("GET", "/models")
            if isinstance(found, Fault):
                return found
            if found.status == 200:
                listed = answers.names(found.body, self.key.masked)
                return (
                    Fault(f"unreadable list of models: {listed}; {hint}")
                    if isinstance(listed, str)
                    else listed
                )
            read = self._read(found)
            if found.status in UNLISTED or isinstance(read, Reply):
                return Refused(f"GET /models: {read.reason}; {hint}", found.status)
            return read

        listed = await self._repeat(attempt)
        if isinstance(listed, Fault):
            raise self._failure(listed)
        if not any(same_model(name, self.endpoint.model) for name in listed):
            raise ConfigError(
                self._message("model", f"{self.endpoint.model!r}: {_nearest(self.endpoint.model, listed)}")
            )

    def _read(self, found: Response, shows: bool = False) -> Reply | Fault | Refused:
        read = answers.read(found.status, found.headers, found.body, found.wait, self.key.masked, shows=shows)
        if isinstance(read, Reply) and read.model:
            wanted = self.endpoint.answers_as or self.endpoint.model
            if not same_model(read.model, wanted):
                return Refused(
                    f"the endpoint answers as {read.model!r}, not {wanted!r}; if that is the same model, set "
                    f"endpoints.{self.name}.answers_as"
                )
        return read

    async def _repeat(self, attempt: Callable[[], Awaitable[T | Fault | Refused]]) -> T | Fault:
        """What the first attempt that succeeds returns; the last fault where none does. Raises `ConfigError`."""
        most = self.endpoint.attempts
        for number in range(1, most + 1):
            found = await attempt()
            if isinstance(found, Refused):
                raise ConfigError(self._refusal(found))
            if not isinstance(found, Fault) or number == most:
                return found
            await self._back_off(found, number)
        raise AssertionError("a request has at least one attempt")

    def _failure(self, fault: Fault) -> MachineError:
        """The error that ends the run when every attempt has failed."""
        return MachineError(
            f"endpoints.{self.name}: {self.endpoint.root} failed in {self.endpoint.attempts} attempts; the last: "
            f"{fault.reason}. What is published stays, and the same command goes on from there"
        )

    async def _back_off(self, fault: Fault, number: int) -> None:
        """Wait after failed attempt `number`. After a Retry-After every request waits."""
        endpoint = self.endpoint
        wait = delay(number, endpoint.backoff_s, endpoint.max_backoff_s, self._draw)
        if fault.retry_after is not None:
            if fault.retry_after > endpoint.max_backoff_s:
                raise MachineError(
                    f"endpoints.{self.name}: {fault.reason}, and the endpoint asks to wait {fault.retry_after:.0f} s, "
                    f"longer than max_backoff_s = {endpoint.max_backoff_s:g}. The same command goes on later"
                )
            # Never shorter than without it: 0, or a date that has passed, says little of when to come back.
            wait = max(wait, fault.retry_after + self._draw.uniform(0.0, endpoint.backoff_s))
            self._resume_at = max(self._resume_at, time.monotonic() + fault.retry_after)
        self._tell(f"{fault.reason}; attempt {number + 1} of {endpoint.attempts} in {wait:.1f} s")
        await asyncio.sleep(wait)

    def _refusal(self, found: Refused) -> str:
        """What to do about an endpoint that refuses."""
        endpoint = self.endpoint
        if found.status in (401, 403) and endpoint.key_env is None:
            return self._message("key_env", f"null: the endpoint wants a key ({found.reason})")
        if found.status in (401, 403):
            return self._message(
                "key_env", f"{endpoint.key_env}: the endpoint refuses the key in it ({found.reason})"
            )
        if found.of_pictures and found.status == 413:
            return self._message(
                "base_url",
                f"{endpoint.root!r}: a request with pictures is too long for the endpoint ({found.reason}); show fewer "
                "or smaller pictures (model.images.reward)",
            )
        if found.of_pictures:
            return self._message(
                "model",
                f"{endpoint.model!r}: the endpoint refuses the pictures of a request ({found.reason}). Name a model "
                "that reads pictures, set model.images.reward to 0, or show fewer or smaller pictures "
                "(model.images.reward)",
            )
        if found.status == 404:
            return self._message(
                "base_url",
                f"{endpoint.root!r}, model = {endpoint.model!r}: one of them is not there ({found.reason})",
            )
        if not found.status:
            return self._message("model", f"{endpoint.model!r}: {found.reason}")
        return self._message(
            "base_url", f"{endpoint.root!r}: the endpoint refuses the request ({found.reason})"
        )

    def _message(self, key: str, text: str) -> str:
        return f"endpoints.{self.name}.{key} = {text}"

    async def _limited(self, tokens: int) -> None:
        """Wait for the rate limits, and for a pause that the server has asked for."""
        wait = max(self._requests.take(1), self._tokens.take(tokens))
        if wait >= 1:
            self._tell(f"waiting {wait:.0f} s for the rate limit")
        await asyncio.sleep(wait)
        while (pause := self._resume_at - time.monotonic()) > 0:
            await asyncio.sleep(pause)

    def _tell(self, text: str) -> None:
        """Print a line, unless one was printed a moment ago: many requests wait at once."""
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY or not self._said_at:
            self._said_at = now
            self._say(f"endpoint of the {self.name}: {text}")


def _nearest(wanted: str, listed: Sequence[str]) -> str:
    """'unknown; ...' with the models that the endpoint has; of many, those with the nearest names."""
    names = [answers.shown(name) for name in listed[:MOST_NAMES]]
    if not names:
        return "the endpoint lists no models"
    near = difflib.get_close_matches(wanted, names, n=SHOWN_NAMES, cutoff=0.3) or names[:SHOWN_NAMES]
    more = len(names) - len(near)
    return unknown(wanted, near) + (f" and {more} more" if more else "")


def same_model(name: str, wanted: str) -> bool:
    """Whether a server's name is of the wanted model: the same, or with a version after it (`gpt-4o-2024-08-06`).

    Other words after a hyphen are another model (`gpt-4o-mini`), and so are numbers of one or two digits: `claude-3-5`
    is no version of `claude-3`. After a colon or an @ is a tag of the same model.
    """
    return name == wanted or (name.startswith(wanted) and bool(VERSION.fullmatch(name[len(wanted) :])))
