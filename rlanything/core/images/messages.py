"""Messages to a model, which may show pictures: what prompts are made of, and what a chat format turns into ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]
"""{type: text, text}, or {type: image, image, width, height}: the name of a picture, and its size in pixels."""
Message = Mapping[str, Any]
"""`role` and `content`: a text, or parts in order where the message shows pictures."""
