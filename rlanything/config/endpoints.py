"""Endpoints: servers of a frozen reward model or of the adapter. They speak OpenAI's interface for chats over HTTP."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from rlanything.config.section import LISTED, Positive, Section

RESERVED = frozenset(
    {"model", "messages", "max_tokens", "max_completion_tokens", "temperature", "seed", "n", "stream"}
)
"""Fields of a request that the engine writes. `extra` cannot hold them."""
SECRETS = re.compile(r"api[-_]?key|authorization|token$|secret|password", re.IGNORECASE)
"""Names of fields that look like a secret. A configuration is stored with every run, so it must not hold one."""
ENVIRONMENT_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
"""Capitals only: a key that somebody puts in the place of the name is refused in almost every case."""
ENGINES = ("native", "transformers", "vllm", "vllm_servers")
"""Engines that a model which trains can have. `experiments/engine/` has a file for each."""
NO_ENDPOINT = (
    "an endpoint returns text, not token ids with log-probs, and a model that is trained needs these. Allowed here: "
    f"{', '.join(ENGINES)}. A frozen reward model or the adapter can be an endpoint: "
    "engine@endpoints.reward=openai, engine@endpoints.adapter=openai"
)
Price = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, le=86400)]
ADAPTER = "adapter"
"""The role of the adapter and its critic. They read text alone."""
RESULTS = ("base_url", "model", "answers_as", "context", "length_field", "omit", "extra")
"""The keys that can change a reply. A run does not depend on the others."""


def _keys(value: Any) -> Iterator[str]:
    """The names of all fields in a value, also of nested ones."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


class Endpoint(Section):
    """A model behind an OpenAI-compatible endpoint, and how it is asked. docs/endpoints.md explains every key."""

    base_url: str
    """The address before `/models` and `/chat/completions`, e.g. https://api.openai.com/v1."""
    model: str = Field(min_length=1, max_length=200)
    """The name of the model at the endpoint."""
    answers_as: str | None = None
    """The name under which the endpoint answers, where it is neither `model` nor that with a version after it."""
    key_env: str | None = "OPENAI_API_KEY"
    """The name of the environment variable with the key; None: the endpoint needs no key."""
    context: Positive = 32768
    """Tokens of a prompt with its reply. A prompt is counted in units of three bytes (`engines.openai.text_ids`)."""
    lists_models: bool = True
    """Whether GET /models tells which models there are. If so, it is asked before the work."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of the field with the longest reply."""
    omit: Annotated[tuple[Literal["seed", "temperature"], ...], LISTED] = ()
    """Fields that the endpoint does not accept."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request."""
    concurrency: Annotated[int, Field(gt=0, le=1024)] = 8
    """Requests at once, of one process."""
    requests_per_minute: Positive | None = None
    """The rate limit of one process; None: none but the server's."""
    tokens_per_minute: Positive | None = None
    """The same for tokens: those of the prompts and the longest replies."""
    timeout_s: Seconds = 300.0
    """Longest time of one attempt, from connecting to the last byte."""
    attempts: Annotated[int, Field(gt=0, le=100)] = 8
    """Attempts at a request before it has failed."""
    backoff_s: Seconds = 1.0
    """Longest wait before the second attempt. It doubles with each attempt."""
    max_backoff_s: Seconds = 60.0
    """Longest wait before an attempt. A longer Retry-After of the server ends the run."""
    max_reply_mb: Annotated[int, Field(gt=0, le=1024)] = 8
    """Longest answer of the server, in MB."""
    max_request_mb: Annotated[int, Field(gt=0, le=1024)] = 32
    """Longest request with its pictures, in MB. A longer one ends the run and is not sent."""
    input_price: Price | None = None
    """Price of a million prompt tokens; None: unknown, and no cost is computed."""
    output_price: Price | None = None
    """Price of a million tokens of replies."""

    @field_validator("extra")
    @classmethod
    def _is_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(RESERVED & set(value))
        if taken:
            raise ValueError(f"extra.{taken[0]}: the engine writes this field; leave it out")
        secret = next((key for key in _keys(value) if SECRETS.search(key)), None)
        if secret is not None:
            raise ValueError(
                f"extra.{secret}: looks like a secret, and a configuration is stored; use key_env"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"extra: must be JSON ({error})") from None
        return value

    @model_validator(mode="before")
    @classmethod
    def _is_no_engine(cls, data: Any) -> Any:
        if isinstance(data, dict) and "_target_" in data:
            raise ValueError(
                "only the engine openai can stand here; for an engine of checkpoints set it to null"
            )
        return data

    # Validators of the whole section: a message about one key would show its value, which may hold a secret.

    @model_validator(mode="after")
    def _is_address(self) -> Endpoint:
        try:
            parts = urlsplit(self.base_url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urlsplit(""), None
        if any(
            mark in self.base_url for mark in "@?#"
        ):  # a mark alone would stand before the rest of the path
            raise ValueError(
                "base_url: must hold no user, password, query or fragment, because the configuration is stored with "
                "every run; the key belongs in the environment variable that key_env names"
            )
        plain = self.base_url.isascii() and not re.search(r"[\s\x00-\x1f\x7f]", self.base_url)
        if parts.scheme not in ("http", "https") or not host or not plain:
            shown = ascii(self.base_url[:200])
            raise ValueError(f"base_url = {shown}: must be an address, e.g. https://api.openai.com/v1")
        return self

    @model_validator(mode="after")
    def _protects_key(self) -> Endpoint:
        if self.key_env is not None and not ENVIRONMENT_NAME.fullmatch(self.key_env):
            raise ValueError(
                "key_env: must be the name of an environment variable in capitals, e.g. OPENAI_API_KEY, and not the "
                "key itself; null: the endpoint needs no key"
            )
        plain = urlsplit(self.base_url).scheme != "https"  # in whatever letters it is written
        if self.key_env is not None and plain and not self.is_local:
            raise ValueError(
                f"base_url = {self.base_url!r}: a key would travel unencrypted; allowed: https://, http:// to this "
                "machine, or key_env: null for an endpoint without a key"
            )
        return self

    @model_validator(mode="after")
    def _is_consistent(self) -> Endpoint:
        if self.max_backoff_s < self.backoff_s:
            raise ValueError(
                f"backoff_s = {self.backoff_s} must be at most max_backoff_s = {self.max_backoff_s}"
            )
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("input_price, output_price: give both, or neither")
        return self

    @property
    def root(self) -> str:
        """The address without a slash at its end."""
        return self.base_url.rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether the address is this machine's own."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


class Endpoints(Section):
    """The models that an endpoint serves, in the place of a checkpoint that has the same name elsewhere."""

    reward: Endpoint | None = None
    """The reward model of arms that do not train it."""
    adapter: Endpoint | None = None
    """The adapter, and the critic that is a model."""

    judges: dict[str, Endpoint] = Field(default_factory=dict)
    """Judges of `evaluate.judges` that label the final panels, by their names."""

    @property
    def served(self) -> dict[str, Endpoint]:
        """The endpoints by role (`reward`, `adapter`, `judges.<name>`), without roles that have none."""
        roles = {"reward": self.reward, ADAPTER: self.adapter}
        found = {role: endpoint for role, endpoint in roles.items() if endpoint is not None}
        return found | {judge_role(name): endpoint for name, endpoint in self.judges.items()}


def judge_role(name: str) -> str:
    """The role of a judge of `evaluate.judges`."""
    return f"judges.{name}"
