"""Two processes share each gradient while embedded models are taught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlanything.learn.packing import Row
from rlanything.learn.supervised.gradient import Begin, Half, gradient, here
from rlanything.runs import build
from rlanything.runs.workers import Child, conversing


@contextmanager
def shared(workers: int) -> Iterator[Begin]:
    """Begin gradients of embedded models of one size in another process; with one worker, here."""
    if workers == 1:
        yield here
        return
    with ExitStack() as stack:
        yield _Beside(stack)


class _Beside:
    """Begins gradients in a process that starts with the first one. It ends with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: tuple[Child, Connection] | None = None

    def __call__(self, model: PreTrainedModel, rows: Sequence[Row], total: float) -> Half:
        if self._started is None:
            self._started = self._stack.enter_context(conversing(serve, model.config))
        child, pipe = self._started
        with _why_it_ended(child):
            pipe.send((rows, total))
            pipe.send_bytes(_packed(list(model.parameters())))

        def answer() -> tuple[float, list[Tensor]]:
            with _why_it_ended(child):
                loss, flat = pipe.recv(), _unpacked(pipe)
            return loss, _parts(flat, list(model.parameters()))

        return answer


@contextmanager
def _why_it_ended(child: Child) -> Iterator[None]:
    """Raise what the process raised, where the connection to it has ended."""
    try:
        yield
    except (EOFError, OSError):
        child.result()
        raise


def serve(pipe: Connection, config: Qwen2Config) -> None:
    """Answer with losses and gradients until the process is killed: those of rows under weights that come with them."""
    build.one_thread()
    model = Qwen2ForCausalLM(config)
    model.train()
    with pipe:  # it ends before an error is sent, so that whoever waits for an answer asks for the error
        while True:
            rows, total = pipe.recv()
            parameters = list(model.parameters())
            for parameter, given in zip(parameters, _parts(_unpacked(pipe), parameters), strict=True):
                parameter.data.copy_(given)
            loss, found = gradient(model, rows, total)
            pipe.send(loss)
            pipe.send_bytes(_packed(found))


def _packed(tensors: Sequence[Tensor]) -> bytes:
    return bytes(parameters_to_vector(tensors).detach().numpy().data)


def _unpacked(pipe: Connection) -> Tensor:
    return torch.frombuffer(bytearray(pipe.recv_bytes()), dtype=torch.float32)


def _parts(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The numbers in the shapes of `like`."""
    parts = flat.split([tensor.numel() for tensor in like])
    return [part.view_as(tensor) for part, tensor in zip(parts, like, strict=True)]
