"""The stage `report`: reads evaluation/ and runs/, writes report/, prints the table of arms beside the paper's."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from rlanything.config import Config
from rlanything.report import buffers, document, figures, plots, summary, tables
from rlanything.report.document import Material
from rlanything.report.files import write
from rlanything.report.panels import panels
from rlanything.report.records import read_curves, read_evaluations
from rlanything.report.setting import chosen
from rlanything.report.study import Study, peaks

FOLDER = "report"


def run(config: Config, root: Path) -> None:
    """Make the report of the project at `root`. Raises `ReportError` when an input is missing or corrupt."""
    material = gather(config, root)
    adapting = [name for name, arm in config.arms.items() if arm.adapt]
    changed = buffers.changes(material.curves, adapting, root)
    for name, page in buffers.pages(changed):
        write(root / FOLDER / "buffers" / name, page)
    write(root / FOLDER / "buffers.md", buffers.text(changed))
    publish(material, root / FOLDER)
    show(material, Console())


def gather(config: Config, root: Path) -> Material:
    """Read every input and compute every number; nothing is written."""
    measured = panels(read_evaluations(root, config.arms))
    setting = chosen(config, measured)
    curves = read_curves(root, config.arms)
    study = Study(measured, config.seed, config.evaluate.resamples)
    return Material(config, setting, study, study.cells(), curves, peaks(curves, setting.curves))


def publish(material: Material, folder: Path) -> None:
    """Write the report's files, the document last: where it stands, what it links to stands too."""
    for name, content in figures.draw(material.curves, material.cells, material.setting):
        write(folder / "figures" / name, content)
    write(folder / "plots" / "learning.csv", plots.text(material.curves))
    write(folder / "summary.json", summary.text(material.cells))
    write(folder / "report.md", document.text(material))


def show(material: Material, console: Console) -> None:
    """The table, the peaks (labelled as such), what to be careful about, and where everything is."""
    console.print(tables.terminal(material.cells, material.setting))
    if material.peaks:
        console.print(tables.terminal_peaks(material.peaks, material.setting))
    for line in document.terminal_notes(material):
        console.print(Text(f"! {line}"))
    console.print(Text(f"Report: {FOLDER}/report.md   numbers: {FOLDER}/summary.json"))
    place = document.buffer_folder(material)
    if place:
        console.print(Text(f"Buffer: {place}/buffer   show it: rlanything buffer ls {place}"))
