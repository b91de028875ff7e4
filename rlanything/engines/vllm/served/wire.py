"""What is sent to vLLM's server and read from it. An answer that does not hold together is a lost one."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from rlanything.core.errors import MachineError
from rlanything.core.printable import one_line
from rlanything.core.types import Json
from rlanything.engines.vllm.instance import Ask, seen_as
from rlanything.engines.vllm.support import KEY

UNIX = "unix:"
"""How the address of a server at a Unix socket begins."""
LOADING = "loading "
"""How the name of weights begins that a server is taking over."""
SHOWN = 300
"""How many characters of a server's words are shown."""
NO_NUMBER = -9999.0
"""What vLLM's server sends in the place of a log-prob that is no number, or below this."""
HINTS = {
    403: "start it with --enable-scale-out",
    404: "start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out, in version 0.32",
}
LOAD_LORA, FORGET_LORA = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
HINTS_OF = dict.fromkeys(
    (LOAD_LORA, FORGET_LORA),
    "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, --enable-lora and --max-lora-rank, or take engine.lora=merged",
)
"""What a server must be started with to answer these paths."""
UNKNOWN = 404
"""The status of an answer about weights that a server does not have."""


class LostError(MachineError):
    """A server gave no answer that can be used. Whoever asked can ask again."""


class SwappedError(LostError):
    """Other weights than those that were asked for drew the tokens."""


class RefusedError(MachineError):
    """A server refuses what it is asked. Asking again does not help. status: of HTTP."""

    def __init__(self, told: str, status: int) -> None:
        super().__init__(told)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """What a server is allowed, and given.

    timeout_s: longest time of one call, seconds. Of many questions: the longest time in which none of them is answered.
    at_once: requests that are on their way together.
    """

    timeout_s: float
    at_once: int


