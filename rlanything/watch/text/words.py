"""Small pieces of text: times, curves in one line, bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rlanything.runs.progress.ticker import clock

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*#@"
"""The same in ASCII, for a terminal whose encoding lacks the blocks."""
EMPTY = "░"
"""The rest of a bar of blocks; in ASCII it is a dot."""
NONE = "-"


def blocks(encoding: str | None) -> str:
    """The characters of curves and bars that an encoding has; None: that of a terminal which names none, UTF-8."""
    try:
        (BLOCKS + EMPTY).encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS


def time_left(seconds: float | None) -> str:
    """Seconds as h:mm:ss, or a dash where nobody knows."""
    return NONE if seconds is None else clock(min(seconds, 359_999))


def rounded(seconds: float | None) -> str:
    """A time that is only roughly known, in words."""
    if seconds is None:
        return NONE
    if seconds < 90:
        return f"about {max(10, round(seconds / 10) * 10)} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h" if seconds < 172_800 else f"about {seconds / 86_400:.1f} days"


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash where it was not measured."""
    return NONE if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share in percent."""
    return NONE if value is None else f"{value:.0%}"


def spark(values: Sequence[float | None], width: int, blocks: str = BLOCKS) -> str:
    """A curve in at most `width` characters, from its lowest value to its highest. What was not measured is left out.

    Longer curves are averaged over pieces of equal length.
    """
    found = [value for value in values if value is not None]
    if not found or width < 1:
        return ""
    if len(found) > width:
        cuts = [round(k * len(found) / width) for k in range(width + 1)]
        found = [sum(found[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, high = min(found), max(found)
    if high == low:
        return blocks[len(blocks) // 2] * len(found)
    return "".join(blocks[round((value - low) / (high - low) * (len(blocks) - 1))] for value in found)


def bar(share: float, width: int, blocks: str = BLOCKS) -> str:
    """How much is done, as a bar."""
    full = round(max(0.0, min(1.0, share)) * width)
    return (blocks[-1] * full).ljust(width, "." if blocks == PLAIN else EMPTY)


def size(count: float) -> str:
    """Bytes in GiB or MiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
