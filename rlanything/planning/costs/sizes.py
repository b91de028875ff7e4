"""The sizes of a model without loading it: from its config.json and the headers of its weights.

A checkpoint is a local folder, or a name on the hub whose files are in the hub's cache. Nothing is downloaded. Where
neither is at hand, sizes that experiments/model/sizes.json declares stand in for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import Architecture, Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.files.reader import FileError, read_object
from rlanything.planning.costs.headers import read_weights

DECLARED = Path("experiments/model/sizes.json")
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SHARD = re.compile(r"[\w.-]+\.safetensors")
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""Architectures (`model_type`) whose parameters follow from their configuration."""
LARGEST = 1 << 24
"""Of any entry of a config.json that is counted with."""


@dataclass(frozen=True)
class Size:
    """The sizes of a decoder. `attention` and `kv`: widths of all query heads and of all key heads together."""

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    attention: int
    kv: int
    vocab: int
    positions: int
    tied: bool
    normed_heads: bool
    """Whether queries and keys are normalised (Qwen3)."""
    source: str
    """Where the sizes come from."""
    disk: int | None = None
    """Bytes of the weights on disk, where they are at hand."""

    @property
    def embedding(self) -> int:
        """Parameters of the embedding that a token looks up and no product reads."""
        return 0 if self.tied else self.vocab * self.hidden


def embedded_size(sizes: Architecture, path: str) -> Size:
    """The sizes of an embedded model, as `bootstrap` makes it."""
    fields = {
        "model_type": "qwen2",
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "vocab_size": sizes.vocab,
        "max_position_embeddings": sizes.positions,
        "tie_word_embeddings": True,
    }
    return from_fields(fields, path, "model.embedded")


def read_size(checkpoint: Checkpoint, key: str, root: Path) -> Size:
    """The sizes of a real checkpoint, named `key` in the configuration. Raises `ConfigError`."""
    from rlanything.runs.build import source

    place = source(checkpoint, root)
    folder = Path(place)
    config = _find(place, "config.json", checkpoint.revision)
    if config is None:
        return _declared(checkpoint, key, root, local=folder.is_absolute() or folder.exists())
    fields = read_object(config)
    size = from_fields(fields, place, "config.json", counted=False)
    files = _weights(place, checkpoint.revision)
    if not files:
        return from_fields(fields, place, "config.json")
    found = read_weights(files, tied=size.tied)
    kept = {**vars(size), "parameters": found.parameters, "disk": found.disk}
    return Size(**{**kept, "source": "config.json and safetensors headers"})


def from_fields(data: Mapping[str, Any], place: str, source: str, *, counted: bool = True) -> Size:
    """Sizes from the fields of a config.json. `counted`: with the parameters that follow from them.

    Raises `ConfigError` for a field that is missing, and for an architecture whose parameters do not follow.
    """
    inner = data.get("text_config")
    fields = {**data, **inner} if isinstance(inner, dict) else dict(data)
    reader = _Fields(fields, f"{place}: {source}")
    hidden, heads = reader.number("hidden_size"), reader.number("num_attention_heads")
    kv_heads = reader.number("num_key_value_heads", heads)
    head = reader.number("head_dim", hidden // heads)
    family = str(fields.get("model_type"))
    size = Size(
        parameters=0,
        layers=reader.number("num_hidden_layers"),
        hidden=hidden,
        intermediate=reader.number("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        attention=heads * head,
        kv=kv_heads * head,
        vocab=reader.number("vocab_size"),
        positions=reader.number("max_position_embeddings"),
        tied=bool(fields.get("tie_word_embeddings", family not in FAMILIES)),  # the defaults of transformers
        normed_heads=family == "qwen3",
        source=source,
    )
    return Size(**{**vars(size), "parameters": _parameters(size, family, fields, place)}) if counted else size


class _Fields:
    """Whole numbers of a configuration that may be anybody's."""

    def __init__(self, fields: Mapping[str, Any], place: str) -> None:
        self._fields, self._place = fields, place

    def number(self, key: str, default: int | None = None) -> int:
        value = self._fields.get(key)
        value = default if value is None else value
        if type(value) is not int or not 0 < value <= LARGEST:
            raise ConfigError(
                f"{self._place}: {key} = {str(value)[:40]}: must be a whole number from 1 to {LARGEST:,}"
            )
        return value


def _parameters(size: Size, family: str, fields: Mapping[str, Any], place: str) -> int:
    """Parameters of a decoder whose architecture is known. Raises `ConfigError` for another one."""
    if family not in FAMILIES:
        raise ConfigError(
            f"{place}: model_type = {family[:40]!r}: the parameters of this architecture are read from its weights; "
            f"download {SINGLE} (or {INDEX} and its shards). Without weights known: {', '.join(FAMILIES)}"
        )
    biased, mlp_biased = bool(fields.get("attention_bias", False)), bool(fields.get("mlp_bias", False))
    hidden, a, kv, i = size.hidden, size.attention, size.kv, size.intermediate
    attention = hidden * (2 * a + 2 * kv)
    if family == "qwen2" or biased:
        attention += a + 2 * kv
    if family != "qwen2" and biased:
        attention += hidden
    if size.normed_heads:
        attention += 2 * (a // size.heads)
    mlp = 3 * hidden * i + (2 * i + hidden if mlp_biased else 0)
    tables = size.vocab * hidden * (1 if size.tied else 2)
    return tables + size.layers * (attention + mlp + 2 * hidden) + hidden


def _find(place: str, name: str, revision: str | None) -> Path | None:
    """A file of a checkpoint: in its folder, or in the hub's cache; None where it is not at hand."""
    folder = Path(place)
    if folder.is_absolute() or folder.exists():
        found = folder / name
        return found if found.is_file() else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(place, name, revision=revision)
    except HFValidationError as error:
        raise ConfigError(f"{place}: no name on the hub ({' '.join(str(error).split())[:200]})") from None
    return Path(cached) if isinstance(cached, str) else None


def _weights(place: str, revision: str | None) -> list[Path]:
    """The files of the weights; empty where not all of them are at hand."""
    index = _find(place, INDEX, revision)
    if index is None:
        single = _find(place, SINGLE, revision)
        return [] if single is None else [single]
    mapping = read_object(index).get("weight_map")
    names = set(mapping.values()) if isinstance(mapping, dict) else set()
    if not names or not all(isinstance(name, str) and SHARD.fullmatch(name) for name in names):
        raise FileError(f"{index}: weight_map: must name the safetensors file of every tensor")
    files = [_find(place, name, revision) for name in sorted(names)]
    return [file for file in files if file is not None] if all(files) else []


def _declared(checkpoint: Checkpoint, key: str, root: Path, *, local: bool) -> Size:
    """Sizes by the name of the checkpoint. Raises `ConfigError` naming what to download."""
    file = root / DECLARED
    known = read_object(file) if file.is_file() and not local else {}
    fields = known.get(checkpoint.path)
    if isinstance(fields, dict):
        return from_fields(fields, checkpoint.path, f"declared in {DECLARED}")
    advice = (
        "no config.json there; put the checkpoint's into that folder"
        if local
        else f"its config.json is not in the hub's cache; `hf download {checkpoint.path} config.json` fetches it "
        f"(with model.safetensors.index.json and the weights where its architecture is none of {', '.join(FAMILIES)}), "
        f"or declare its sizes in {DECLARED}"
    )
    raise ConfigError(f"{key}.path = {checkpoint.path}: {advice}")
