"""docs/paper_map.md names functions and tests; all of them exist, and every section that code refers to is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from rlanything.config.sources import SOURCES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper_map.md").read_text()

NAMED = sorted(set(re.findall(r"`([a-z_]+\.[A-Za-z]\w*)`", PAGE)) - {"module.function"})


@cache
def defined(path: Path) -> frozenset[str]:
    """Names of the functions and classes at the top of a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(n.name for n in ast.parse(path.read_text()).body if isinstance(n, kinds))


def known_tests() -> set[str]:
    return {name for path in ROOT.glob("tests/**/test_*.py") for name in defined(path)}


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 80
    assert named - known_tests() == set()


@pytest.mark.parametrize("name", NAMED)
def test_every_function_and_parameter_that_the_page_names_exists(name):
    module, last = name.split(".")
    files = [p for p in ROOT.glob(f"rlanything/**/{module}.py") if last in defined(p)]
    assert files or name in SOURCES, name


def test_sections_that_code_refers_to_are_there():
    pattern = re.compile(r"[Ss]ection (\d+) of docs/paper_map\.md")
    asked = {n for p in ROOT.glob("rlanything/**/*.py") for n in pattern.findall(p.read_text())}
    assert asked
    for number in asked:
        assert f"\n## {number}. " in PAGE
