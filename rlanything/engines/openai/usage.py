"""What the replies of an endpoint cost: tokens by the server's count, and money at the configured prices."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from rlanything.config import Endpoint
from rlanything.engines.openai.answers import Reply

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """A sum over replies that were used, whether they were asked for now or kept from before a kill.

    empty: replies without a text. cut: replies that reached their longest length. unmetered: replies whose tokens the
    server did not tell; tokens and cost leave them out.
    """

    replies: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    empty: int = 0
    cut: int = 0
    unmetered: int = 0

    @classmethod
    def of(cls, reply: Reply) -> Usage:
        """The usage of one reply."""
        return cls(
            1,
            reply.prompt_tokens or 0,
            reply.reply_tokens or 0,
            int(bool(reply.reason)),
            int(not reply.finished and not reply.reason),
            int(reply.prompt_tokens is None or reply.reply_tokens is None),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def cost(self, endpoint: Endpoint) -> float | None:
        """The price of the tokens; None where the configuration has no prices."""
        if endpoint.input_price is None or endpoint.output_price is None:
            return None
        spent = self.prompt_tokens * endpoint.input_price + self.reply_tokens * endpoint.output_price
        return spent / MILLION

    def metrics(self, name: str, endpoint: Endpoint) -> dict[str, float]:
        """The sums as metrics of the role `name`."""
        found: dict[str, float] = {
            "replies": self.replies,
            "prompt_tokens": self.prompt_tokens,
            "reply_tokens": self.reply_tokens,
            "empty": self.empty,
            "cut": self.cut,
            "unmetered": self.unmetered,
        }
        cost = self.cost(endpoint)
        if cost is not None:
            found["cost"] = cost
        return {f"endpoint/{name}/{key}": value for key, value in found.items()}
