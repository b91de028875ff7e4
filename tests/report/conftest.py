"""A report that is drawn once, and tests that need fewer files: to draw a whole report takes ten seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_cases import config, project

from rlanything.report import figures
from rlanything.stages import report


@pytest.fixture(scope="session")
def reported(made_once) -> Path:
    """The made-up project with its whole report; not to be changed."""
    return made_once("reported", lambda root: report.write_report(config(), project(root)))


@pytest.fixture
def blank(monkeypatch) -> None:
    """Every figure has all of its files, and nothing in them."""
    monkeypatch.setattr(figures, "rendered", lambda _, formats: ((kind, b"<svg/>") for kind in formats))


@pytest.fixture
def drawn_as_svg(monkeypatch) -> tuple[str, ...]:
    """The kinds of files of a figure: every figure is drawn, as SVG alone. A PDF alone takes three times as long."""
    monkeypatch.setattr(figures, "FORMATS", {"svg": figures.FORMATS["svg"]})
    monkeypatch.setattr(figures, "PAPER", {})
    return "svg", "csv"
