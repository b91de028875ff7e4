"""A second process, which computes half of each gradient while embedded models are taught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing.connection import Connection

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transformers import PreTrainedModel

from rlanything.config import Architecture
from rlanything.learn.packing import Row
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.learn.supervised.gradient import Begin, Half, gradient, here
from rlanything.runs import build
from rlanything.runs.workers import Child, conversing


@contextmanager
def second(architecture: Architecture, vocab: int, workers: int) -> Iterator[Begin]:
    """Begin gradients in a process that starts with the first one and ends with the block; with one worker, here."""
    if workers == 1:
        yield here
        return
    with ExitStack() as stack:
        started = cache(lambda: stack.enter_context(conversing(serve, architecture, vocab)))

        def begin(model: PreTrainedModel, rows: Sequence[Row], total: float) -> Half:
            child, pipe = started()
            try:
                pipe.send((rows, total))
                pipe.send_bytes(_packed(list(model.parameters())))
            except OSError:  # it has ended, and `result` says why
                child.result()
                raise
            return lambda: _answer(child, pipe, model)

        yield begin


def _answer(child: Child, pipe: Connection, model: PreTrainedModel) -> tuple[float, list[Tensor]]:
    parameters = list(model.parameters())
    try:
        loss, flat = pipe.recv(), _unpacked(pipe)
    except (EOFError, OSError):
        child.result()
        raise
    parts = flat.split([p.numel() for p in parameters])
    return loss, [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]


def serve(pipe: Connection, architecture: Architecture, vocab: int) -> None:
    """Answer with losses and gradients until the process is killed: those of rows under weights that come with them."""
    build.one_thread()
    model = fresh_model(architecture, vocab, 0, 0, seed=0)  # whose weights are replaced
    model.train()
    while True:
        rows, total = pipe.recv()
        vector_to_parameters(_unpacked(pipe), model.parameters())
        loss, found = gradient(model, rows, total)
        pipe.send(loss)
        pipe.send_bytes(_packed(found))


def _packed(tensors: Sequence[Tensor]) -> bytes:
    return bytes(parameters_to_vector(tensors).detach().numpy().data)


def _unpacked(pipe: Connection) -> Tensor:
    return torch.frombuffer(bytearray(pipe.recv_bytes()), dtype=torch.float32)