class Client:
    """Connections to one server, for the length of an `async with`."""

    def __init__(self, address: str, limits: Limits) -> None:
        self._address, self.limits = address, limits

    async def __aenter__(self) -> Client:
        # A kept connection may be closed by the server in the moment in which it is used, so none is kept.
        unix = self._address.startswith(UNIX)
        connector: aiohttp.BaseConnector = (
            aiohttp.UnixConnector(self._address.removeprefix(UNIX), force_close=True, limit=0)
            if unix
            else aiohttp.TCPConnector(force_close=True, limit=0)
        )
        self._root = "http://server" if unix else self._address.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._free = asyncio.Semaphore(self.limits.at_once)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Json = None) -> Json:
        """The JSON value of an answer; None where it is empty. Raises `LostError` and `RefusedError`."""
        async with self._free:
            return await self._call(method, path, body)

    async def text(self, method: str, path: str, body: Json = None) -> str:
        """An answer as it is. Raises `LostError` and `RefusedError`."""
        async with self._free:
            return await self._text(method, path, body)

    async def _call(self, method: str, path: str, body: Json, *, timed: bool = True) -> Json:
        text = await self._text(method, path, body, timed=timed)
        try:
            return json.loads(text) if text else None
        except RecursionError:
            raise LostError(f"{path}: the answer is nested too deeply: {one_line(text)[:SHOWN]}") from None
        except ValueError:
            raise LostError(f"{path}: the answer is no JSON: {one_line(text)[:SHOWN]}") from None

    async def _text(self, method: str, path: str, body: Json, *, timed: bool = True) -> str:
        limit = aiohttp.ClientTimeout(total=self.limits.timeout_s if timed else None)
        try:
            async with self._session.request(
                method, self._root + path, json=body, allow_redirects=False, timeout=limit
            ) as answer:
                text, status = await answer.text(errors="replace"), answer.status
        except TimeoutError:
            raise LostError(f"{path}: no whole answer within {self.limits.timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # the last for a host that cannot be
            raise LostError(f"{path}: {type(error).__name__}: {one_line(str(error))[:SHOWN]}") from None
        if status >= 500:
            raise LostError(f"{path}: HTTP {status}: {one_line(text)[:SHOWN]}")
        if status != 200:
            told = f"{path}: HTTP {status}: {one_line(text)[:SHOWN]}"
            hint = HINTS_OF.get(path, HINTS.get(status)) if _is_closed(status, text) else None
            raise RefusedError(f"{told}; {hint}" if hint else told, status)
        return text

    async def load(self, folder: Path) -> None:
        """Let the server take over the whole state in a folder. Raises as `call`."""
        reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        await self.call("POST", "/collective_rpc", reload)

    async def load_lora(self, name: str, folder: Path) -> None:
        """Let the server take over LoRA's weights in a folder, under a name that it does not have. Raises as `call`."""
        await self.text("POST", LOAD_LORA, {"lora_name": name, "lora_path": str(folder)})

    async def forget_lora(self, name: str) -> bool:
        """Let the server forget the name of LoRA's weights. Returns whether it had it. Raises as `call`.

        It has room for one, and drops the last ones by itself.
        """
        try:
            await self.text("POST", FORGET_LORA, {"lora_name": name})
        except RefusedError as refused:
            if refused.status != UNKNOWN:
                raise
            return False
        return True

    async def name(self, name: str) -> None:
        """Let the server call its weights `name`. Every answer says the name then."""
        await self.call("POST", "/update_weight_version", {"new_version": name})

    async def generate(self, ask: Ask, name: str, *, lora: bool = False) -> tuple[list[int], list[float]]:
        """Ids and log-probs of the drawn tokens. lora: whether LoRA's weights of this name draw.

        It takes as long as it takes: the server may have others to answer first. See `generate_all`.

        Raises:
            LostError: for an answer that cannot be used. `SwappedError`: other weights than `name` drew the tokens.
            RefusedError: where the server refuses the question, such as a prompt that does not fit.
            FileError: for a picture that is not there.
        """
        try:
            async with self._free:  # pictures are read in turn, because many prompts wait
                body = question(ask, name) | ({"model": name} if lora else {})
                answer = await self._call("POST", "/inference/v1/generate", body, timed=False)
        except RefusedError as refused:
            if not (lora and refused.status == UNKNOWN):
                raise
            raise SwappedError(
                f"it does not have LoRA's weights {name!r}: it is a new one ({refused})"
            ) from None
        return read(answer, ask, name)


def _is_closed(status: int, text: str) -> bool:
    """Whether a server was started without a path. vLLM's own answers about what it does not have hold an `error`."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    return status == 403 or (status == 404 and not (isinstance(told, dict) and "error" in told))


def question(ask: Ask, name: str) -> dict[str, Json]:
    """The body of a request, with the bytes of its pictures. Raises `FileError` for one that is not there."""
    body: dict[str, Json] = {
        "token_ids": list(ask.prompt),
        "cache_salt": name,
        "sampling_params": {
            "temperature": 0.0,
            "logprobs": 0,
            "max_tokens": ask.max_tokens,
            "stop_token_ids": list(ask.stops),
            "ignore_eos": True,
            "detokenize": False,
            "extra_args": {KEY: dict(ask.arguments)},
        },
    }
    if ask.pictures:
        body["content_parts"] = [
            {
                "type": "image_url",
                "url": "data:image/png;base64," + base64.b64encode(place.find(place.name).png).decode(),
                "uuid": seen_as(place.name, name),
            }
            for place in ask.pictures
        ]
    return body


def read(answer: Json, ask: Ask, name: str) -> tuple[list[int], list[float]]:
    """Ids and log-probs in an answer of `/inference/v1/generate`. NaN: the logits of a token were not finite.

    Raises `LostError` for an answer of another form or that was broken off, and `SwappedError` for tokens that other
    weights than `name` have drawn.
    """
    try:
        (choice,) = answer["choices"]
        ids, drawn = list(choice["token_ids"]), choice["logprobs"]["content"]
        logprobs = [float(one["logprob"]) for one in drawn]
        same = [one["token_id"] for one in drawn] == ids
        versions = [(one["version"], one["start"], one["end"]) for one in choice["weight_versions"]]
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise LostError(
            f"an answer of another form ({type(error).__name__}: {one_line(str(error))[:SHOWN]})"
        ) from None
    whole = all(isinstance(token, int) and token >= 0 for token in ids) and 0 < len(ids) <= ask.max_tokens
    if not (same and whole):
        raise LostError(f"{len(ids)} ids with {len(logprobs)} log-probs, for at most {ask.max_tokens} tokens")
    # A server that is stopped sends what it has so far, as an answer (`finish_reason: abort`).
    if len(ids) < ask.max_tokens and ids[-1] not in ask.stops:
        raise LostError(f"an answer that was broken off after {len(ids)} of {ask.max_tokens} tokens")
    if versions != [(name, 0, len(ids))]:
        told = one_line(", ".join(str(version) for version, _, _ in versions))[:SHOWN]
        why = "another program gave it weights, or it is a new one"
        raise SwappedError(f"{told!r} are the weights that sampled, not {name!r}: {why}")
    return ids, [float("nan") if value <= NO_NUMBER else value for value in logprobs]


async def generate_all(
    client: Client,
    asked: Mapping[int, Ask],
    name: str,
    found: dict[int, tuple[list[int], list[float]]],
    *,
    lora: bool = False,
) -> None:
    """Ask all questions, and put the answers under their numbers into `found`. lora: see `Client.generate`.

    Raises the first error, and `LostError` where the server answers none of them for too long: a request may wait for
    all that were asked before it. What was answered stays, what was not is cancelled.
    """
    loop, longest = asyncio.get_running_loop(), client.limits.timeout_s

    async def one(number: int) -> None:
        found[number] = await client.generate(asked[number], name, lora=lora)
        if not clock.expired():
            clock.reschedule(loop.time() + longest)

    try:
        async with asyncio.timeout(longest) as clock:
            await together(one(number) for number in asked)
    except TimeoutError:
        left = len(asked.keys() - found.keys())
        raise LostError(f"no request was answered for {longest:g} s, and {left} wait") from None


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it side by side. Raises the first error; then what is not done is cancelled."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
