"""The protocol `Engine` over vLLM in processes of its own. It samples the tokens that the other engines sample."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.core.printable import say
from rlanything.engines.lora.merging import merged_state
from rlanything.engines.vllm import support
from rlanything.engines.vllm.budget import SHARED, too_small
from rlanything.engines.vllm.copying import CopyingEngine
from rlanything.engines.vllm.served import process
from rlanything.engines.vllm.served.addresses import CLAIMS, own_part
from rlanything.engines.vllm.served.fleet import Fleet
from rlanything.engines.vllm.served.placed import Placed
from rlanything.engines.vllm.served.process import Process
from rlanything.engines.vllm.served.server import Server
from rlanything.engines.vllm.served.settings import Serving
from rlanything.engines.vllm.served.store import Store
from rlanything.engines.vllm.served.wire import Limits

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


class VllmServers(CopyingEngine[Fleet]):
    """`Engine` over vLLM's own servers, at least one for each model.

    Servers are started when the engine is first asked, and end with this process, however it ends. A lost server is
    started again, and asked again what it had not answered.

    Args:
        model: the module that is being trained; servers take over its weights at the start and at every `sync`.
        tokenizer: gives the ids that end a response.
        eyes: of a model that reads pictures. It never writes the token of a picture, whose log-prob is -inf.
        The rest: `support.Options` and `settings.Serving`.

    Raises `ValueError` as `CopyingEngine`, and for values that are not allowed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_batch: int = 256,
        cache_gib: float = 1.0,
        max_batched_tokens: int = 8192,
        dtype: str = "auto",
        prefix_caching: bool = True,
        eager: bool = True,
        tolerance: float | None = None,
        lora: str = "auto",
        replicas: int = 1,
        addresses: Sequence[str] = (),
        folder: str | None = None,
        start_s: float = 900.0,
        request_s: float = 600.0,
        restarts: int = 3,
        batch_invariant: bool = False,
        context: int | None = None,
        eyes: Eyes | None = None,
    ) -> None:
        options = support.Options(
            max_batch, cache_gib, max_batched_tokens, dtype, prefix_caching, eager, tolerance, lora, context
        )
        self._serving = Serving(replicas, addresses, folder, start_s, request_s, restarts, batch_invariant)
        self._serving.check_device(model.device.type)
        if not addresses:
            support.check_installed()
        super().__init__(model, tokenizer, options, eyes)
        self._program = process.SIGHTED_PROGRAM if self._sighted else process.PROGRAM
        self._owner = secrets.token_hex(8)
        self._cache_bytes = 0
        self._join()

    @property
    def _salt(self) -> str:
        """See `CopyingEngine`. A server may be known to other programs, so their names must not be the same."""
        return f"{super()._salt} of {self._owner}"

    def close(self) -> None:
        """End the servers that were started here, and give back those that were not."""
        with ExitStack() as stack:
            stack.callback(CLAIMS.leave, self)
            stack.callback(SHARED.leave, self)
            super().close()

    @property
    def _limits(self) -> Limits:
        """Twice as many requests as a server decodes are on their way, so that it need not wait for the next ones.

        With pictures only as many: a server makes the pixels of a request when it arrives, and they are large.
        """
        most = self._options.max_batch
        return Limits(self._serving.request_s, most if self._eyes is not None else 2 * most)

    def _join(self) -> None:
        """Say what the servers need, before any of them starts. Raises `UserError` for too little memory."""
        serving = self._serving
        if not serving.addresses:
            SHARED.join(self, self._total_bytes, serving.replicas * self._least_bytes)
        elif serving.cluster and self._total_bytes < self._least_bytes:
            raise too_small(self._total_bytes, self._least_bytes, "a server needs")

    def _part(self) -> int:
        """Bytes of keys and values of each server: on this machine what all share, on a cluster what each may have."""
        if self._serving.addresses:
            return self._total_bytes
        return SHARED.take(self, self._total_bytes) // self._serving.replicas

    def _start(self) -> Fleet:
        serving = self._serving
        self._cache_bytes = self._part()
        with ExitStack() as undo:
            store = Store(self._model, self._dtype, serving.folder)
            undo.callback(store.close)
            if self._eyes is not None:
                self._eyes.save(store.model)  # a server makes pixels by it
            start = partial(self._process, store=store)
            servers = []
            for number, address in enumerate(self._addresses(store)):
                folder = store.processes / f"server{number}"
                folder.mkdir()
                servers.append(Server(address, start, folder, self._limits, serving.start_s))
            undo.pop_all()
        return Fleet(servers, store, serving.restarts, self._accept, say)

    def _addresses(self, store: Store) -> Sequence[str | None]:
        """Of the servers that are given; None for each that is not."""
        serving = self._serving
        if not serving.addresses or serving.cluster:
            return [None] * serving.replicas
        own = own_part(serving.addresses)
        sees = self._eyes is not None
        return CLAIMS.take(self, own, serving.replicas, store.model, self._context, sees=sees)

    def _process(self, folder: Path, store: Store) -> Process | Placed:
        serving = self._serving
        settings = replace(self._settings(self._cache_bytes), batch_invariant=serving.batch_invariant)
        lora = self._rank > 0
        if serving.cluster:
            read = {
                name: value for name, value in os.environ.items() if name.startswith(("VLLM_", "TRITON_"))
            }
            given = (self._program[1:], store.model, settings, read, lora)
            start = partial(_start_there, given)
            return Placed(serving.cluster, settings.device, start, serving.start_s)
        arguments = process.arguments(store.model, folder / process.SOCKET, settings)
        variables = process.environment(
            settings.device, folder, lora=lora, invariant=settings.batch_invariant
        )
        return Process(self._program, arguments, variables, folder)

    def _take_over(self, instance: Fleet) -> None:
        if self._rank:
            instance.load_lora(self._model, self._salt)
        else:
            instance.load(merged_state(self._model), self._salt)


def _start_there(given: tuple[Any, ...], actor: Any) -> Any:
    return actor.start.remote(*given)
