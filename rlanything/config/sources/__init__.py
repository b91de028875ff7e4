"""Where every value of the configuration comes from: the paper, its reference code, or this project.

`SOURCES` has a row for each key. The comments in experiments/, the defaults of `rlanything.config` and the report's
list of settings that differ from the paper's are written from it or tested against it. A run imports none of it, so a
changed source makes no run stale.
"""

from rlanything.config.sources.source import SETTINGS, Setting, Source, Statement, same, setting_of
from rlanything.config.sources.table import SOURCES, paper_value, row_for

__all__ = [
    "SETTINGS",
    "SOURCES",
    "Setting",
    "Source",
    "Statement",
    "paper_value",
    "row_for",
    "same",
    "setting_of",
]
