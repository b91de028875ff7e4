"""vLLM in this process with frozen weights, once for all models that share them. LoRA's weights are kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from torch import Tensor
from transformers import PreTrainedModel

from rlanything.engines.lora.merging import frozen_state, has_lora
from rlanything.engines.vllm.instance import Ask, Instance, Settings
from rlanything.engines.vllm.support import Options

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


class Base:
    """The frozen weights of a model, and the vLLM that has them while one of the model's engines is asked.

    members: the engines that share it -> the rank that vLLM needs for them; 0: their model has no LoRA.
    instance: None: it is not running.
    """

    def __init__(self, model: PreTrainedModel, options: Options) -> None:
        self._options, self._frozen = options, frozen_state(model)
        self.members: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self.instance: Instance | None = None

    def fits(self, model: PreTrainedModel, options: Options, rank: int) -> bool:
        """Whether an engine of a model can share it. vLLM has places for LoRA of the engines that it started with."""
        room = self.instance is None or not rank
        return room and options == self._options and _places(frozen_state(model)) == _places(self._frozen)

    def start(self, model: PreTrainedModel, settings: Settings) -> None:
        """Start vLLM with the frozen weights. model: gives the architecture. Raises as `Instance`."""
        ranks = [rank for rank in self.members.values() if rank]
        places = replace(settings, lora_rank=max(ranks, default=0), loras=max(1, len(ranks)))
        instance = Instance(model, places)
        try:
            instance.load(self._frozen)
        except BaseException:
            instance.close()
            raise
        self.instance = instance

    def stop(self) -> None:
        """Stop vLLM, for all engines. Each starts it again when it is asked."""
        instance, self.instance = self.instance, None
        if instance is not None:
            instance.close()


class Tenant:
    """A running vLLM, as one of the engines that share it uses it.

    base: one that is running. eyes: of the engine; the others may have other ones, or none.
    """

    def __init__(self, base: Base, eyes: Eyes | None) -> None:
        self._base, self._instance, self._eyes = base, base.instance, eyes
        self._lora: int | None = None

    @property
    def evicted(self) -> bool:
        """Whether vLLM was stopped, by any of the engines."""
        return self._base.instance is not self._instance

    def load(self, model: PreTrainedModel) -> None:
        """Take over LoRA's weights of the model in the place of the last ones. Raises as `Instance.add_lora`."""
        self.leave()
        if has_lora(model):
            self._lora = self._running.add_lora(model)

    def leave(self) -> None:
        """Give back the place of LoRA's weights."""
        lora, self._lora = self._lora, None
        if lora is not None:
            self._running.drop_lora(lora)

    def generate(self, asked: Sequence[Ask], salt: str) -> list[tuple[list[int], list[float]]]:
        """See `Instance.generate`."""
        return self._running.generate(asked, salt, self._lora, self._eyes)

    def close(self) -> None:
        """Stop vLLM, unless it was stopped."""
        if not self.evicted:
            self._base.stop()

    @property
    def _running(self) -> Instance:
        if self._instance is None or self.evicted:
            raise ValueError("vLLM was stopped")
        return self._instance


_bases: WeakSet[Base] = WeakSet()


def join(engine: object, model: PreTrainedModel, options: Options, rank: int) -> Base | None:
    """The base that an engine shares, or founds. None: its model has no LoRA, and no other one has its weights.

    rank: that vLLM needs for LoRA's weights of the model; 0: it has none.
    """
    base = next((known for known in _bases if known.fits(model, options, rank)), None)
    if base is None:
        if not rank:
            return None
        base = Base(model, options)
        _bases.add(base)
    base.members[engine] = rank
    return base


def _places(state: Mapping[str, Tensor]) -> set[tuple[str, int]]:
    return {(name, tensor.data_ptr()) for name, tensor in state.items()}
