"""The sizes of a model from its config.json, without loading weights: transformers builds it on the device `meta`.

A checkpoint is a local folder, or a name on the hub whose config.json is in the hub's cache. Nothing is downloaded. If
a hub name is not in the cache, its sizes may be declared in experiments/model/sizes.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import Architecture, Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.engines.sources import cached, source
from rlanything.files.reader import read_object
from rlanything.planning import checkpoints
from rlanything.planning.costs.tower import MOST, MOST_LAYERS, Tower, check_fields, of_model

DECLARED = Path("experiments/model/sizes.json")
"""The project's file with the sizes of known checkpoints: name on the hub -> what counts of its config.json."""
EMBEDDED = "model.embedded"
"""The source of the sizes of an embedded model. Its tokenizer may find fewer entries than `vocab`, never more."""
IGNORED = (
    "auto_map",
    "quantization_config",
    "dtype",
    "torch_dtype",
    "_attn_implementation",
    "attn_implementation",
)
"""Fields that name code or a storage format. They do not change the number of parameters."""


@dataclass(frozen=True)
class Size:
    """The sizes of a decoder. attention: width of all query heads together. kv: width of all key heads together."""

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
    tower: Tower | None = None
    """What reads pictures. None: the model reads text alone."""

    @property
    def embedding(self) -> int:
        """Parameters of the embedding that are in no matrix product; 0 when it is tied to the output layer."""
        return 0 if self.tied else self.vocab * self.hidden

    @property
    def outside(self) -> int:
        """Parameters in no layer: embedding, output layer and last norm, and of a tower what is in none of its own."""
        tower = self.tower.outside if self.tower else 0
        return self.vocab * self.hidden + self.embedding + self.hidden + tower


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
    # As many as transformers would build, which would have to be imported for it.
    return from_fields(fields, path, EMBEDDED, (sizes.parameters, True))


def read_size(checkpoint: Checkpoint, key: str, root: Path) -> Size:
    """The sizes of a real checkpoint. key: its key in the configuration. Raises `ConfigError`."""
    place = source(checkpoint, root)
    folder = Path(place)
    config = _find(place, "config.json", checkpoint.revision)
    if config is None:
        return _declared(checkpoint, key, root, local=folder.is_absolute() or folder.exists())
    return from_fields(read_object(config), place, "config.json")


def declared(root: Path) -> dict[str, Any]:
    """Name of a checkpoint -> what the project's file says of its config.json, as it lies there; {} without a file."""
    file = root / DECLARED
    return read_object(file) if file.is_file() else {}


def checked_fields(fields: Any, place: str, source: str) -> dict[str, Any]:
    """The fields of a config.json that describe sizes, without those that name code. Raises `ConfigError`."""
    if not isinstance(fields, dict):
        raise ConfigError(f"{place}: {source}: must be an object with the fields of a config.json")
    from_fields(fields, place, source)
    return {key: value for key, value in fields.items() if key not in IGNORED}


def from_fields(
    data: Mapping[str, Any], place: str, source: str, built: tuple[int, bool] | None = None
) -> Size:
    """Sizes from the fields of a config.json. built: parameters and whether they are tied, where they are known.

    Raises `ConfigError` for a field that is missing, and for an architecture that transformers cannot build.
    """
    inner = data.get("text_config")
    fields = {**data, **inner} if isinstance(inner, dict) else dict(data)
    reader = _Fields(fields, f"{place}: {source}")
    hidden, heads = reader.number("hidden_size"), reader.number("num_attention_heads")
    kv_heads = reader.number("num_key_value_heads", heads)
    head = reader.number("head_dim", hidden // heads)
    sizes = {
        "layers": reader.number("num_hidden_layers", most=MOST_LAYERS),
        "intermediate": reader.number("intermediate_size"),
        "vocab": reader.number("vocab_size"),
        "positions": reader.number("max_position_embeddings"),
    }
    parameters, tied, tower = (
        (*built, None) if built else _built(data if "vision_config" in data else fields, place)
    )
    return Size(
        parameters=parameters,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        attention=heads * head,
        kv=kv_heads * head,
        tied=tied,
        normed_heads=fields.get("model_type") in ("qwen3", "qwen3_vl_text"),
        source=source,
        tower=tower,
        **sizes,
    )


class _Fields:
    """Reads whole numbers from an untrusted config.json."""

    def __init__(self, fields: Mapping[str, Any], place: str) -> None:
        self._fields, self._place = fields, place

    def number(self, key: str, default: int | None = None, most: int = MOST) -> int:
        value = self._fields.get(key)
        value = default if value is None else value
        if type(value) is not int or not 0 < value <= most:
            raise ConfigError(
                f"{self._place}: {key} = {str(value)[:40]}: must be a whole number from 1 to {most:,}"
            )
        return value


def _built(fields: Mapping[str, Any], place: str) -> tuple[int, bool, Tower | None]:
    """Parameters, whether embedding and output layer are tied, and the vision tower, built on the device `meta`."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

    from rlanything.engines.untrusted_load import NO_CODE

    check_fields(fields, place)
    kept = {key: value for key, value in fields.items() if key not in IGNORED}
    try:
        config = AutoConfig.for_model(str(kept.pop("model_type", None)), **kept)
        with torch.device("meta"):
            # A model with eyes has its vision tower in the count: it is loaded with the rest.
            maker = AutoModelForImageTextToText if "vision_config" in kept else AutoModelForCausalLM
            model = maker.from_config(config, **NO_CODE)
        return model.num_parameters(), bool(config.tie_word_embeddings), of_model(model)
    except Exception as error:  # an untrusted file can cause any error in the library
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ConfigError(f"{place}: no model can be built from its config.json ({reason})") from None


def _find(place: str, name: str, revision: str | None) -> Path | None:
    """The path of a checkpoint's file, in its folder or in the hub's cache; None if it is in neither."""
    folder = Path(place)
    if folder.is_absolute() or folder.exists():
        found = folder / name
        return found if found.is_file() else None
    return cached(place, name, revision)


def _declared(checkpoint: Checkpoint, key: str, root: Path, *, local: bool) -> Size:
    """The declared sizes of a checkpoint. Raises `ConfigError` that says which file to provide."""
    fields = None if local else declared(root).get(checkpoint.path)
    if isinstance(fields, dict):
        return from_fields(fields, checkpoint.path, f"declared in {DECLARED}")
    if local:
        checkpoints.check_there(f"{key}.path = {checkpoint.path}", root / checkpoint.path)
    advice = (
        "no config.json there; put the checkpoint's into that folder"
        if local
        else f"its config.json is not in the hub's cache; `hf download {checkpoint.path} config.json` fetches it, or "
        f"declare its sizes in {DECLARED}"
    )
    raise ConfigError(f"{key}.path = {checkpoint.path}: {advice}")
