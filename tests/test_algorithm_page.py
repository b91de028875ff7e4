"""The page about the algorithm: its numbers are those of the configuration, and its example prints what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest
import yaml

from rlanything.planning.compose import compose

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "algorithm.md").read_text()
SYMBOLS = PAGE.partition("## Symbols")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (\w+) \|[^|]*\| `([\w.]+)` \| ([\d.]+) \| ([\d.]+) \|$", SYMBOLS, flags=re.MULTILINE)


@pytest.mark.parametrize(("symbol", "key", "paper", "default"), ROWS, ids=[row[0] for row in ROWS])
def test_a_symbol_has_the_values_of_its_key(symbol, key, paper, default):
    recorded = yaml.safe_load((ROOT / "params.yaml").read_text())
    found = [
        reduce(dict.__getitem__, key.split("."), values) for values in (compose(["scale=paper"]), recorded)
    ]
    assert found == [float(paper), float(default)]


def test_every_symbol_that_names_a_key_was_read():
    assert len(ROWS) == SYMBOLS.count(" | `") == 7


def test_the_example_prints_what_the_page_shows():
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL).groups()
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == shown
