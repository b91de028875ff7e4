"""Pictures that an agent sees, by their content. Records name them; their bytes lie in a store (`files.images`)."""

from rlanything.core.images.png import Image

__all__ = ["Image"]
