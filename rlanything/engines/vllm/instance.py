"""vLLM itself: started, given weights, asked, and stopped."""

from __future__ import annotations

import gc
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import UserError
from rlanything.engines.lora.files import save_lora
from rlanything.engines.vllm import ending
from rlanything.engines.vllm.support import KEY
from rlanything.engines.vllm.surroundings import restored

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes, Place

BLOCK = 32
"""Tokens of one block of the cache: the smallest that vLLM has on a CPU, so that most of a common prefix is shared."""
SEEING = {"skip_mm_profiling": True, "mm_device_do_normalize": False, "mm_processor_cache_gb": 0}
"""How vLLM is started for a model that reads pictures: memory is not measured with one, pixels come as the model reads
them, and are not kept."""
GRAPHS = {
    "compilation_config": {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"},  # mode 0: no torch.compile
    "kernel_config": {"enable_jit_warmup": False},  # as without graphs
}
"""How vLLM is started with CUDA graphs: those of passes that only decode, of the kernels that it has without graphs. So
nothing is compiled, and rounding is the same. On a CPU vLLM makes no graphs."""


@dataclass(frozen=True)
class Settings:
    """How vLLM is started.

    dtype: `float32` or `bfloat16`. context: positions. cache_bytes: of keys and values. eager: without `GRAPHS`.
    lora_rank: the highest rank of LoRA's weights that are kept apart, of `support.RANKS`; 0: there are none.
    loras: how many models have such weights at the same time.
    sighted: whether the model is one of those that read pictures.
    batch_invariant: whether a server has kernels that give a request the same bits in any batch.
    """

    device: str
    dtype: str
    context: int
    max_batch: int
    max_batched_tokens: int
    cache_bytes: int
    prefix_caching: bool
    eager: bool
    lora_rank: int = 0
    loras: int = 1
    sighted: bool = False
    batch_invariant: bool = False


@dataclass(frozen=True)
class Ask:
    """A prompt to continue. arguments: those of `draw.Row`. stops: ids that end the response.

    session: the name of prompts with a common beginning, or ''. pictures: where the prompt shows which.
    """

    prompt: Sequence[int]
    max_tokens: int
    stops: Sequence[int]
    arguments: Mapping[str, Any]
    session: str = ""
    pictures: Sequence[Place] = ()


def seen_as(name: str, salt: str) -> str:
    """The name under which vLLM keeps what it has seen of a picture, and the prefixes after it.

    With the salt it is a name for one state of the weights: vLLM's scheduler does not know that others see otherwise.
    """
    return f"{name} by {salt}"


class Instance:
    """A running vLLM with the architecture of a model. Its weights are random until `load`.

    Raises `UserError` when vLLM cannot be imported, or cannot run the model. The message holds vLLM's own words.
    """

    def __init__(self, model: PreTrainedModel, settings: Settings) -> None:
        self._most = settings.max_batch
        with restored(settings.device), tempfile.TemporaryDirectory(prefix="rlanything-vllm-") as folder:
            save_config(model, folder)
            with _explained():
                self._llm = _start(folder, settings)
        self._given = 0
        ending.RUNNING.add(self)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights in place. `weights` must be the whole state of the module, with a tied head by its name.

        vLLM reloads the parameters that it is given and keeps the others, without an error.
        """
        with torch.no_grad():
            given = {"weights_iterator": iter(weights.items())}
            self._llm.collective_rpc("reload_weights", kwargs=given)

    def add_lora(self, model: PreTrainedModel) -> int:
        """Take over LoRA's weights of a model, beside those that are there. Returns their number, never given twice.

        Raises `UserError` for what vLLM does not take.
        """
        from vllm.lora.request import LoRARequest

        self._given += 1
        with _explained(), tempfile.TemporaryDirectory(prefix="rlanything-lora-") as folder:
            save_lora(model, Path(folder), "")
            self._llm.llm_engine.add_lora(LoRARequest(f"{self._given}", self._given, folder))
        return self._given

    def drop_lora(self, number: int) -> None:
        """Forget LoRA's weights."""
        self._llm.llm_engine.remove_lora(number)

    def generate(
        self, asked: Sequence[Ask], salt: str, lora: int | None = None, eyes: Eyes | None = None
    ) -> list[tuple[list[int], list[float]]]:
        """Ids and logits of the drawn tokens (`draw`) for each prompt.

        salt: cached prefixes are found again only under the salt that they were computed with.
        lora: the number of LoRA's weights that sample; None: none do.
        eyes: make the pixels of pictures; None: prompts show none. They are of whoever asks: engines that share an
            instance may have other ones.

        vLLM has no more prompts at a time than it decodes together: pixels are large.

        Raises `FileError` for a picture that is not there, `MachineError` for one that cannot be decoded, and
        `ValueError` for pictures without eyes.
        """
        engine, found = self._llm.llm_engine, dict[int, tuple[list[int], list[float]]]()
        waiting, named = deque(enumerate(asked)), _named(lora)
        while len(found) < len(asked):
            while waiting and engine.get_num_unfinished_requests() < self._most:
                number, ask = waiting.popleft()
                engine.add_request(str(number), _prompt(ask, salt, eyes), _params(ask), lora_request=named)
            for output in engine.step():
                found[int(output.request_id)] = _sampled(output.outputs[0])
        return [found[number] for number in range(len(asked))]

    def close(self) -> None:
        """Free weights and caches. What the instances of a process have in common goes with the last one."""
        ending.RUNNING.discard(self)
        self._llm.apply_model(ending.forget)
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm
        gc.collect()  # its objects refer to each other


def save_config(model: PreTrainedModel, folder: str | Path) -> None:
    """Write what vLLM needs of a model besides its weights."""
    config = copy(model.config)
    config.architectures = [type(model).__name__]  # a model that was never saved does not say it
    config.save_pretrained(folder)


def _named(lora: int | None) -> Any:
    """What vLLM calls LoRA's weights that it has. Nothing is read from the path: it is a name for cached prefixes."""
    from vllm.lora.request import LoRARequest

    return None if lora is None else LoRARequest(f"{lora}", lora, f"lora {lora}")


def _prompt(ask: Ask, salt: str, eyes: Eyes | None) -> Any:
    """A prompt as vLLM takes it. Raises as `Instance.generate`."""
    if not ask.pictures:
        from vllm.inputs import tokens_input

        return tokens_input(list(ask.prompt), cache_salt=salt)
    if eyes is None:
        raise ValueError("a prompt shows pictures, and this engine has no eyes")
    from rlanything.engines.vllm import sighted

    names = [seen_as(place.name, salt) for place in ask.pictures]
    ranges = [(place.start, place.tokens) for place in ask.pictures]
    pixels = [eyes.pixels([place.name]) for place in ask.pictures]
    return {**sighted.prompt(ask.prompt, names, ranges, pixels), "cache_salt": salt}


def _params(ask: Ask) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=0.0,
        logprobs=0,
        max_tokens=ask.max_tokens,
        stop_token_ids=list(ask.stops),
        ignore_eos=True,
        detokenize=False,
        extra_args={KEY: dict(ask.arguments)},
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _sampled(output: Any) -> tuple[list[int], list[float]]:
    ids = list(output.token_ids)
    return ids, [at[token].logprob for at, token in zip(output.logprobs, ids, strict=True)]


def _start(folder: str, settings: Settings) -> Any:
    from vllm import LLM

    from rlanything.engines.vllm.draw import OwnDraw

    ending.keep_what_others_use()
    more: dict[str, Any] = {}
    if settings.sighted:
        from rlanything.engines.vllm import sighted

        sighted.register()
        more = dict(SEEING)
    return LLM(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        dtype=settings.dtype,
        enforce_eager=settings.eager,
        distributed_executor_backend="uni",
        async_scheduling=False,  # the processor reads the tokens so far, which must be there
        max_model_len=settings.context,
        max_num_seqs=settings.max_batch,
        max_num_batched_tokens=settings.max_batched_tokens,
        enable_prefix_caching=settings.prefix_caching,
        block_size=BLOCK,
        kv_cache_memory_bytes=settings.cache_bytes,
        gpu_memory_utilization=0.01,  # unused, but for a check that so much memory is free
        logprobs_mode="processed_logits",
        logits_processors=[OwnDraw],
        disable_log_stats=True,
        **({} if settings.eager else GRAPHS),
        **_lora(settings),
        **more,
    )


def _lora(settings: Settings) -> dict[str, Any]:
    if not settings.lora_rank:
        return {}
    return {
        "enable_lora": True,
        "max_lora_rank": settings.lora_rank,
        "max_loras": settings.loras,
        "max_cpu_loras": settings.loras,
    }


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the errors of a start into `UserError`."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"vLLM cannot be imported: {error}; docs/vllm.md says how it is installed") from error
    except (RuntimeError, ValueError) as error:
        raise UserError(f"vLLM cannot run this model here: {error}") from error
