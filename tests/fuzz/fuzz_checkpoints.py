"""Checkpoints: a small model's folder with one file exchanged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fuzz_target import HERE, Target

from rlanything.engines import checkpoint

MODEL = HERE.parent / "golden" / "start" / "models" / "policy"


def _load(name: str, data: bytes, folder: Path) -> None:
    place = folder / "model"
    shutil.copytree(MODEL, place)
    (place / name).write_bytes(data)
    checkpoint.load(place)


def _seeds(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(MODEL / name).read_bytes()]


TEMPLATE = (
    b"{% for m in messages %}",
    b"{% endfor %}",
    b"{{ messages }}",
    b"{% if true %}",
    b"{% set x = 'a' * 99999999 %}",
    b"{% include 'x' %}",
    b"{{ x.__class__ }}",
    b"{{ range(99999999)|list }}",
    b"{% generation %}",
)
HEADER = (
    b'"dtype":"F32"',
    b'"dtype":"F64"',
    b'"shape":[-1]',
    b'"shape":[99999999999]',
    b'"data_offsets":[0,0]',
    b"\xff" * 8,
    b"__metadata__",
)
TARGETS = [
    Target(f"checkpoint-{short}", partial(_load, name), _seeds(name), form, words, "model", 1)
    for short, name, form, words in (
        ("config", "config.json", "json", ()),
        ("generation", "generation_config.json", "json", ()),
        ("tokenizer", "tokenizer.json", "json", ()),
        ("tokenizer-config", "tokenizer_config.json", "json", ()),
        ("template", "chat_template.jinja", "", TEMPLATE),
        ("weights", "model.safetensors", "", HEADER),
    )
]
