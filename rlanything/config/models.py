"""The models: checkpoints, sizes of the embedded ones, and how those are warm started."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlanything.config.section import Positive, Rate, Section, Share


class Architecture(Section):
    """Sizes of the tiny Qwen2 models that the bootstrap stage makes."""

    hidden: Positive = 128
    intermediate: Positive = 384
    layers: Positive = 2
    heads: Positive = 4
    kv_heads: Positive = 2
    vocab: Annotated[int, Field(ge=430, lt=1 << 63)] = 1024
    """At least the bytes, their most frequent merges, the marks of a conversation, the numbers, and one phrase."""
    positions: Annotated[int, Field(gt=0, le=1 << 20)] = 4096

    @model_validator(mode="after")
    def _divides(self) -> Architecture:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"heads = {self.heads}: hidden = {self.hidden} must be a multiple of twice as many, because a head has "
                f"an even size (e.g. hidden = {2 * self.heads * math.ceil(self.hidden / (2 * self.heads))})"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads = {self.kv_heads}: must divide heads = {self.heads}")
        return self

    def matrix(self, name: str) -> int:
        """The smaller side of a matrix of a decoder layer."""
        width = self.hidden
        kv = width // self.heads * self.kv_heads
        narrow = {"k_proj": kv, "v_proj": kv, "q_proj": width, "o_proj": width}
        return narrow.get(name, min(width, self.intermediate))

    @property
    def parameters(self) -> int:
        """Weights of a Qwen2 model, embeddings tied: attention, biases on q, k and v, SwiGLU, two norms a layer."""
        width = self.hidden
        kv = width // self.heads * self.kv_heads
        attention = 2 * width * width + 2 * width * kv + width + 2 * kv
        layer = attention + 3 * width * self.intermediate + 2 * width
        return self.vocab * width + self.layers * layer + width


class Checkpoint(Section):
    """A Hugging Face folder or hub name. For embedded models the folder that `bootstrap` writes."""

    path: str
    revision: str | None = None
    allow_pickle: bool = False
    """Whether weights may be pickles (`pytorch_model.bin`): reading one can run code. Safetensors cannot."""


class ImagesConfig(Section):
    """How many of the latest pictures a model is shown with each prompt; 0: it reads text alone."""

    policy: Annotated[int, Field(ge=0, le=64)] = 0
    reward: Annotated[int, Field(ge=0, le=64)] = 0

    @property
    def any(self) -> bool:
        """Whether a model is shown pictures."""
        return bool(self.policy or self.reward)


class ModelConfig(Section):
    """The three models, their prompts, and the formats of their answers."""

    embedded: Architecture | None
    policy: Checkpoint
    reward: Checkpoint
    adapter: Checkpoint
    prompts: str
    action_format: Literal["verbatim", "boxed_index"] = "boxed_index"
    verdict_format: Literal["word", "boxed"] = "boxed"
    context: Literal["chat", "history"] = "chat"
    """What policy and reward model see of an episode. The paper: history."""
    images: ImagesConfig = ImagesConfig()

    @model_validator(mode="after")
    def _sees(self) -> ModelConfig:
        for role in ("policy", "reward"):
            shown = getattr(self.images, role)
            if shown and self.context != "history":
                raise ValueError(
                    f"images.{role} = {shown}: with context = {self.context} a prompt repeats the one before, and the "
                    "latest pictures cannot be exchanged; needs context = history"
                )
        return self


class SupervisedConfig(Section):
    """One supervised warm start of an embedded model."""

    episodes: Positive
    steps: Positive
    batch: Positive = 32
    lr: Rate = 5e-3
    """AdamW: embeddings, norms and biases."""
    matrix_lr: Rate = 0.02
    """Muon: the hidden matrices."""
    context_weight: Share = 0.0
    """Loss weight of the tokens that the model only reads; the tokens that it writes have 1."""
    noise: Share = 0.0


class BootstrapConfig(Section):
    """Warm starts of the embedded models; ignored for real checkpoints."""

    policy: SupervisedConfig
    reward: SupervisedConfig
    adapter: SupervisedConfig
    min_mu: float = 1.05
    """The stage fails when the first reward model's mu = p+ + p- is below this (Theorem 1 needs mu > 1)."""
    min_ut: Share = 0.05
    """The same for a reward model that writes tests: the share of them that must be right."""
