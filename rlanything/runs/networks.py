"""The language models of a run: loaded, given an engine, and at the end saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.engines import checkpoint
from rlanything.engines.lora.files import save_lora
from rlanything.engines.lora.injection import inject, take_over
from rlanything.engines.lora.merging import has_lora, merge
from rlanything.engines.lora.sharing import twin
from rlanything.engines.placement import SHARDED, Role, dtype
from rlanything.learn.trainable import why_untrainable
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.runs import build
from rlanything.runs.layout import LORA, LoraCheckpoint

Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]
See = Callable[[Checkpoint, PreTrainedModel], Sight | None]
"""How a model that was loaded from a checkpoint is shown pictures."""


@dataclass(frozen=True)
class Model:
    """A model, its tokenizer, and its chat model.

    source: what it was loaded from.
    network: what trains, if it does.
    sampled: what `chat` samples from: `network`, and of a sharded one a whole copy.
    whole: what is saved at the end: `sampled`, and with LoRA the same model without LoRA's weights, which shares the
    frozen ones."""

    source: Checkpoint
    network: PreTrainedModel
    sampled: PreTrainedModel
    whole: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    chat: ChatModel

    def save(self, weights: Mapping[str, Tensor], folder: Path, name: str) -> None:
        """Take over `weights`, the last thing that is done with the model, and write a Hugging Face folder.

        It is `folder`/checkpoints/`name`. With LoRA `weights` are LoRA's alone. The folder has the merged weights in
        float32, and `folder`/lora/`name` LoRA's alone.
        """
        place = folder / "checkpoints" / name
        if has_lora(self.sampled):
            take_over(self.sampled, weights)
            merge(self.sampled, self.whole)
            save_lora(self.sampled, folder / LORA / name, _base(self.source).path)
        else:
            Module.to(self.whole, "cpu", self.network.dtype)
            self.whole.load_state_dict(weights)
        checkpoint.save(self.whole, self.tokenizer, place)
        if self.chat.sight is not None and self.chat.sight.eyes is not None:
            self.chat.sight.eyes.save(place)


class Networks:
    """Loads the models of a run of one seed.

    A checkpoint that LoRA trains is loaded once. All roles that have the same one, in the same number format, share its
    frozen weights: the other model with LoRA, references, and models that do not train.

    engines: closes the engines that are opened here.
    """

    def __init__(self, config: Config, root: Path, run_seed: int, engines: ExitStack) -> None:
        self._config, self._root, self._seed, self._engines = config, root, run_seed, engines
        self._shared: dict[tuple[Checkpoint, torch.dtype], Loaded] = {}

    def frozen(self, source: Checkpoint, name: str) -> Loaded:
        """A network that does not train, in the number format of `name`, and its tokenizer. Raises `ConfigError`."""
        key = self._key(source, name)
        if key not in self._shared:
            return build.load(self._config, source, self._root, Role.FROZEN, name)
        base, tokenizer = self._shared[key]
        network = twin(base)
        if isinstance(source, LoraCheckpoint):
            build.put_lora(self._config, network, source, self._root)
        return network, tokenizer

    def _key(self, source: Checkpoint, name: str) -> tuple[Checkpoint, torch.dtype]:
        """What frozen weights are shared by: what they are read from, and their number format."""
        return _base(source), dtype(self._config.precision(name), Role.FROZEN)

    def still(self, source: Checkpoint, name: str, see: See | None = None) -> Model:
        """A model that does not train, as `policy`, `reward` or `adapter`. Raises `ConfigError`."""
        network, tokenizer = self.frozen(source, name)
        return self._model(source, (network, network, network), tokenizer, see)

    def learning(self, source: Checkpoint, name: str, see: See) -> Model:
        """The model that trains as `name`, `policy` or `reward`. Raises `ConfigError`."""
        config = self._config
        sharded = config.train.strategy == SHARDED
        if name in config.learn.lora:
            whole, tokenizer = self._shared_frozen(_base(source), name)
            _check_trainable(whole, source, name)
            network = self._low_rank(whole, name, source)
            sampled = self._low_rank(whole, name, source) if sharded else network
        else:
            network, tokenizer = build.load(config, source, self._root, Role.TRAINED, name)
            _check_trainable(network, source, name)
            sampled = build.load(config, source, self._root, Role.FROZEN, name)[0] if sharded else network
            whole = sampled
        made = self._model(source, (network, sampled, whole), tokenizer, see)
        if sharded:
            from rlanything.learn.sharding import CopyEngine

            made.chat.engine = CopyEngine(made.chat.engine, network, sampled)
        return made

    def _shared_frozen(self, source: Checkpoint, name: str) -> Loaded:
        """A network whose weights are frozen, and shared by all roles of the checkpoint, and its tokenizer."""
        key = self._key(source, name)
        if key not in self._shared:
            base, tokenizer = build.load(self._config, source, self._root, Role.FROZEN, name)
            self._shared[key] = base.requires_grad_(False), tokenizer
        return self.frozen(source, name)

    def _low_rank(self, frozen: PreTrainedModel, name: str, source: Checkpoint) -> PreTrainedModel:
        """A model with LoRA's weights of its own, which shares the frozen ones.

        Where LoRA trained the source, training goes on from its weights.
        """
        network, settings = twin(frozen), self._config.learn.lora[name]
        if isinstance(source, LoraCheckpoint):
            build.put_lora(self._config, network, source, self._root)
        else:
            inject(network, settings, derive_seed(self._seed, "lora", name), f"learn.{name}.lora")
        return network

    def _model(
        self,
        source: Checkpoint,
        networks: tuple[PreTrainedModel, PreTrainedModel, PreTrainedModel],
        tokenizer: PreTrainedTokenizerBase,
        see: See | None,
    ) -> Model:
        """networks: what trains, what samples, and what is saved."""
        _, sampled, _ = networks
        seen = see(source, sampled) if see else None
        chat = self._engines.enter_context(build.chat_model(self._config, sampled, tokenizer, seen))
        return Model(source, *networks, tokenizer, chat)


def _check_trainable(network: PreTrainedModel, source: Checkpoint, name: str) -> None:
    """Raise `ConfigError` for a model whose log-probs the trainer would not compute as the model does."""
    why = why_untrainable(network.config.to_dict())
    if why:
        raise ConfigError(f"model.{name}.path = {_base(source).path}: {why}")


def _base(source: Checkpoint) -> Checkpoint:
    """What the frozen weights of a model that LoRA trained are read from; otherwise the checkpoint itself."""
    return source.base if isinstance(source, LoraCheckpoint) else source
