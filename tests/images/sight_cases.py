"""Tiny models that read pictures, written to a folder and loaded as any checkpoint is."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch
from image_cases import png

from rlanything.core.images import Image
from rlanything.engines import checkpoint
from rlanything.engines.chat import Chat
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.rehearsal.architectures import architecture

TEXTS = [
    "You see a page with a button and a field. click 3\ntype 1 hello\n",
    "Which action is next? done",
] * 4
KINDS = ("qwen2_5_vl", "qwen3_vl")
PICTURES = {
    image.sha256: image for image in (Image(png(70 + 40 * k, 60 + 25 * k, shade=k)) for k in range(4))
}
NAMES = list(PICTURES)


@cache
def folder(kind: str) -> Path:
    """A checkpoint whose logits are far from uniform."""
    made = architecture(kind)
    tokenizer = made.tokenizer(TEXTS)
    model = made.fresh(tokenizer, 3)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(4)
    place = Path(mkdtemp()) / kind
    checkpoint.save(model, tokenizer, place)
    made.save_eyes(place)
    return place


@cache
def loaded(kind: str):
    """(model, tokenizer, eyes) of the checkpoint."""
    model, tokenizer = checkpoint.load(folder(kind))
    return model, tokenizer, sight.load(str(folder(kind)), None, model, PICTURES.__getitem__)


def parts(*names: str, text: str = "what next?"):
    """The content of a message that shows these pictures, each after its number, and asks."""
    shown = []
    for number, name in enumerate(names):
        image = PICTURES[name]
        shown += [
            {"type": "text", "text": f"picture {number}:"},
            {"type": "image", "image": name, "width": image.width, "height": image.height},
        ]
    return [*shown, {"type": "text", "text": text}]


def prompt(kind: str, *names: str, text: str = "what next?") -> tuple[int, ...]:
    _, tokenizer, eyes = loaded(kind)
    return Chat(tokenizer, eyes).start([{"role": "user", "content": parts(*names, text=text)}])


def engine(kind: str, **more) -> TransformersEngine:
    model, tokenizer, eyes = loaded(kind)
    return TransformersEngine(model, tokenizer, eyes=eyes, **more)
