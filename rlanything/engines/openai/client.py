"""One attempt at one request over HTTP: bounded in time and size, without redirects, cookies and saved passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from rlanything.config import Endpoint
from rlanything.engines.openai.answers import Fault, shown
from rlanything.engines.openai.backoff import retry_after
from rlanything.engines.openai.key import Key

PROXIES = ("http", "https")
"""Kinds of proxies that can be asked through."""
_CHUNK = 1 << 16
_USER = re.compile(r"://[^/@\s'\"]*@")
"""The user and password of an address."""


@dataclass(frozen=True, slots=True)
class Response:
    """What the server answered. wait: the seconds of its Retry-After."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    wait: float | None


class Client:
    """A connection to an endpoint, for the length of an `async with`. proxy: its address, see `proxy_of`."""

    def __init__(self, endpoint: Endpoint, key: Key, proxy: str | None = None) -> None:
        self._endpoint, self._key, self._proxy = endpoint, key, proxy
        self._most = endpoint.max_reply_mb << 20

    async def __aenter__(self) -> Client:
        # trust_env stays off: with it, aiohttp would send a password of ~/.netrc in the place of the key.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._endpoint.concurrency),
            timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "rlanything"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: bytes | None = None) -> Response | Fault:
        """The server's answer; a `Fault` where none came, or not all of it."""
        headers = {**self._key.headers(), **({"Content-Type": "application/json"} if body else {})}
        settings: dict[str, Any] = {"proxy": self._proxy, "allow_redirects": False, "headers": headers}
        try:
            async with self._session.request(
                method, self._endpoint.root + path, data=body, **settings
            ) as answer:
                found = await self._read(answer)
        except TimeoutError:
            return Fault(f"no whole answer within {self._endpoint.timeout_s:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said = _without_user(f"{type(error).__name__}: {error}", self._proxy)
            return Fault(shown(self._key.masked(said)))
        if found is None:
            return Fault(f"an answer of more than {self._endpoint.max_reply_mb} MB")
        wait = retry_after(answer.headers.get("Retry-After"))
        return Response(answer.status, answer.headers, found, wait)

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes | None:
        """The body; None when it is longer than allowed. What follows is not read."""
        parts, size = [], 0
        async for part in answer.content.iter_chunked(_CHUNK):
            size += len(part)
            if size > self._most:
                answer.close()
                return None
            parts.append(part)
        return b"".join(parts)


def _without_user(text: str, proxy: str | None = None) -> str:
    """A text whose addresses have no user and no password: that of a proxy may be in an error.

    proxy: its address, whose user and password are found in any form: they may hold what no address should.
    """
    user, found, _ = (proxy or "").partition("://")[2].rpartition("@")
    return _USER.sub("://***@", text.replace(f"{user}@", "***@") if found else text)


def proxy_of(endpoint: Endpoint) -> str | None:
    """The proxy that the environment names for an endpoint; None: none. `HOST:PORT` is one that speaks http.

    `no_proxy` may name a host with or without its port. Raises `ValueError` for a proxy of another kind than `PROXIES`.
    """
    parts = urlsplit(endpoint.root)
    host = parts.hostname or ""
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    with_port = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if endpoint.is_local or proxy_bypass(host) or proxy_bypass(with_port):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is None:
        return None
    if "://" not in proxy:
        return f"http://{proxy}"
    if (kind := proxy.partition("://")[0].lower()) not in PROXIES:  # of the rest nothing is shown: a password
        raise ValueError(
            f"{parts.scheme}_proxy names a proxy of the kind {shown(kind)}://, which is not supported; allowed are "
            f"{' and '.join(PROXIES)}. Name one of these, or put {host} into no_proxy"
        )
    return proxy
