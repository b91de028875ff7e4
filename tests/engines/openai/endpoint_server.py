"""A real HTTP server on this machine that speaks /v1/models and /v1/chat/completions, and fails as it is told to.

With `upstream` it stands in front of another server: what it does not spoil is that server's answer.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-local-5up3rs3cr3t-0123456789"
MODEL = "local-model"
Answer = Callable[[dict[str, Any]], str]
"""From the body of a request to the text of the reply."""


def echo(body: dict[str, Any]) -> str:
    """The last message and the seed."""
    return f"{body['messages'][-1]['content']} {body.get('seed')}"


@dataclass
class Endpoint:
    """A running server. faults: what happens to the next chat requests, one each; '' is a proper answer."""

    answer: Answer = echo
    faults: list[str] = field(default_factory=list)
    always: str = ""
    """The fault of every request after those."""
    key: str | None = KEY
    models: tuple[str, ...] = (MODEL,)
    served: str = ""
    """The name under which the model answers; '': the one that was asked for."""
    usage: bool = True
    upstream: str = ""
    """The address of the server whose answers are given, without a path; '': they are made here."""
    seen: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the chat requests, also of those that failed."""
    paths: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0
    """Most chat requests at once."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def section(self, **changes: Any) -> dict[str, Any]:
        """The section of the configuration that asks this server, with short waits."""
        waits = {"timeout_s": 5.0, "backoff_s": 0.01, "max_backoff_s": 2.0, "attempts": 4}
        names = {"base_url": self.url, "model": MODEL, "key_env": "TEST_ENDPOINT_KEY"}
        return {**names, **waits, **changes}


def completion(server: Endpoint, text: Any, model: str) -> dict[str, Any]:
    """A chat completion."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18} if server.usage else None
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {
        "id": "x",
        "object": "chat.completion",
        "model": server.served or model,
        "choices": [choice],
        "usage": usage,
    }


def error(message: str, code: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers as the plan of the server's endpoint says."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    @property
    def endpoint(self) -> Endpoint:
        return self.server.endpoint

    def do_GET(self) -> None:
        self.endpoint.paths.append(self.path)
        if self.endpoint.upstream:
            self.send(*self.forwarded())
            return
        if not self.allowed():
            return
        listed = [{"id": name, "object": "model"} for name in self.endpoint.models]
        found = self.path == "/v1/models"
        self.send(200 if found else 404, json.dumps({"object": "list", "data": listed}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        one = self.endpoint
        with one.lock:
            one.paths.append(self.path)
            one.seen.append(body)
            one.running += 1
            one.most = max(one.most, one.running)
            fault = one.faults.pop(0) if one.faults else one.always
        try:
            if self.allowed():
                self.fail(fault, body) if fault else self.proper(body)
        finally:
            with one.lock:
                one.running -= 1

    def allowed(self) -> bool:
        key = self.endpoint.key
        given = self.headers.get("Authorization", "")
        if key is None or given == f"Bearer {key}":
            return True
        self.send(401, error(f"Incorrect API key provided: {given}"))
        return False

    def proper(self, body: dict[str, Any]) -> None:
        self.send(*self.made(body, lambda: self.endpoint.answer(body)))

    def made(self, body: dict[str, Any], text: Callable[[], str]) -> tuple[int, bytes]:
        """Status and body of an answer: the other server's where there is one, else one with the text."""
        if self.endpoint.upstream:
            return self.forwarded(json.dumps(body).encode())
        return 200, json.dumps(completion(self.endpoint, text(), body["model"])).encode()

    def forwarded(self, data: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of what the other server answers to this request."""
        headers = {"Authorization": self.headers.get("Authorization", ""), "Content-Type": "application/json"}
        request = urllib.request.Request(self.endpoint.upstream + self.path, data, headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def fail(self, fault: str, body: dict[str, Any]) -> None:
        """The named fault."""
        name, _, value = fault.partition(" ")
        if name.isdecimal():
            headers = {"Retry-After": value} if value else {}
            if name.startswith("3"):
                headers = {"Location": "http://elsewhere.example/v1"}
            self.send(int(name), error(f"fault {name}"), headers)
        elif name == "code":
            status, code = value.split()
            self.send(int(status), error("maximum exceeded", code))
        elif name == "say":
            status, _, words = value.partition(" ")
            self.send(int(status), error(words))
        elif name == "drop":
            linger = struct.pack("ii", 1, 0)  # the connection is reset, not closed
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.wfile = open("/dev/null", "wb")  # noqa: SIM115
            self.connection.close()
        elif name == "truncated":
            _, data = self.made(body, lambda: "half")
            self.send(200, data[: len(data) // 2], {"Content-Length": str(len(data))})
            self.close_connection = True
        elif name == "slow":
            time.sleep(float(value))
            self.proper(body)
        elif name == "drip":
            self.drip(float(value))
        else:
            self.send(200, self.bodies(name, body))

    def drip(self, pause: float) -> None:
        """One byte after the other: no single read takes long."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(pause)

    def bodies(self, name: str, body: dict[str, Any]) -> bytes:
        """The body of a malformed answer with status 200."""
        model, whole = body["model"], self.made(body, lambda: "TEXT")[1].decode()
        return {
            "malformed": whole.encode()[:-9],
            "no_json": b"<html>busy</html>",
            "no_choices": b'{"choices": []}',
            "content": whole.replace('"TEXT"', '["x"]').encode(),
            "null": whole.replace('"TEXT"', "null").encode(),
            "filtered": whole.replace('"stop"', '"content_filter"').encode(),
            "cut": whole.replace('"stop"', '"length"').encode(),
            "not_utf8": whole.replace("TEXT", "T\xff").encode("latin-1", "replace"),
            "surrogate": whole.replace("TEXT", r"a\ud800b").encode(),
            "number": whole.replace("11", "9" * 10_000).encode(),
            "float": whole.replace("11", "1e999").encode(),
            "deep": b'{"choices": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
            "many": b'{"choices": [' + b"[]," * 200_000 + b"[]]}",
            "huge": b'"' + b"x" * (3 << 20) + b'"',
            "other_model": whole.replace(model, "another-model").encode(),
            "error_200": error("overloaded"),
            "key": whole.replace("TEXT", f"your key is {KEY}").encode(),
        }[name]

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A server whose threads end with the test."""

    daemon_threads = True
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no error here."""


@contextmanager
def serving(faults: Sequence[str] = (), **settings: Any) -> Iterator[Endpoint]:
    """A running endpoint."""
    endpoint = Endpoint(faults=list(faults), **settings)
    server = Server(("127.0.0.1", 0), Handler)
    server.endpoint, endpoint.port = endpoint, server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
