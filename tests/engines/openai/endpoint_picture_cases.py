"""The pictures that the tests of endpoints show."""

from __future__ import annotations

from image_cases import png

from rlanything.core.images import Image

SHOWN = [Image(png(40, 30, shade=k)) for k in range(3)]
